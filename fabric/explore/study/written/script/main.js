// The page: reads what it has inside, and draws what can be pointed at, selected and sorted.

function makeChoices() {
  const options = () => fields.map(({ title }, n) => make("option", { value: n }, title));
  const first = data.axes.length;
  const pairs = { across: first, up: fields.length > first + 1 && data.about > 1 ? first + 1 : first };
  if (pairs.across === pairs.up && data.axes.length) pairs.across = 0;
  for (const [name, n] of Object.entries(pairs)) {
    const chooser = byId(name);
    chooser.append(...options());
    chooser.value = n;
    view[name] = fields[n];
    chooser.addEventListener("change", () => { view[name] = fields[chooser.value]; changed("fields"); });
  }
  const colour = byId("colour");
  colour.append(make("option", { value: "" }, data.front.length ? "the front" : "none"),
    ...data.axes.map(({ name }, n) => make("option", { value: n }, name)));
  colour.addEventListener("change", () => {
    view.colour = colour.value === "" ? null : fields[colour.value];
    changed("colour");
  });
}

function makePoints() {
  const failed = data.index.some((_, at) => !isRun(at));
  const pointLink = (at) => make("button", {
    class: "link", title: "Select, or not any more", onclick: () => toggle(at),
    onmouseenter: () => pointAt(at), onmouseleave: () => pointAt(null), onfocus: () => pointAt(at), onblur: () => pointAt(null),
  }, `${data.index[at]}${isFront(at) ? " ●" : ""}`);
  const column = (field) => {
    if (!field.isAxis || field.numbers) return { title: field.title, digits: field.digits, value: field.value };
    return { title: field.title, value: field.text, show: (at) => make("span", { title: field.whole(at) }, field.text(at)) };
  };
  makeTable(byId("points-table"), {
    rows: data.index.map((_, at) => at), found: isShown, chosen: (at) => view.selected.has(at), parts: ["selected"],
    columns: [
      { title: "point", meaning: "● on the front", value: (at) => data.index[at], show: pointLink },
      ...fields.filter(({ isAxis }) => isAxis).map(column),
      ...(failed ? [
        { title: "status", value: (at) => data.statuses[data.status[at]].name },
        { title: "why", value: (at) => data.why[at], show: (at) => make("span", { class: "why" }, data.why[at]) },
      ] : []),
      ...fields.filter(({ isAxis }) => !isAxis).map(column),
    ],
  });
}

function themed() {
  drawColours();
  changed("theme", "size");
}

function begin() {
  data = JSON.parse(byId("data").textContent);
  data.onFront = new Set(data.front);
  makeFields();
  makeChoices();
  makeScatter();
  makeParallel();
  makePoints();
  watch((what) => {
    if (what.has("colour")) drawColours();
    if (what.has("selected")) byId("selected").textContent = view.selected.size ? `${number(view.selected.size)} selected` : "";
  });
  byId("clear").addEventListener("click", () => select([]));
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    themed();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { pointAt(null); select([]); }
  });
  for (const query of [prefersDark, isPrinted]) query.addEventListener("change", themed);
  window.addEventListener("resize", () => changed("size"));
  themed();
  document.body.classList.add("drawn");
}

try {
  begin();
} catch (error) {
  byId("failed").textContent = `This page could not be drawn: ${error.message}. It needs a browser of 2023 or later.`;
  byId("failed").hidden = false;
}

// Unpacks the page's data and draws it.

function drawHead() {
  const { run } = data;
  byId("name").textContent = run.name;
  byId("program").textContent = run.program;
  byId("ran").textContent = run.ran;
  byId("verdict").textContent = run.verdict;
  byId("verdict").classList.toggle("bad", run.failed);
  byId("notes").append(...[...run.notes, ...data.left_out].map((note) => make("p", { class: "quiet" }, note)));
  byId("units-note").textContent = `The cycles of each unit sum to ${number(run.cycles)}. A family has the median and the range of each column.`;
  const stalled = data.charged.reduce((sum, [, cycles]) => sum + cycles, 0);
  byId("roots-note").textContent = `${number(stalled)} stalled cycles of all units, each charged to the end of its chain.`;
  byId("path-note").textContent = run.path_note;
}

function drawLegend() {
  byId("legend").replaceChildren(...data.causes.map(({ label, meaning }, state) =>
    make("span", { title: meaning }, make("i", { class: "swatch", style: `background:${colours[state]}` }), label)));
}

function themed() {
  colours = coloursOf(isDark());
  drawLegend();
  changed("theme", "size");
}

function wireToolbar() {
  byId("search").addEventListener("input", (event) => search(event.target.value));
  byId("search").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const found = unitsShown();
    const unit = found.find((each) => data.units.name[each] === event.target.value.trim()) ?? found[0];
    if (unit !== undefined) choose(unit);
  });
  byId("order").addEventListener("change", (event) => { view.order = event.target.value; changed("rows"); });
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("zoom-all").addEventListener("click", showAll);
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    themed();
  });
  document.addEventListener("keydown", pressed);
  showsAllByDoubleClick();
  const bar = byId("where");
  bar.addEventListener("pointermove", (event) => {
    if (!event.buttons) return;
    const { first, last } = data.run;
    const middle = first + ((event.clientX - bar.getBoundingClientRect().left) / bar.clientWidth) * (last - first);
    pan((middle - (view.from + view.to) / 2) / (view.to - view.from));
  });
}

function pressed(event) {
  if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: showAll,
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), Escape: closeDetails,
    "/": () => byId("search").focus(),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function watchRange() {
  const { first, last } = data.run;
  watch((what) => {
    if (!what.has("range") && !what.has("cursor")) return;
    const at = view.cursor === null ? "" : `, at ${number(view.cursor)}`;
    byId("range").textContent = `cycles ${number(view.from)} to ${number(view.to)}${at}`;
    const part = byId("where-part");
    part.style.left = `${(100 * (view.from - first)) / Math.max(1, last - first)}%`;
    part.style.width = `${(100 * (view.to - view.from)) / Math.max(1, last - first)}%`;
  });
}

async function begin() {
  data = await unpacked(byId("data").textContent);
  colours = coloursOf(isDark());
  drawHead();
  drawLegend();
  wireToolbar();
  watchRange();
  watchDetails();
  makeGraph();
  makePath();
  makeLanes();
  makeBands();
  makeOverview();
  makeMemory();
  makeBuses();
  makeOccupancy();
  watchCharts();
  makeTables();
  for (const query of [prefersDark, isPrinted]) query.addEventListener("change", themed);
  window.addEventListener("resize", () => changed("size"));
  changed("rows", "size");
  showAll();
  document.body.classList.add("drawn");
}

begin().catch((error) => {
  byId("failed").textContent = `This page could not be drawn: ${error.message}. It needs a browser of 2023 or later.`;
  byId("failed").hidden = false;
});

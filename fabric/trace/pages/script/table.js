// Tables that are sorted by a click on a column, and searched.

const PAGE = 20;

/**
 * Makes a table in `place`. columns: title, value(row), and for names show(row), an element.
 * found(row) says whether a row is searched for, chosen(row) whether it stands out; `parts` of the
 * view change that.
 */
function makeTable(place, { rows, columns, found, chosen = () => false, parts = ["rows"] }) {
  let sorted = rows;
  let by = -1;
  let down = true;
  let shown = PAGE;
  const body = make("tbody");
  const note = make("p", { class: "quiet more" });
  const isNumber = columns.map(({ value }) => rows.some((row) => typeof value(row) === "number"));
  const heads = columns.map(({ title, meaning = "" }, n) => make("th", { class: isNumber[n] ? "n" : "", title: meaning, "aria-sort": "none" },
    make("button", { onclick: () => sortBy(n) }, title)));
  place.append(make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)), note);

  function sortBy(n) {
    down = by === n ? !down : isNumber[n];
    by = n;
    const { value } = columns[n];
    const compare = isNumber[n] ? (a, b) => (value(a) ?? -1) - (value(b) ?? -1) : (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
    sorted = rows.slice().sort((a, b) => (down ? -1 : 1) * compare(a, b));
    heads.forEach((head, each) => head.setAttribute("aria-sort", each !== n ? "none" : down ? "descending" : "ascending"));
    draw();
  }

  function draw() {
    const fitting = found ? sorted.filter(found) : sorted;
    body.replaceChildren(...fitting.slice(0, shown).map((row) => make("tr", chosen(row) ? { class: "chosen" } : {},
      ...columns.map(({ value, show, digits = number }, n) => {
        const each = show ? show(row) : value(row);
        return make("td", isNumber[n] ? { class: "n" } : {}, typeof each === "number" ? digits(each) : each ?? "");
      }))));
    note.replaceChildren();
    if (fitting.length > shown || fitting.length < rows.length) {
      note.append(`${number(Math.min(shown, fitting.length))} of ${counted(rows.length, "row")} `);
    }
    if (fitting.length > shown) note.append(make("button", { onclick: () => { shown += 10 * PAGE; draw(); } }, `show ${number(Math.min(10 * PAGE, fitting.length - shown))} more`));
  }

  watch((what) => {
    if (parts.some((part) => what.has(part))) draw();
  });
  draw();
}

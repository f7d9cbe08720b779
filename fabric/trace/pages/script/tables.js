// Tables that are sorted by a click on a column, and searched.

const PAGE = 20;

/**
 * Makes a table in `place`. columns: title, value(row), and for names show(row), an element.
 * found(row) says whether a row is searched for; chosen(row) returns the unit to choose, if any.
 */
function makeTable(place, { rows, columns, found, unit }) {
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
    body.replaceChildren(...fitting.slice(0, shown).map((row) => make("tr", unit && unit(row) === view.unit && view.unit !== null ? { class: "chosen" } : {},
      ...columns.map(({ value, show, digits = number }, n) => {
        const each = show ? show(row) : value(row);
        return make("td", isNumber[n] ? { class: "n" } : {}, typeof each === "number" ? digits(each) : each ?? "");
      }))));
    note.replaceChildren();
    if (fitting.length > shown || fitting.length < rows.length) {
      note.append(`${number(Math.min(shown, fitting.length))} of ${number(rows.length)} rows `);
    }
    if (fitting.length > shown) note.append(make("button", { onclick: () => { shown += 10 * PAGE; draw(); } }, `show ${number(Math.min(10 * PAGE, fitting.length - shown))} more`));
  }

  watch((what) => {
    if (what.has("rows") || (unit && what.has("unit"))) draw();
  });
  draw();
}

const tenths = (value) => value.toFixed(1);

function makeTables() {
  const { units, channels, roots, causes, run } = data;
  makeTable(byId("units-table"), {
    rows: units.ranked, found: isFound, unit: (each) => each,
    columns: [
      { title: "unit", value: (each) => units.name[each], show: (each) => unitLink(each) },
      ...causes.map(({ id, label, meaning }) => ({ title: label, meaning, value: (each) => units[id][each] })),
      { title: "mostly", value: (each) => (units.mostly[each] === null ? "" : farEnd(each, units.mostly[each])) },
      { title: "wired at", value: (each) => units.place[each] },
    ],
  });
  const waited = (each) => channels.empty[each] + channels.full[each];
  makeTable(byId("channels-table"), {
    rows: channels.name.map((_, each) => each).sort((a, b) => waited(b) - waited(a) || a - b),
    found: (each) => isFound(channels.producer[each]) || isFound(channels.consumer[each]),
    columns: [
      { title: "from", value: (each) => units.name[channels.producer[each]], show: (each) => unitLink(channels.producer[each]) },
      { title: "to", value: (each) => units.name[channels.consumer[each]], show: (each) => unitLink(channels.consumer[each]) },
      { title: "depth", value: (each) => channels.depth[each] },
      { title: "elements", meaning: "values dequeued", value: (each) => channels.elements[each] },
      { title: causes[data.waits[0]].label, meaning: "cycles its reader waited for an element", value: (each) => channels.empty[each] },
      { title: causes[data.waits[1]].label, meaning: "cycles its writer waited for a slot or a credit", value: (each) => channels.full[each] },
    ],
  });
  const stalled = data.charged.reduce((sum, [, cycles]) => sum + cycles, 0);
  const rootColumn = (title) => ({ title, value: ([root]) => roots[root].name, show: ([root]) => rootName(root) });
  const ofRoot = ([root]) => !view.query.trim() || (roots[root].unit >= 0 && isFound(roots[root].unit));
  makeTable(byId("roots-table"), {
    rows: data.charged, found: ofRoot,
    columns: [rootColumn("root"), { title: "cycles", value: ([, cycles]) => cycles },
      { title: "%", value: ([, cycles]) => (100 * cycles) / stalled, digits: tenths },
      { title: "units stalled", value: ([root]) => roots[root].units }],
  });
  makeTable(byId("path-table"), {
    rows: data.path, found: ofRoot,
    columns: [rootColumn("through"), { title: "cycles", value: ([, cycles]) => cycles },
      { title: "%", value: ([, cycles]) => (100 * cycles) / Math.max(1, run.cycles), digits: tenths }],
  });
  makeTable(byId("phases-table"), {
    rows: data.phases,
    columns: [{ title: "from", value: ([start]) => start, show: ([start, end]) => make("button", { class: "link", onclick: () => show(start, end) }, number(start)) },
      { title: "to", value: ([, end]) => end },
      { title: "% of it", value: ([, , , share]) => share, digits: tenths },
      { title: "mostly through", value: ([, , root]) => roots[root].name, show: ([, , root]) => rootName(root) }],
  });
}

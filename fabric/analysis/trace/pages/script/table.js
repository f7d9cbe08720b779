// Tables that are sorted by a click on a column, searched, and have a row for each family.

const PAGE = 20;

/**
 * Makes a table in `place`. A column has a title and value(row). A column of names also has
 * show(row), an element. The row of a family has the sum of a column with `sum`, otherwise the
 * median and the range. found(row): whether it matches the search. chosen(row): whether it is
 * highlighted. Both change with `parts` of the view. family(row): the title of its family, or null.
 * Rows with last(row) are one family at the end, titled `lastTitle`.
 */
function makeTable(place, { rows, columns, found, chosen = () => false, parts = ["rows"], family = () => null, last = () => false, lastTitle = "" }) {
  let sorted = rows;
  let by = -1;
  let down = true;
  let shown = PAGE;
  let isFlat = false;
  const opened = new Set();
  const body = make("tbody");
  const note = make("p", { class: "quiet more" });
  const unfold = make("button", { class: "unfold", onclick: () => { isFlat = !isFlat; draw(); } });
  const isNumber = columns.map(({ value }) => rows.some((row) => typeof value(row) === "number"));
  const heads = columns.map(({ title, meaning = "" }, n) => make("th", { class: isNumber[n] ? "n" : "", title: meaning, "aria-sort": "none" },
    make("button", { onclick: () => sortBy(n) }, ...breakable(title))));
  place.append(make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)), note, unfold);
  unfold.hidden = familiesOf(rows).every((each) => each.rows.length < 2);

  function sortBy(n) {
    down = by === n ? !down : isNumber[n];
    by = n;
    heads.forEach((head, each) => head.setAttribute("aria-sort", each !== n ? "none" : down ? "descending" : "ascending"));
    sorted = inOrder(rows, (row) => columns[n].value(row));
    draw();
  }

  function inOrder(things, value) {
    const compare = isNumber[by] ? (a, b) => (value(a) ?? -1) - (value(b) ?? -1) : (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
    return things.slice().sort((a, b) => (down ? -1 : 1) * compare(a, b));
  }

  /** Families with their rows, in the order of first rows; a row without a family is one alone. */
  function familiesOf(some) {
    const known = new Map();
    for (const row of some) {
      const key = last(row) ? lastTitle : family(row) ?? row;
      if (known.has(key)) known.get(key).rows.push(row);
      else known.set(key, { key, rows: [row], isLast: last(row) });
    }
    return lastAtEnd([...known.values()]);
  }

  function single(row, kind = "") {
    const names = [kind, chosen(row) ? "chosen" : ""].filter(Boolean).join(" ");
    return make("tr", names ? { class: names } : {}, ...columns.map(({ value, show, digits = number }, n) => {
      const each = show ? show(row) : value(row);
      return make("td", isNumber[n] ? { class: "n" } : {}, typeof each === "number" ? digits(each) : each ?? "");
    }));
  }

  function folded({ key, rows: members }) {
    const turn = () => { if (!opened.delete(key)) opened.add(key); draw(); };
    const cells = columns.map(({ value, sum, digits = number }, n) => {
      if (!n) return make("td", {}, make("button", { class: "link", "aria-expanded": opened.has(key), onclick: turn }, `${opened.has(key) ? "▾" : "▸"} ${key} × ${number(members.length)}`));
      const values = members.map(value);
      if (!isNumber[n]) return make("td", {}, values.every((each) => each === values[0]) ? values[0] : "");
      const known = values.filter((each) => each !== null).sort((a, b) => a - b);
      if (!known.length) return make("td", { class: "n" });
      if (sum) return make("td", { class: "n" }, digits(known.reduce((all, each) => all + each, 0)));
      const [least, most] = [known[0], known[known.length - 1]];
      const spread = least === most ? [] : [make("div", { class: "quiet" }, `${digits(least)} to ${digits(most)}`)];
      return make("td", { class: "n" }, digits(known[Math.floor((known.length - 1) / 2)]), ...spread);
    });
    return make("tr", members.some(chosen) ? { class: "family chosen" } : { class: "family" }, ...cells);
  }

  function lines(fitting) {
    if (isFlat || (view.query ?? "").trim()) return fitting.map((row) => () => single(row));
    return inFamilies(fitting).flatMap((each) => {
      if (each.rows.length < 2 && !each.isLast) return [() => single(each.rows[0])];
      const members = opened.has(each.key) ? each.rows.map((row) => () => single(row, "member")) : [];
      return [() => folded(each), ...members];
    });
  }

  /** Families sorted by the greatest value of the chosen column, or by its sum. */
  function inFamilies(fitting) {
    const all = familiesOf(fitting);
    if (by < 0 || !isNumber[by]) return all;
    const { value, sum } = columns[by];
    const weight = ({ rows: members }) => members.map(value).reduce((one, other) => (sum ? one + other : Math.max(one ?? -1, other ?? -1)));
    return lastAtEnd(inOrder(all, weight));
  }

  function draw() {
    const fitting = found ? sorted.filter(found) : sorted;
    const all = lines(fitting);
    // Rows unfolded by a click do not count against the limit.
    const most = shown + fitting.filter((row) => opened.has(family(row)) || (last(row) && opened.has(lastTitle))).length;
    body.replaceChildren(...all.slice(0, most).map((line) => line()));
    unfold.textContent = isFlat ? "fold families" : "unfold all";
    note.replaceChildren();
    if (all.length > most || fitting.length < rows.length) {
      note.append(`${number(Math.min(most, all.length))} of ${counted(all.length, "row")} `);
    }
    if (all.length > most) note.append(make("button", { onclick: () => { shown += 10 * PAGE; draw(); } }, `show ${number(Math.min(10 * PAGE, all.length - most))} more`));
  }

  watch((what) => {
    if (parts.some((part) => what.has(part))) draw();
  });
  draw();
}

const lastAtEnd = (families) => families.sort((a, b) => a.isLast - b.isLast);

/** The parts of a name such as `hardware.hbm.channels`; a line may be broken between them. */
function breakable(name) {
  return name.split(/(?<=\.)/).flatMap((each, n) => (n ? [make("wbr"), each] : [each]));
}

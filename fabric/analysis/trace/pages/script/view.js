// The view: a range of cycles, a cursor, a unit, and a search text.

let data;
const view = {
  from: 0, to: 1, cursor: null, unit: null, cycle: null, group: null, query: "", order: "ranked",
};

/** Shows the cycles from `from` to `to`: at least 8, and all inside of the run. */
function show(from, to) {
  const { first, last } = data.run;
  const least = Math.min(last - first, 8);
  const width = Math.min(Math.max(to - from, least), last - first);
  from = Math.min(Math.max((from + to - width) / 2, first), last - width);
  view.from = from;
  view.to = Math.max(from + width, from + 1);
  changed("range");
}

/** Shows `factor` times as many cycles; cycle `at` stays in place. */
function zoom(factor, at = (view.from + view.to) / 2) {
  show(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

function pan(share) {
  const by = (view.to - view.from) * share;
  const kept = Math.min(Math.max(by, data.run.first - view.from), data.run.last - view.to);
  show(view.from + kept, view.to + kept);
}

const showAll = () => show(data.run.first, data.run.last);

function pointAt(cycle) {
  view.cursor = cycle;
  changed("cursor");
}

/** Chooses a unit, and the cycle in which to follow its waits; or several units, without a cycle. */
function choose(unit, cycle = null, group = null) {
  view.unit = unit;
  view.group = group;
  view.cycle = cycle;
  changed("unit");
}

const isChosen = (unit) => unit === view.unit || (view.group ?? []).includes(unit);

function search(query) {
  byId("search").value = query;
  view.query = query;
  changed("rows");
}

/** Whether a unit matches the search. */
function isFound(unit) {
  const words = view.query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const { name, operator, place } = data.units;
  const text = `${name[unit]} ${operator[unit]} ${place[unit]}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The units to show, in the chosen order. */
function unitsShown() {
  const order = view.order === "ranked" ? data.units.ranked : data.units.name.map((_, unit) => unit);
  return order.filter((unit) => isTraced(unit) && isFound(unit));
}

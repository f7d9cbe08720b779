// A row for each family, which a click opens to its units, down to single waits. Each pixel has the
// colour of its longest state.

const LANE = 17;
let laneRows = [];
const openFamilies = new Set();

const rowOf = (unit) => ({ units: [unit], label: data.units.name[unit], family: null });

/** The rows: families in the order of their first units, with the units of open families; in a search, units. */
function rowsShown() {
  const found = unitsShown();
  if (view.query.trim()) return found.map(rowOf);
  const [families, absent] = [new Map(), []];
  for (const unit of found) {
    const family = data.units.family[unit];
    if (data.units.absent[unit]) absent.push(unit);
    else if (!families.get(family)?.push(unit)) families.set(family, [unit]);
  }
  if (absent.length) families.set("never got an element", absent);
  return [...families].flatMap(([family, units]) => {
    if (units.length < 2) return units.map(rowOf);
    const isOpen = openFamilies.has(family);
    const label = `${isOpen ? "▾" : "▸"} ${short(family, narrowPage.matches ? 7 : 22)} × ${number(units.length)}`;
    return [{ units, label, family }, ...(isOpen ? units.map(rowOf) : [])];
  });
}

/** Pixels of time that each state takes in each pixel of a row. */
let spent = new Float64Array(0);

function clearSpent(width) {
  const size = width * data.causes.length;
  if (spent.length < size) spent = new Float64Array(size);
  else spent.fill(0, 0, size);
}

function spend(width, from, perPixel, start, end, state) {
  const a = Math.max((start - from) / perPixel, 0);
  const b = Math.min((end - from) / perPixel, width);
  if (b <= a) return;
  const states = data.causes.length;
  const first = Math.floor(a);
  const last = Math.floor(b);
  if (first === last) {
    spent[first * states + state] += b - a;
    return;
  }
  spent[first * states + state] += first + 1 - a;
  for (let pixel = first + 1; pixel < last; pixel++) spent[pixel * states + state] += 1;
  if (last < width) spent[last * states + state] += b - last;
}

/** Paints a row: the states of its units together, with words if it is one unit. */
function paintUnits(strip, units, top, height) {
  const { ctx, ratio } = strip;
  const width = Math.floor(strip.width * ratio);
  const perPixel = (view.to - view.from) / width;
  clearSpent(width);
  const stretch = data.edges[1] - data.edges[0];
  const labels = [];
  for (const unit of units) {
    const [first, last] = data.wait.rows[unit];
    const count = first < 0 ? Infinity : waitsShown(first, last);
    const coarse = first < 0 || (count > 4 * width && stretch <= 2 * perPixel);
    if (coarse) spendStretches(unit, width, perPixel);
    else spendWaits(unit, width, perPixel, labels);
  }
  paintSpent(strip, width, top, height);
  const isCoarse = units.some((unit) => data.wait.rows[unit][0] < 0);
  if (isCoarse && stretch > 6 * perPixel) paintHatch(strip, top, height);
  if (units.length > 1) return;
  ctx.font = `10px ${css("--font")}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (const { from, to, state, text } of labels) {
    const left = Math.max(strip.x(from), gutter()) + 4;
    const room = Math.min(strip.x(to), gutter() + strip.width) - left - 2;
    ctx.fillStyle = textOn(colours[state]);
    if (room > 30) ctx.fillText(short(text, Math.floor(room / 5.9)), left, top + height / 2);
  }
}

const waitsShown = (first, last) => {
  const { start, end } = data.wait;
  return after(start, view.to, first, last) - after(end, view.from, first, last);
};

function spendStretches(unit, width, perPixel) {
  const bins = data.edges.length - 1;
  const begin = Math.max(0, after(data.edges, view.from) - 1);
  for (let bin = begin; bin < bins && data.edges[bin] < view.to; bin++) {
    const state = data.columns.states[unit * bins + bin];
    spend(width, view.from, perPixel, data.edges[bin], data.edges[bin + 1], state);
  }
}

function spendWaits(unit, width, perPixel, labels) {
  const { start, end, port } = data.wait;
  const [first, last] = data.wait.rows[unit];
  let n = after(end, view.from, first, last);
  let cycle = n > first ? end[n - 1] : data.run.first;
  const put = (from, to, state, channel) => {
    spend(width, view.from, perPixel, from, to, state);
    if (to - from < 60 * perPixel) return;
    const text = channel < 0 ? data.causes[state].label : `${data.causes[state].label} ${farEnd(unit, channel)}`;
    labels.push({ from, to, state, text });
  };
  for (; n < last && start[n] < view.to; n++) {
    put(cycle, start[n], BUSY, -1);
    const { state, channel } = awaited(unit, port[n]);
    put(start[n], end[n], state, channel);
    cycle = end[n];
  }
  if (n < last) {
    put(cycle, Math.min(start[n], view.to), BUSY, -1);
    return;
  }
  const worksTo = Math.max(cycle, Math.min(data.units.end[unit], data.run.last));
  put(cycle, worksTo, BUSY, -1);
  put(worksTo, data.run.last, IDLE, -1);
}

/** Paints a row by `spent`; neighbouring pixels of one colour are one rectangle. */
function paintSpent({ ctx, ratio }, width, top, height) {
  const states = data.causes.length;
  const left = gutter();
  let begun = 0;
  let before = -1;
  for (let pixel = 0; pixel <= width; pixel++) {
    let state = -1;
    if (pixel < width) {
      let most = 1e-9;
      for (let each = 0; each < states; each++) {
        const time = spent[pixel * states + each];
        if (time > most) [most, state] = [time, each];
      }
    }
    if (state === before && pixel < width) continue;
    if (before >= 0) {
      ctx.fillStyle = colours[before];
      ctx.fillRect(left + begun / ratio, top + 1, (pixel - begun) / ratio, height - 2);
    }
    [begun, before] = [pixel, state];
  }
}

/** Marks a row without single waits in the page. */
function paintHatch(strip, top, height) {
  const { ctx } = strip;
  ctx.save();
  ctx.beginPath();
  ctx.rect(gutter(), top + 1, strip.width, height - 2);
  ctx.clip();
  ctx.strokeStyle = css("--ground");
  ctx.globalAlpha = 0.5;
  ctx.beginPath();
  for (let x = gutter() - height; x < gutter() + strip.width; x += 7) {
    ctx.moveTo(x, top + height);
    ctx.lineTo(x + height, top);
  }
  ctx.stroke();
  ctx.restore();
}

/** The critical path as a row: work in its colour, memories in theirs, hops between units grey. */
function paintPath(strip, top, height) {
  const width = Math.floor(strip.width * strip.ratio);
  const perPixel = (view.to - view.from) / width;
  const { end, root } = data.step;
  clearSpent(width);
  for (let n = after(end, view.from); n < end.length; n++) {
    const start = n ? end[n - 1] : data.run.first;
    if (start >= view.to) break;
    spend(width, view.from, perPixel, start, end[n], data.roots[root[n]].state);
  }
  paintSpent(strip, width, top, height);
}

function stepAt(cycle) {
  const n = after(data.step.end, cycle);
  if (n >= data.step.end.length) return null;
  return { from: n ? data.step.end[n - 1] : data.run.first, to: data.step.end[n], root: data.roots[data.step.root[n]] };
}

/** The units of a family by their state in a cycle. */
function familyTip({ units, family }, cycle) {
  const head = [`${family} × ${number(units.length)}`, "click the name for its units"];
  if (cycle === null) return head;
  const counts = data.causes.map(() => 0);
  for (const unit of units) counts[doing(unit, cycle)?.state ?? mostlyIn(unit, cycle)]++;
  return [...head, `cycle ${number(cycle)}: ${data.causes.flatMap(({ label }, n) => (counts[n] ? [`${label} ${number(counts[n])}`] : [])).join(", ")}`];
}

const binAt = (cycle) => Math.min(after(data.edges, cycle), data.edges.length - 1) - 1;
const mostlyIn = (unit, cycle) => data.columns.states[unit * (data.edges.length - 1) + binAt(cycle)];

function unitTip(unit, cycle) {
  const { name, operator, place } = data.units;
  const head = [name[unit], `${operator[unit]}, ${place[unit]}`];
  if (cycle === null) return [...head, "click: its channels and waits"];
  const now = doing(unit, cycle);
  if (!now) {
    const bin = binAt(cycle);
    return [...head, `cycles ${number(data.edges[bin])} to ${number(data.edges[bin + 1])}: mostly ${data.causes[mostlyIn(unit, cycle)].label}`,
      "this page has no single waits of this unit"];
  }
  const what = data.causes[now.state].label + (now.channel < 0 ? "" : ` ${farEnd(unit, now.channel)}`);
  const lines = [...head, what, `cycles ${number(now.from)} to ${number(now.to)}: ${number(now.to - now.from)}`];
  if (now.open) lines.push("to the end of the run");
  else if (now.channel >= 0 && now.until < now.to) lines.push(`in flight from ${number(now.until)} on`);
  return lines;
}

function makePath() {
  const path = makeStrip(byId("path-lane"), {
    title: "Roots of the critical path", height: LANE, most: LANE, hasAxis: false,
    rows: () => 1,
    label: () => ["critical path"],
    marked: () => true,
    paint: (strip, _, top) => paintPath(strip, top, LANE),
    tipLines: (_, cycle) => {
      const step = cycle === null ? null : stepAt(cycle);
      return step ? ["critical path", `through ${step.root.name}`,
        `cycles ${number(step.from)} to ${number(step.to)}: ${number(step.to - step.from)}`] : ["critical path"];
    },
    clicked: (_, cycle) => {
      const step = cycle === null ? null : stepAt(cycle);
      if (step && step.root.unit >= 0) choose(step.root.unit, cycle);
    },
  });
  watch(() => path.draw());
}

function makeLanes() {
  const lanes = makeStrip(byId("lanes"), {
    title: "States of families and units over the cycles of the run",
    height: LANE, most: 30 * LANE,
    rows: () => laneRows.length,
    label: (row) => [laneRows[row].label],
    marked: (row) => laneRows[row].units.some(isChosen),
    paint: (strip, row, top) => paintUnits(strip, laneRows[row].units, top, LANE),
    tipLines: (row, cycle) => (laneRows[row].family === null ? unitTip(laneRows[row].units[0], cycle) : familyTip(laneRows[row], cycle)),
    clicked: (row, cycle) => {
      const { units, family } = laneRows[row];
      if (family === null) choose(units[0], cycle);
      else if (cycle === null) turn(family);
      else chooseGroup(units, family, cycle);
    },
  });
  const turn = (family) => {
    if (!openFamilies.delete(family)) openFamilies.add(family);
    laneRows = rowsShown();
    lanes.sized();
    lanes.draw();
  };
  byId("rows-all").addEventListener("click", () => search(""));
  watch((what) => {
    if (what.has("rows")) {
      laneRows = rowsShown();
      const all = data.units.name.length;
      const shown = unitsShown().length;
      const folded = laneRows.filter(({ family }) => family !== null).length;
      byId("rows").textContent = (shown === all ? counted(all, "unit") : `${number(shown)} of ${counted(all, "unit")}`)
        + (folded ? `; a family of units is one row, opened by a click on its name` : "");
      byId("rows-all").hidden = !view.query.trim();
      lanes.sized();
      lanes.place.scrollTop = 0;
    }
    if (what.has("size")) lanes.sized();
    if (what.has("unit")) scrollTo(lanes);
    lanes.draw();
  });
}

/** Scrolls to the chosen unit's row. */
function scrollTo({ place, strip }) {
  const top = laneRows.findLastIndex(({ units }) => units.some(isChosen)) * LANE;
  if (top >= 0 && (top < place.scrollTop || top + LANE > place.scrollTop + strip.height - AXIS)) {
    place.scrollTop = top - strip.height / 2;
  }
}

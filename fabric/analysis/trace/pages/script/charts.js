// Charts over the same cycles, by uPlot: all units by state, the HBM, elements in channels.

const charts = [];

/**
 * Makes a chart of steps over the same cycles as the lanes, linked to the shared cursor.
 *
 * values() is called again for each range if `isMoving`.
 */
function makeChart(place, { height, series, values, most, digits = number, isMoving = false }) {
  const steps = [...Array(10).keys()].flatMap((power) => [1, 2, 5].map((by) => by * 10 ** power));
  const axis = { stroke: () => css("--muted"), grid: { stroke: () => css("--grid"), width: 1 }, ticks: { show: false }, font: `11px ${css("--font")}` };
  const options = {
    height, padding: [8, RIGHT, 0, 0],
    scales: { x: { time: false }, y: { range: () => [0, most()] } },
    axes: [
      { ...axis, size: 24, space: 110, values: (_, cycles) => cycles.map(number) },
      { ...axis, size: gutter, space: 26, incrs: steps, values: (_, found) => found.map(digits) },
    ],
    series: [
      { label: "cycle", value: (_, cycle) => (cycle === null ? "" : number(cycle)) },
      ...series,
    ],
    cursor: {
      y: false, drag: { x: true, y: false, setScale: false }, points: { show: false },
      bind: { dblclick: () => () => { showAll(); return null; } },
    },
    legend: { live: true },
    hooks: {
      setSelect: [(chart) => {
        const { left, width } = chart.select;
        if (width > 4) show(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
        chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      }],
    },
  };
  const entry = { values, place, isMoving };
  // A legend's marks keep their colours, so a change of colours makes a new chart.
  entry.draw = () => {
    entry.chart?.destroy();
    const chart = new uPlot({ ...options, width: place.clientWidth }, values(), place);
    chart.over.addEventListener("pointermove", (event) => pointAt(Math.floor(chart.posToVal(event.offsetX, "x"))));
    chart.over.addEventListener("pointerleave", () => pointAt(null));
    zoomsByWheel(chart.over, (event) => chart.posToVal(event.offsetX, "x"));
    entry.chart = chart;
  };
  entry.draw();
  charts.push(entry);
}

function watchCharts() {
  watch((what) => {
    for (const entry of charts) {
      const { values, place, isMoving } = entry;
      if (what.has("theme")) entry.draw();
      const { chart } = entry;
      const width = place.clientWidth;
      if (what.has("size") && width && width !== chart.width) chart.setSize({ width, height: chart.height });
      if (what.has("range") || what.has("theme")) {
        if (isMoving) chart.setData(values(), false);
        chart.setScale("x", { min: view.from, max: view.to });
      }
      const left = view.cursor === null ? -10 : chart.valToPos(view.cursor, "x");
      chart.setCursor({ left, top: left < 0 ? -10 : 1 }, false);
    }
  });
}

const stepped = (options) => uPlot.paths.stepped(options);
/** Returns the columns of steps that begin at edges; the last value is repeated at the last edge. */
const overEdges = (edges, values) => [edges, [...values, values[values.length - 1] ?? 0]];

/** Stacked areas that add up to 100 %; colourOf(n) is the colour of the n-th of `things`. */
function makeStack(place, { edges, shares, things, colourOf }) {
  const bins = edges.length - 1;
  const order = things.map((_, n) => n);
  const tops = order.map(() => new Float64Array(bins + 1));
  for (let bin = 0; bin <= bins; bin++) {
    const at = Math.min(bin, bins - 1);
    let top = 0;
    for (const n of order) {
      top += shares[n][at];
      tops[n][bin] = top;
    }
  }
  const series = [...order].reverse().map((n) => ({
    label: things[n].label,
    stroke: () => colourOf(n), fill: () => colourOf(n), width: 0,
    paths: stepped({ align: 1 }), points: { show: false },
    value: (_, value, __, bin) => (bin === null || bin === undefined ? "" : `${shares[n][Math.min(bin, bins - 1)].toFixed(1)} %`),
  }));
  const columns = [edges, ...[...order].reverse().map((n) => tops[n])];
  makeChart(place, { height: 190, series, values: () => columns, most: () => 100, digits: (share) => `${share} %` });
}

/** Shares of all units by state. */
function makeOverview() {
  const { edges, shares, causes } = data;
  makeStack(byId("overview"), { edges, shares, things: causes, colourOf: (state) => colours[state] });
}

function makeMemory() {
  const { memory } = data;
  const place = byId("memory");
  if (!memory) {
    place.replaceChildren(make("p", { class: "quiet" }, "The program does not use the HBM."));
    return;
  }
  byId("memory-note").textContent = memory.note;
  const columns = overEdges(memory.edges, memory.rates);
  const { state, peak, mean } = memory;
  const tall = Math.max(peak, ...memory.rates) * 1.06 || 1;
  makeChart(place, {
    height: 190,
    series: [
      { label: "bytes a cycle", stroke: () => colours[state], fill: () => colours[state] + "99", width: 1,
        paths: stepped({ align: 1 }), points: { show: false }, value: (_, value) => (value === null ? "" : value.toFixed(1)) },
      { label: `peak ${number(peak)}`, stroke: () => css("--text"), dash: [6, 4], width: 1, points: { show: false }, value: () => "" },
      { label: `mean ${mean.toFixed(1)}`, stroke: () => colours[state], dash: [2, 3], width: 1, points: { show: false }, value: () => "" },
    ],
    values: () => [...columns, columns[0].map(() => peak), columns[0].map(() => mean)],
    most: () => tall,
  });
}

/** Returns cycles, and the elements that a channel holds from each on; stretches if there are many. */
function heldBy(entry) {
  const [begin, end] = transfersShown(entry.channel);
  if (data.transfer.rows[entry.channel][0] < 0 || end - begin > MANY) return overEdges(data.edges, entry.most);
  const { sent, taken } = data.transfer;
  const cycles = [view.from];
  const held = [0];
  let [coming, going] = [begin, begin];
  while (coming < end || (going < end && taken[going] <= view.to)) {
    const cycle = Math.min(coming < end ? sent[coming] : Infinity, going < end ? taken[going] : Infinity);
    let level = held[held.length - 1];
    while (coming < end && sent[coming] === cycle) { coming++; level++; }
    while (going < end && taken[going] === cycle) { going++; level--; }
    if (cycle <= view.from) held[0] = level;
    else { cycles.push(cycle); held.push(level); }
  }
  cycles.push(Math.max(view.to, cycles[cycles.length - 1] + 1));
  held.push(held[held.length - 1]);
  return [cycles, held];
}

const HELD = 22;

/** Makes a row for each channel: the fuller, the stronger its colour; another colour if it is full. */
function makeOccupancy() {
  const place = byId("occupancy");
  const { channels, causes, waits } = data;
  const { producer, consumer, depth, name } = channels;
  if (!data.held.length) {
    place.append(make("p", { class: "quiet" }, "No unit waits at a channel."));
    return;
  }
  const strip = makeStrip(place, {
    title: "Fill of the channels with the longest waits",
    height: HELD, most: HELD * data.held.length,
    rows: () => data.held.length,
    label: (row) => [`${data.units.name[producer[data.held[row].channel]]} → ${data.units.name[consumer[data.held[row].channel]]}`],
    marked: () => false,
    paint: (strip, row, top) => paintOccupancy(strip, data.held[row], top),
    tipLines: (row, cycle) => {
      const { channel, most } = data.held[row];
      const lines = [name[channel], `waited at for ${counted(channels.empty[channel], "cycle")} ${causes[waits[0]].label}, ${number(channels.full[channel])} ${causes[waits[1]].label}`];
      if (cycle === null) return lines;
      const bin = Math.max(0, after(data.edges, cycle, 0, data.edges.length) - 1);
      return [...lines, `holds at most ${number(most[Math.min(bin, most.length - 1)])} of ${number(depth[channel])} around cycle ${number(cycle)}`];
    },
    clicked: (row, cycle) => choose(consumer[data.held[row].channel], cycle),
  });
  watch((what) => {
    if (what.has("size")) strip.sized();
    if (["size", "range", "cursor", "theme", "unit"].some((each) => what.has(each))) strip.draw();
  });
}

function paintOccupancy({ ctx, x }, entry, top) {
  const [cycles, held] = heldBy(entry);
  const depth = data.channels.depth[entry.channel];
  const fullest = colours[data.waits[1]];
  ctx.fillStyle = css("--panel");
  const right = x(view.to);
  ctx.fillRect(gutter(), top + 2, right - gutter(), HELD - 4);
  for (let n = 0; n < cycles.length - 1; n++) {
    if (!held[n] || cycles[n] > view.to || cycles[n + 1] < view.from) continue;
    const left = Math.max(x(cycles[n]), gutter());
    ctx.fillStyle = held[n] >= depth ? fullest : mixed(css("--panel"), fullest, 0.15 + (0.5 * held[n]) / depth);
    ctx.fillRect(left, top + 2, Math.max(Math.min(x(cycles[n + 1]), right) - left, 1), HELD - 4);
  }
}

// The channels of the chosen unit: a row for each slot, and a bar for each transfer, from its send
// to its dequeue.

const BAND = 40;
const MANY = 4000;
let bandChannels = [];

const transfersShown = (channel) => {
  const [first, last] = data.transfer.rows[channel];
  const { sent, taken } = data.transfer;
  return first < 0 ? [0, 0] : [after(taken, view.from, first, last), after(sent, view.to, first, last)];
};

function paintBand(strip, channel, top) {
  const { ctx } = strip;
  ctx.fillStyle = css("--panel");
  ctx.fillRect(gutter(), top + 2, strip.width, BAND - 4);
  const [first, last] = data.transfer.rows[channel];
  if (first < 0) {
    ctx.fillStyle = css("--muted");
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.font = `11px ${css("--font")}`;
    ctx.fillText("this page has no single transfers of this channel", gutter() + 8, top + BAND / 2);
    return;
  }
  const [begin, end] = transfersShown(channel);
  if (end - begin > MANY) paintHeld(strip, channel, top, begin, end);
  else paintBars(strip, channel, top, begin, end, first);
}

function paintBars({ ctx, x }, channel, top, begin, end, first) {
  const { sent, taken, stop } = data.transfer;
  const rows = Math.min(data.channels.depth[channel], BAND - 8);
  const height = (BAND - 8) / rows;
  const gap = height > 4 ? 1 : 0;
  for (let n = begin; n < end; n++) {
    const left = Math.max(x(sent[n]), gutter());
    const right = Math.min(x(Math.min(taken[n], data.run.last)), gutter() + (x(view.to) - x(view.from)));
    const y = top + 4 + ((n - first) % rows) * height;
    ctx.fillStyle = css((n - first) % 2 ? "--bar" : "--bar2");
    ctx.fillRect(left, y, Math.max(right - left, 1), height - gap);
    if (stop[n]) {
      ctx.fillStyle = css("--text");
      ctx.fillRect(left, y, Math.min(2, right - left + 1), height - gap);
    }
  }
}

/** Paints the mean number of held elements in each pixel, because single bars would overlap. */
function paintHeld({ ctx, ratio, width }, channel, top, begin, end) {
  const pixels = Math.floor(width * ratio);
  const perPixel = (view.to - view.from) / pixels;
  const held = new Float64Array(pixels + 1);
  const { sent, taken } = data.transfer;
  const add = (at, by) => {
    const pixel = Math.min(Math.max((at - view.from) / perPixel, 0), pixels);
    const whole = Math.floor(pixel);
    held[whole] += by * (whole + 1 - pixel);
    if (whole < pixels) held[whole + 1] += by * (pixel - whole);
  };
  for (let n = begin; n < end; n++) {
    add(sent[n], 1);
    add(Math.min(taken[n], data.run.last), -1);
  }
  ctx.fillStyle = css("--bar");
  const room = BAND - 8;
  for (let pixel = 0, level = 0; pixel < pixels; pixel++) {
    level += held[pixel];
    const height = (room * level) / data.channels.depth[channel];
    ctx.fillRect(gutter() + pixel / ratio, top + BAND - 4 - height, 1 / ratio, height);
  }
}

/** The transfer at a place in a band; -1 if there is none. */
function transferAt(channel, cycle, y) {
  const [first] = data.transfer.rows[channel];
  const [begin, end] = transfersShown(channel);
  if (first < 0 || end - begin > MANY) return -1;
  const rows = Math.min(data.channels.depth[channel], BAND - 8);
  const row = Math.floor(((y - 4) * rows) / (BAND - 8));
  const { sent, taken } = data.transfer;
  const slack = (view.to - view.from) / 400;
  for (let n = begin; n < end && sent[n] <= cycle + slack; n++) {
    if ((n - first) % rows === row && cycle <= taken[n] + slack) return n;
  }
  return -1;
}

function bandTip(channel, cycle, y) {
  const { name, depth } = data.channels;
  const lines = [name[channel], `depth ${number(depth[channel])}`];
  if (cycle === null) return lines;
  const n = transferAt(channel, cycle, y);
  if (n < 0) return lines;
  const { rows, sent, taken, stop, sendWait, receiveWait } = data.transfer;
  lines.push(`element ${number(n - rows[channel][0])}${stop[n] ? `, ${stop[n] % 2 ? "bare " : ""}stop ${stop[n] >> 1}` : ""}`);
  lines.push(`sent in cycle ${number(sent[n])}${sendWait[n] ? `, after a wait of ${number(sendWait[n])}` : ""}`);
  lines.push(taken[n] === Infinity ? "never dequeued"
    : `dequeued in cycle ${number(taken[n])}${receiveWait[n] ? `, after a wait of ${number(receiveWait[n])}` : ""}`);
  return lines;
}

function makeBands() {
  const isInput = (row) => row < (data.inputs[view.unit] ?? []).length;
  const bands = makeStrip(byId("bands"), {
    title: "The transfers of the chosen unit's channels",
    height: BAND, most: 8 * BAND,
    rows: () => bandChannels.length,
    label: (row) => {
      const channel = bandChannels[row];
      const peer = isInput(row) ? data.channels.producer[channel] : data.channels.consumer[channel];
      return [`${isInput(row) ? "from" : "to"} ${data.units.name[peer]}`, `depth ${number(data.channels.depth[channel])}`];
    },
    marked: () => false,
    paint: (strip, row, top) => paintBand(strip, bandChannels[row], top),
    tipLines: (row, cycle, y) => bandTip(bandChannels[row], cycle, y),
    clicked: (row, cycle) => {
      const channel = bandChannels[row];
      choose(isInput(row) ? data.channels.producer[channel] : data.channels.consumer[channel], cycle);
    },
  });
  watch((what) => {
    if (what.has("unit")) {
      const unit = view.unit;
      bandChannels = unit === null ? [] : [...data.inputs[unit], ...data.outputs[unit]];
      byId("bands-of").hidden = unit === null;
      if (unit !== null) byId("bands-title").textContent = `Transfers of ${data.units.name[unit]}`;
    }
    if (what.has("unit") || what.has("size")) bands.sized();
    if (view.unit !== null) bands.draw();
  });
}

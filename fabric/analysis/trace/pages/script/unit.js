// A unit's state in each cycle, from its waits. All other cycles up to its end are work.

const BUSY = 0;
const IDLE = 5;

/** Returns the cause of a wait, its channel and the unit at the other end; -1 and -1 for a memory. */
function awaited(unit, port) {
  const inputs = data.inputs[unit];
  const outputs = data.outputs[unit];
  if (port < inputs.length) {
    return { state: data.waits[0], channel: inputs[port], peer: data.channels.producer[inputs[port]] };
  }
  const output = port - inputs.length;
  if (output < outputs.length) {
    return { state: data.waits[1], channel: outputs[output], peer: data.channels.consumer[outputs[output]] };
  }
  return { state: data.waits[output - outputs.length], channel: -1, peer: -1 };
}

/** Returns "from PRODUCER" or "to CONSUMER": the other end of `channel`. */
function farEnd(unit, channel) {
  const { producer, consumer } = data.channels;
  return consumer[channel] === unit
    ? `from ${data.units.name[producer[channel]]}`
    : `to ${data.units.name[consumer[channel]]}`;
}

const isDetailed = (unit) => data.wait.rows[unit][0] >= 0;
const isTraced = (unit) => data.units.busy[unit] !== null;

/** Shares of units' cycles by state; untraced units do not count. */
function sharesOf(units) {
  const traced = units.filter(isTraced);
  const whole = Math.max(1, data.run.cycles * traced.length);
  return data.causes.map(({ id }) => traced.reduce((sum, unit) => sum + data.units[id][unit], 0) / whole);
}

/**
 * Returns the state of `unit` in `cycle` with its first and last cycle, and for a wait the channel,
 * the peer, and the cycle from which the element is in flight. Null if the page lacks it.
 */
function doing(unit, cycle) {
  if (!isDetailed(unit) || !isTraced(unit)) return null;
  const { rows, start, end, way, port } = data.wait;
  const [first, last] = rows[unit];
  const next = after(start, cycle, first, last);
  const n = next - 1;
  const open = n === last - 1 && data.units.still[unit];
  if (n >= first && (cycle < end[n] || open)) {
    return { ...awaited(unit, port[n]), from: start[n], to: end[n], until: end[n] - way[n], open };
  }
  const worksTo = next < last ? start[next] : Math.min(data.units.end[unit], data.run.last);
  const from = n >= first ? end[n] : data.run.first;
  if (cycle < worksTo) return { state: BUSY, from, to: worksTo, channel: -1, peer: -1 };
  return { state: IDLE, from: Math.max(from, worksTo), to: data.run.last, channel: -1, peer: -1 };
}

/** Returns the chain of waits in `cycle`, from `unit` to a unit that works or waits for a memory. */
function chainOf(unit, cycle) {
  const chain = [];
  const seen = new Set();
  for (;;) {
    const now = doing(unit, cycle);
    const link = { unit, now, end: "" };
    chain.push(link);
    if (!isTraced(unit)) link.end = "it was not traced";
    else if (now === null) link.end = "this page has no single waits of it";
    else if (seen.has(unit)) link.end = "the chain is a loop";
    else if (now.state === IDLE) link.end = data.units.finished[unit] ? "it has ended" : "the run was stopped";
    else if (now.peer < 0) link.end = now.state === BUSY ? "it works" : "the memory serves it";
    else if (!now.open && cycle >= now.until) {
      link.end = `the awaited element or credit is in flight since cycle ${number(now.until)}`;
    }
    if (link.end) return chain;
    seen.add(unit);
    unit = now.peer;
  }
}

/** Returns the longest wait of `unit`, like doing(); null if the page lacks it. */
function longestWait(unit) {
  const [first, last] = data.wait.rows[unit];
  let longest = first;
  const { start, end } = data.wait;
  for (let n = first; n < last; n++) {
    if (end[n] - start[n] > end[longest] - start[longest]) longest = n;
  }
  return first >= 0 && first < last ? doing(unit, start[longest]) : null;
}

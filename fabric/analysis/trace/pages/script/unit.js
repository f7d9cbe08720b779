// What a unit does when, from its waits: what is no wait, up to its end, is work.

const BUSY = 0;
const IDLE = 5;

/** Returns the cause of a wait, its channel and the unit at the other end; -1 for neither. */
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

const causeOfPort = (unit, port) => {
  const output = port - data.inputs[unit].length;
  if (output < 0) return data.waits[0];
  const none = output - data.outputs[unit].length;
  return none < 0 ? data.waits[1] : data.waits[none];
};

/** Returns "from the producer" or "to the consumer": whichever `unit` is not. */
function farEnd(unit, channel) {
  const { producer, consumer } = data.channels;
  return consumer[channel] === unit
    ? `from ${data.units.name[producer[channel]]}`
    : `to ${data.units.name[consumer[channel]]}`;
}

const isDetailed = (unit) => data.wait.rows[unit][0] >= 0;
const isTraced = (unit) => data.units.busy[unit] !== null;

/**
 * Returns what `unit` does in `cycle`: its state, from when to when, and for a wait the channel,
 * the peer, and from when on what ends it is on its way. Null where the page does not have it.
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

/** Returns who waits for whom in `cycle`, from `unit` on to who works or waits for a memory. */
function chainOf(unit, cycle) {
  const chain = [];
  const seen = new Set();
  for (;;) {
    const now = doing(unit, cycle);
    const link = { unit, now, end: "" };
    chain.push(link);
    if (!isTraced(unit)) link.end = "it was not traced";
    else if (now === null) link.end = "its single waits are not in this page";
    else if (seen.has(unit)) link.end = "and so the chain comes back to itself";
    else if (now.state === IDLE) link.end = data.units.finished[unit] ? "it is at its end" : "the run was stopped";
    else if (now.peer < 0) link.end = now.state === BUSY ? "it works" : "the memory is at work for it";
    else if (!now.open && cycle >= now.until) {
      link.end = `what it waits for is on its way since cycle ${number(now.until)}`;
    }
    if (link.end) return chain;
    seen.add(unit);
    unit = now.peer;
  }
}

/** Returns the longest wait of `unit`, as doing() does; null where the page does not have it. */
function longestWait(unit) {
  const [first, last] = data.wait.rows[unit];
  let longest = first;
  const { start, end } = data.wait;
  for (let n = first; n < last; n++) {
    if (end[n] - start[n] > end[longest] - start[longest]) longest = n;
  }
  return first >= 0 && first < last ? doing(unit, start[longest]) : null;
}

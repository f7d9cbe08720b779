// Unpacks the page's data, which page.py and parts.py write.

/** Returns the figures with decoded columns. */
async function unpacked(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let n = 0; n < binary.length; n++) bytes[n] = binary.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(raw.buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + length)));
  let offset = 4 + length;
  for (const [name, about] of Object.entries(data.columns)) {
    data.columns[name] = wholeNumbers(raw, offset, about.count, about.bytes);
    offset += about.count * about.bytes;
  }
  wirePorts(data);
  data.wait = waitsOf(data);
  data.transfer = transfersOf(data);
  data.step = stepsOf(data);
  return data;
}

function wholeNumbers(raw, offset, count, size) {
  if (size === 1) return raw.subarray(offset, offset + count);
  const numbers = size <= 4 ? new Uint32Array(count) : new Float64Array(count);
  for (let place = size - 1; place >= 0; place--) {
    const plane = offset + place * count;
    for (let n = 0; n < count; n++) numbers[n] = numbers[n] * 256 + raw[plane + n];
  }
  return numbers;
}

/** Each unit's channels in the order of wait.port: inputs, then outputs. */
function wirePorts(data) {
  const { name, producer, consumer } = data.channels;
  data.inputs = data.units.name.map(() => []);
  data.outputs = data.units.name.map(() => []);
  for (let channel = 0; channel < name.length; channel++) {
    data.inputs[consumer[channel]].push(channel);
    data.outputs[producer[channel]].push(channel);
  }
}

/** First row of each owner, and its end; -1 if the page has no row of this owner. */
function rowsOf(counts) {
  let next = 0;
  return counts.map((count) => {
    if (count === null) return [-1, -1];
    next += count;
    return [next - count, next];
  });
}

function waitsOf(data) {
  const { "wait.gap": gap, "wait.cycles": cycles, "wait.way": way } = data.columns;
  const rows = rowsOf(data.detail.waits);
  const start = new Float64Array(gap.length);
  const end = new Float64Array(gap.length);
  for (const [first, last] of rows) {
    let cycle = data.detail.origin;
    for (let n = Math.max(first, 0); n < last; n++) {
      start[n] = cycle + gap[n];
      cycle = end[n] = start[n] + cycles[n];
    }
  }
  return { rows, start, end, way, port: data.columns["wait.port"] };
}

function transfersOf(data) {
  const { "transfer.gap": gap, "transfer.held": held } = data.columns;
  const rows = rowsOf(data.detail.transfers);
  const sent = new Float64Array(gap.length);
  const taken = new Float64Array(gap.length);
  for (const [first, last] of rows) {
    let cycle = data.detail.origin;
    for (let n = Math.max(first, 0); n < last; n++) {
      cycle = sent[n] = cycle + gap[n];
      taken[n] = held[n] ? cycle + held[n] - 1 : Infinity;
    }
  }
  return {
    rows, sent, taken,
    stop: data.columns["transfer.stop"],
    sendWait: data.columns["transfer.send_wait"],
    receiveWait: data.columns["transfer.receive_wait"],
  };
}

/** The steps of the critical path, which cover all cycles. */
function stepsOf(data) {
  const { "step.cycles": cycles, "step.root": root } = data.columns;
  const end = new Float64Array(cycles.length);
  let cycle = data.run.first;
  for (let n = 0; n < cycles.length; n++) cycle = end[n] = cycle + cycles[n];
  return { end, root };
}

/** Returns the first index in from..to of sorted values above `value`. */
function after(values, value, from = 0, to = values.length) {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] <= value) from = middle + 1;
    else to = middle;
  }
  return from;
}

// Points by two fields: pointed at, and selected by dragging over them.

/** A scale from values to pixels, with its ticks; by logarithms where values span much. */
function makeScale(field, values, from, to) {
  const [least, most] = values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
  const isLog = !field.ticks && least > 0 && most / least >= 8;
  const of = isLog ? Math.log : (value) => value;
  const room = (of(most) - of(least) || Math.abs(of(most)) || 1) * 0.06;
  const [low, high] = [of(least) - room, of(most) + room];
  const place = (value) => from + ((of(value) - low) / (high - low)) * (to - from);
  const back = isLog ? Math.exp : (value) => value;
  return { place, ticks: ticksOf(field, back(low), back(high), isLog) };
}

function ticksOf(field, low, high, isLog) {
  if (field.numbers && field.numbers.length <= 12) return [...field.numbers];
  if (field.ticks) return field.ticks.map((_, at) => at).filter((at) => at % Math.ceil(field.ticks.length / 12) === 0);
  const steps = [...Array(40).keys()].flatMap((power) => [1, 2, 5].map((by) => by * 10 ** (power - 20)));
  if (isLog) {
    const every = steps.filter((step) => step >= low && step <= high);
    return every.length > 7 ? every.filter((step) => /^1/.test(step.toExponential())) : every;
  }
  const step = steps.find((each) => (high - low) / each <= 6);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, n) => (first + n) * step);
}

/** A canvas that fills `place`, sharp on every screen, and its context. */
function makeCanvas(place) {
  const canvas = make("canvas");
  place.append(canvas);
  const context = canvas.getContext("2d");
  return {
    canvas, context,
    fit() {
      const [width, height] = [place.clientWidth, place.clientHeight];
      canvas.width = width * devicePixelRatio;
      canvas.height = height * devicePixelRatio;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = `12px ${css("--font")}`;
      return [width, height];
    },
  };
}

/** Where a pointer is in an element. */
function pointIn(element, event) {
  const { left, top } = element.getBoundingClientRect();
  return [event.clientX - left, event.clientY - top];
}

function makeScatter() {
  const place = byId("scatter");
  const { canvas, context, fit } = makeCanvas(place);
  let dots = [];
  let from = null;
  let to = null;

  function coordinate(field, at) {
    const value = field.value(at);
    return value === null && !field.isAxis && isProved(at) ? field.bounds[at] : value;
  }

  function draw() {
    const [width, height] = fit();
    const { across, up } = view;
    dots = data.index.map((_, at) => ({ at, x: coordinate(across, at), y: coordinate(up, at) }))
      .filter(({ at, x, y }) => x !== null && y !== null && (isRun(at) || isProved(at)));
    context.fillStyle = css("--muted");
    if (!dots.length) {
      context.fillText("No point has both.", 12, 24);
      return;
    }
    const long = Math.max(...makeScale(up, dots.map(({ y }) => y), 0, 1).ticks.map((tick) => context.measureText(up.digits(tick)).width));
    const [left, right, top, bottom] = [long + 14, width - 14, 26, height - 42];
    const xs = makeScale(across, dots.map(({ x }) => x), left, right);
    const ys = makeScale(up, dots.map(({ y }) => y), bottom, top);
    drawGrid(xs, ys, { left, right, top, bottom });
    for (const dot of dots) [dot.x, dot.y] = [xs.place(dot.x), ys.place(dot.y)];
    const rank = ({ at }) => (at === view.at ? 4 : 0) + (isShown(at) ? 2 : 0) + (isFront(at) ? 1 : 0);
    for (const dot of [...dots].sort((a, b) => rank(a) - rank(b))) drawDot(dot);
    if (from && to) {
      context.globalAlpha = 1;
      context.strokeStyle = css("--accent");
      context.fillStyle = css("--chosen");
      const box = [from[0], from[1], to[0] - from[0], to[1] - from[1]];
      context.fillRect(...box);
      context.strokeRect(...box);
    }
  }

  function drawGrid(xs, ys, { left, right, top, bottom }) {
    context.strokeStyle = css("--grid");
    context.fillStyle = css("--muted");
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const tick of ys.ticks) {
      const y = Math.round(ys.place(tick)) + 0.5;
      context.beginPath(); context.moveTo(left, y); context.lineTo(right, y); context.stroke();
      context.fillText(view.up.digits(tick), left - 6, y);
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    let free = -Infinity;
    for (const tick of xs.ticks) {
      const x = Math.round(xs.place(tick)) + 0.5;
      context.beginPath(); context.moveTo(x, top); context.lineTo(x, bottom); context.stroke();
      const text = view.across.digits(tick);
      const half = context.measureText(text).width / 2;
      if (x - half < free || x + half > right + 14) continue;
      context.fillText(text, x, bottom + 5);
      free = x + half + 8;
    }
    context.fillStyle = css("--text");
    context.fillText(view.across.title, (left + right) / 2, bottom + 23);
    context.textAlign = "left";
    context.fillText(view.up.title, 2, 2);
  }

  function drawDot({ at, x, y }) {
    context.globalAlpha = isShown(at) ? 1 : 0.15;
    const radius = at === view.at ? 7 : isFront(at) ? 5.5 : 4;
    context.fillStyle = context.strokeStyle = colourOf(at);
    context.beginPath();
    if (isProved(at)) {
      context.moveTo(x - 3, y - 3); context.lineTo(x + 3, y + 3);
      context.moveTo(x - 3, y + 3); context.lineTo(x + 3, y - 3);
      context.stroke();
    } else {
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
      if (isFront(at)) { context.strokeStyle = css("--ground"); context.stroke(); }
    }
    if (at !== view.at) return;
    context.strokeStyle = css("--text");
    context.lineWidth = 2;
    context.beginPath(); context.arc(x, y, radius + 2, 0, 2 * Math.PI); context.stroke();
    context.lineWidth = 1;
  }

  function nearest([x, y]) {
    let [best, least] = [null, 14 ** 2];
    for (const dot of dots) {
      const far = (dot.x - x) ** 2 + (dot.y - y) ** 2;
      if (far < least) [best, least] = [dot, far];
    }
    return best;
  }

  canvas.addEventListener("pointerdown", (event) => {
    from = pointIn(canvas, event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from) {
      to = pointIn(canvas, event);
      changed("at");
      return;
    }
    const found = nearest(pointIn(canvas, event));
    if (found) pointAt(found.at, event.clientX, event.clientY);
    else pointAt(null);
  });
  canvas.addEventListener("pointerleave", () => pointAt(null));
  canvas.addEventListener("pointercancel", () => { from = to = null; changed("at"); });
  canvas.addEventListener("pointerup", (event) => {
    if (!from) return;
    const [x, y] = pointIn(canvas, event);
    const [begin, isClick] = [from, Math.hypot(x - from[0], y - from[1]) < 4];
    from = to = null;
    const inside = ({ x: dx, y: dy }) => dx >= Math.min(x, begin[0]) && dx <= Math.max(x, begin[0])
      && dy >= Math.min(y, begin[1]) && dy <= Math.max(y, begin[1]);
    const found = isClick ? [nearest([x, y])].filter(Boolean) : dots.filter(inside);
    select(found.map(({ at }) => at), event.shiftKey);
  });
  place.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Enter" && view.at !== null) toggle(view.at);
    if (!step || !dots.length) return;
    event.preventDefault();
    const upwards = event.key === "ArrowUp" || event.key === "ArrowDown";
    const order = [...dots].sort((a, b) => (upwards ? b.y - a.y : a.x - b.x) || a.at - b.at);
    const now = order.findIndex(({ at }) => at === view.at);
    const next = order[now < 0 ? 0 : Math.min(order.length - 1, Math.max(0, now + step))];
    const { left, top } = canvas.getBoundingClientRect();
    pointAt(next.at, left + next.x, top + next.y);
  });
  place.addEventListener("blur", () => pointAt(null));
  watch(draw);
}

// Runs in parallel coordinates: a line from parameters to metrics, selected along the axes.

function makeParallel() {
  const place = byId("parallel");
  const shown = fields.filter(({ isAxis }, n) => isAxis || n < data.axes.length + data.about);
  const runs = data.index.map((_, at) => at).filter((at) => isRun(at));
  if (shown.length < 2 || !runs.length) {
    place.remove();
    return;
  }
  const { canvas, context, fit } = makeCanvas(place);
  const ranges = new Map();
  let held = null;
  let own = false;
  let xs = [];
  let scales = [];

  function scaleOf(field, top, bottom) {
    if (field.isAxis) {
      // Values of a parameter stand side by side, whatever they are.
      const last = Math.max(1, field.texts.length - 1);
      const every = Math.ceil(field.texts.length / 12);
      return {
        height: (at) => (field.at[at] < 0 ? null : bottom - (field.at[at] / last) * (bottom - top)),
        ticks: field.texts.map((text, n) => [bottom - (n / last) * (bottom - top), text]).filter((_, n) => n % every === 0),
      };
    }
    const values = runs.map((at) => field.value(at)).filter((value) => value !== null);
    const scale = makeScale(field, values, bottom, top);
    return {
      height: (at) => (field.value(at) === null ? null : scale.place(field.value(at))),
      ticks: scale.ticks.map((tick) => [scale.place(tick), field.digits(tick)]),
    };
  }

  function draw() {
    const [width, height] = fit();
    const [top, bottom] = [44, height - 14];
    const room = Math.min(150, width / (shown.length + 0.5));
    xs = shown.map((_, n) => 24 + (n * (width - 24 - room)) / (shown.length - 1));
    scales = shown.map((field) => scaleOf(field, top, bottom));
    const rank = (at) => (at === view.at ? 4 : 0) + (isShown(at) ? 2 : 0) + (isFront(at) ? 1 : 0);
    for (const at of [...runs].sort((a, b) => rank(a) - rank(b))) drawLine(at);
    context.globalAlpha = 1;
    context.lineWidth = 1;
    shown.forEach((field, n) => drawAxis(field, n, top, bottom, Math.min(room, (xs[1] ?? width) - xs[0])));
  }

  function drawLine(at) {
    const chosen = view.selected.size && view.selected.has(at);
    context.globalAlpha = !isShown(at) ? 0.06 : chosen || isFront(at) ? 0.9 : 0.4;
    context.lineWidth = at === view.at ? 4 : chosen || isFront(at) ? 1.8 : 1;
    context.strokeStyle = colourOf(at);
    context.beginPath();
    let pen = false;
    shown.forEach((_, n) => {
      const y = scales[n].height(at);
      if (y === null) pen = false;
      else if (pen) context.lineTo(xs[n], y);
      else { context.moveTo(xs[n], y); pen = true; }
    });
    context.stroke();
  }

  function drawAxis(field, n, top, bottom, room) {
    const x = Math.round(xs[n]) + 0.5;
    context.strokeStyle = css("--text");
    context.beginPath(); context.moveTo(x, top - 4); context.lineTo(x, bottom + 4); context.stroke();
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const [y, text] of scales[n].ticks) {
      const long = context.measureText(text).width;
      context.globalAlpha = 0.75;
      context.fillStyle = css("--ground");
      context.fillRect(x + 3, y - 7, long + 4, 14);
      context.globalAlpha = 1;
      context.fillStyle = css("--text");
      context.fillText(text, x + 5, y);
    }
    context.textBaseline = "top";
    wrapped(field.title, room - 6).forEach((line, row) => context.fillText(line, n ? x - 14 : 2, row * 14));
    const range = ranges.get(n);
    if (!range) return;
    context.fillStyle = css("--chosen");
    context.strokeStyle = css("--accent");
    context.fillRect(x - 7, range[0], 14, range[1] - range[0]);
    context.strokeRect(x - 7, range[0], 14, range[1] - range[0]);
  }

  /** A title in two lines, each cut where it does not fit. */
  function wrapped(title, room) {
    const fits = (text) => context.measureText(text).width <= room;
    const cut = (text) => {
      if (fits(text)) return text;
      let end = text.length;
      while (end > 1 && !fits(`${text.slice(0, end)}…`)) end--;
      return `${text.slice(0, end)}…`;
    };
    if (fits(title)) return [title];
    const words = title.split(/(?<=[ ._])/);
    let first = words.shift();
    while (words.length && fits(first + words[0])) first += words.shift();
    return [first.trimEnd(), words.join("")].filter(Boolean).map(cut);
  }

  function axisAt(x) {
    const far = xs.map((each) => Math.abs(each - x));
    const n = far.indexOf(Math.min(...far));
    return far[n] <= 22 ? n : null;
  }

  function selectByRanges() {
    const crossed = (at) => [...ranges].every(([n, [low, high]]) => {
      const y = scales[n].height(at);
      return y !== null && y >= low - 3 && y <= high + 3;
    });
    own = true;
    select(ranges.size ? runs.filter(crossed) : []);
  }

  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = pointIn(canvas, event);
    const n = axisAt(x);
    if (n === null) return;
    held = { n, y };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [, y] = pointIn(canvas, event);
    ranges.set(held.n, [Math.min(y, held.y), Math.max(y, held.y)]);
    selectByRanges();
  });
  canvas.addEventListener("pointercancel", () => { held = null; });
  canvas.addEventListener("pointerup", (event) => {
    if (!held) return;
    const [, y] = pointIn(canvas, event);
    if (Math.abs(y - held.y) < 4) {
      ranges.delete(held.n);
      selectByRanges();
    }
    held = null;
  });
  watch((what) => {
    // What was selected elsewhere is not what the ranges say.
    if (what.has("size") || (what.has("selected") && !own)) ranges.clear();
    if (what.has("selected")) own = false;
    draw();
  });
}

// A canvas over the cycles: names at the left, content in each row, a shared cursor.

const narrowPage = matchMedia("(max-width: 640px)");
const gutter = () => (narrowPage.matches ? 100 : 210);
const RIGHT = 14;
const AXIS = 20;

/**
 * Makes a canvas of rows over the shown cycles.
 *
 * place: the element that holds it, which scrolls if the rows exceed its height.
 * what: rows() and height of each; label(row); paint(strip, row, top); tipLines(row, cycle), the lines
 * of the tip; clicked(row, cycle); marked(row), whether its name is highlighted.
 */
function makeStrip(place, what) {
  const canvas = make("canvas", { role: "img", "aria-label": what.title, tabindex: "0" });
  const spacer = make("div", { class: "spacer" });
  place.append(canvas, spacer);
  const strip = { canvas, ctx: canvas.getContext("2d"), ratio: 1, width: 0, top: 0, height: 0 };
  strip.x = (cycle) => gutter() + ((cycle - view.from) / (view.to - view.from)) * strip.width;
  strip.cycle = (x) => view.from + ((x - gutter()) / strip.width) * (view.to - view.from);
  let dragged = null;
  let wasDragged = false;

  function sized() {
    strip.ratio = window.devicePixelRatio || 1;
    strip.width = Math.max(40, place.clientWidth - gutter() - RIGHT);
    const rows = what.rows() * what.height;
    strip.axis = what.hasAxis === false ? 0 : AXIS;
    strip.height = Math.min(rows, what.most) + strip.axis;
    place.style.height = `${strip.height}px`;
    spacer.style.height = `${rows + strip.axis}px`;
    canvas.style.width = `${place.clientWidth}px`;
    canvas.style.height = `${strip.height}px`;
    canvas.width = Math.round(place.clientWidth * strip.ratio);
    canvas.height = Math.round(strip.height * strip.ratio);
  }

  function draw() {
    const { ctx, ratio } = strip;
    const ground = css("--ground");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = ground;
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    const begin = Math.floor(place.scrollTop / what.height);
    const end = Math.min(what.rows(), Math.ceil((place.scrollTop + strip.height) / what.height));
    for (let row = begin; row < end; row++) {
      const top = row * what.height - place.scrollTop;
      what.paint(strip, row, top);
      ctx.fillStyle = ground;
      ctx.fillRect(0, top, gutter(), what.height);
      paintLabel(strip, what, row, top);
    }
    ctx.fillStyle = ground;
    ctx.fillRect(0, strip.height - strip.axis, gutter() + strip.width + RIGHT, strip.axis);
    paintAxis(strip);
    paintCursor();
  }

  function paintCursor() {
    const { ctx } = strip;
    if (dragged) {
      const [x0, x1] = [dragged.from, dragged.to].map((x) => Math.max(gutter(), x));
      ctx.fillStyle = css("--chosen");
      ctx.fillRect(Math.min(x0, x1), 0, Math.abs(x1 - x0), strip.height - strip.axis);
    }
    for (const [cycle, colour] of [[view.cycle, css("--accent")], [view.cursor, css("--text")]]) {
      if (cycle === null || cycle < view.from || cycle > view.to) continue;
      ctx.fillStyle = colour;
      ctx.fillRect(Math.round(strip.x(cycle)), 0, 1, strip.height - strip.axis);
    }
  }

  const rowAt = (y) => {
    const row = Math.floor((y + place.scrollTop) / what.height);
    return y < strip.height - strip.axis && row < what.rows() ? row : -1;
  };

  function hovered(event) {
    const { offsetX: x, offsetY: y } = event;
    const inside = x >= gutter() && x <= gutter() + strip.width;
    const cycle = Math.floor(strip.cycle(Math.min(Math.max(x, gutter()), gutter() + strip.width)));
    if (dragged) dragged.to = x;
    pointAt(inside ? cycle : null);
    const row = rowAt(y);
    showTip(event, row < 0 ? [] : what.tipLines(row, inside ? cycle : null, y + place.scrollTop - row * what.height));
  }

  canvas.addEventListener("pointermove", hovered);
  canvas.addEventListener("pointerleave", () => { pointAt(null); showTip(null, []); });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    if (event.offsetX >= gutter() && event.pointerType !== "touch") canvas.setPointerCapture(event.pointerId);
    dragged = { from: event.offsetX, to: event.offsetX };
  });
  canvas.addEventListener("pointerup", () => {
    if (!dragged) return;
    const { from, to } = dragged;
    dragged = null;
    wasDragged = Math.abs(to - from) > 4 && from >= gutter();
    if (wasDragged) show(...[from, to].map(strip.cycle).sort((a, b) => a - b));
  });
  canvas.addEventListener("click", (event) => {
    if (wasDragged) return;
    clickedAt = event;
    const row = rowAt(event.offsetY);
    if (row >= 0) what.clicked(row, event.offsetX < gutter() ? null : Math.floor(strip.cycle(event.offsetX)));
    changed("cursor");
  });
  canvas.addEventListener("pointercancel", () => { dragged = null; });
  zoomsByWheel(canvas, (event) => strip.cycle(event.offsetX));
  place.addEventListener("scroll", draw);
  new ResizeObserver(() => { sized(); draw(); }).observe(place);
  return { strip, draw, sized, place };
}

let clickedAt = null;

/** Shows the whole run after a second click on one place, even if the first click moved the content. */
function showsAllByDoubleClick() {
  document.addEventListener("click", (event) => {
    const isSecond = event.detail > 1 && clickedAt
      && Math.hypot(event.clientX - clickedAt.clientX, event.clientY - clickedAt.clientY) < 5;
    if (!isSecond) {
      clickedAt = null;
      return;
    }
    event.stopPropagation();
    event.preventDefault();
    showAll();
  }, true);
}

/** Ctrl and the wheel zoom at the mouse; the horizontal wheel, or Shift and the wheel, moves. */
function zoomsByWheel(element, cycleAt) {
  element.addEventListener("wheel", (event) => {
    const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY / 300), cycleAt(event));
    else if (Math.abs(across) > (event.shiftKey ? 0 : Math.abs(event.deltaY))) pan(across / 800);
    else return;
    event.preventDefault();
  }, { passive: false });
}

function paintLabel(strip, what, row, top) {
  const { ctx } = strip;
  ctx.font = `${what.marked(row) ? "600 " : ""}11px ${css("--font")}`;
  ctx.fillStyle = css(what.marked(row) ? "--accent" : "--text");
  ctx.textBaseline = "middle";
  ctx.textAlign = "right";
  const letters = Math.floor((gutter() - 10) / 6.7);
  what.label(row).forEach((line, n, all) => {
    ctx.fillText(short(line, letters), gutter() - 8, top + (what.height * (n + 0.5)) / all.length);
  });
}

/** Round numbers of cycles, about one every 110 pixels. */
function ticks(strip) {
  const span = view.to - view.from;
  const wanted = (span * 110) / strip.width;
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map((by) => by * power).find((each) => each >= wanted));
  const found = [];
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) found.push(at);
  return found;
}

function paintAxis(strip) {
  const { ctx } = strip;
  ctx.font = `11px ${css("--font")}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "alphabetic";
  for (const cycle of ticks(strip)) {
    const x = Math.round(strip.x(cycle));
    ctx.fillStyle = css("--grid");
    ctx.fillRect(x, 0, 1, strip.height - strip.axis);
    ctx.fillStyle = css("--muted");
    if (strip.axis) ctx.fillText(number(cycle), Math.min(x, gutter() + strip.width - 16), strip.height - 6);
  }
}

/** Shows lines beside the mouse; an empty list hides the tip. */
function showTip(event, lines) {
  const tip = byId("tip");
  tip.hidden = !lines.length;
  if (!lines.length) return;
  tip.replaceChildren(...lines.map((line, n) => make(n ? "div" : "b", {}, line)));
  const { innerWidth, innerHeight } = window;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  const below = event.clientY + 18;
  tip.style.top = `${below + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : below}px`;
}

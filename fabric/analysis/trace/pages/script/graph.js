// The graph of the program, as in its picture: a box is a unit or several equal units.

const TITLE = 12;
const SMALL = 10;
const LEAST_SCALE = 0.75; // smaller text is hard to read
const TALLEST = 900;

function makeGraph() {
  const place = byId("graph");
  const select = byId("graph-of");
  data.graphs.forEach((graph, n) => select.append(make("option", { value: n }, `${graph.title}: ${counted(graph.boxes.length, "box")}`)));
  select.hidden = data.graphs.length < 2;
  let shown = null;
  const draw = () => {
    shown = drawnGraph(data.graphs[select.value || 0]);
    place.replaceChildren(shown.svg);
    shown.begin();
    markGraph(shown);
  };
  select.addEventListener("change", draw);
  byId("graph-whole").addEventListener("click", () => shown.fit());
  draw();
  watch((what) => {
    if (what.has("theme")) draw();
    else if (what.has("unit") || what.has("rows")) markGraph(shown);
  });
}

function drawnGraph(graph) {
  const margin = 14;
  const [width, height] = graph.size;
  const lines = makeSvg("g", { class: "arrows" });
  const labels = makeSvg("g", { class: "labels" });
  const boxes = makeSvg("g");
  const tip = makeSvg("marker", { id: "tip-of-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
    makeSvg("path", { d: "M0 0L8 4L0 8z" }));
  const svg = makeSvg("svg", { role: "img", "aria-label": "The graph of the program" }, makeSvg("defs", {}, tip), lines, labels, boxes);
  const arrows = graph.arrows.map((arrow) => ({ ends: arrow.ends, element: drawnArrow(graph, arrow), label: drawnLabel(arrow) }));
  lines.append(...arrows.map((each) => each.element));
  labels.append(...arrows.map((each) => each.label));
  const drawn = graph.boxes.map((box) => ({ units: box.units, element: drawnBox(box) }));
  boxes.append(...drawn.map((each) => each.element));
  const { fit, begin } = movable(svg, -margin, -margin, width + 2 * margin, height + 2 * margin);
  return { svg, boxes: drawn, arrows, fit, begin };
}

function drawnArrow(graph, { ends, channels, curves }) {
  const d = curves.map(([start, ...bends]) => `M${start}C${bends.join(" ")}`).join("");
  const { name, depth } = data.channels;
  const more = channels.length > 1 ? `\nand ${number(channels.length - 1)} more` : "";
  const stuck = ends.every((box) => graph.boxes[box].units.some((unit) => data.in_loop.includes(unit)));
  return makeSvg("path", { d, class: `arrow${stuck ? " stuck" : ""}`, "marker-end": "url(#tip-of-arrow)", "stroke-width": channels.length > 1 ? 2.5 : 1.2 },
    makeSvg("title", {}, `${name[channels[0]]}, depth ${depth[channels[0]]}${more}`));
}

/** The label of a stream, beside its arrow. */
function drawnLabel({ label, at }) {
  return makeSvg("g", { class: "label" }, ...(at ? textLines(label, at[0], at[1], SMALL, "middle") : []));
}

function textLines(lines, x, y, size, anchor) {
  const first = y - ((lines.length - 1) * size * 1.2) / 2 + 0.35 * size;
  return lines.map((line, n) => makeSvg("text", { x, y: first + n * size * 1.2, "font-size": size, "text-anchor": anchor }, line));
}

function drawnBox(box) {
  const { at, units, large, small } = box;
  const [width, height] = box.size;
  const [x, y] = [at[0] - width / 2, at[1] - height / 2];
  const { name, place } = data.units;
  const shares = sharesOf(units);
  const states = data.causes.map(({ label }, state) => `${label} ${(100 * shares[state]).toFixed(1)} %`).join(", ");
  const whole = units.length > 1 ? `${name[units[0]]} to ${name[units[units.length - 1]]}` : name[units[0]];
  const stuck = units.some((unit) => data.in_loop.includes(unit));
  const middle = y + 5 + (large.length * TITLE * 1.2) / 2;
  const drawn = makeSvg("g", {
    class: `box${stuck ? " stuck" : ""}`, tabindex: 0, role: "button",
    onclick: () => opened(box),
    onkeydown: (event) => event.key === "Enter" && opened(box),
  },
    makeSvg("title", {}, `${whole} (${place[units[0]]}): ${states}`),
    ...(units.length > 1 ? [makeSvg("rect", { x: x + 4, y: y + 4, width, height, rx: 5, class: "behind" })] : []),
    makeSvg("rect", { x, y, width, height, rx: 5, class: "front", fill: mixed(css("--panel"), colours[BUSY], 0.5 * shares[BUSY]) }),
    ...textLines(large, at[0], middle, TITLE, "middle"),
    ...textLines(small, at[0], middle + (large.length * TITLE * 1.2 + small.length * SMALL * 1.2) / 2, SMALL, "middle"));
  let left = x + 8;
  data.causes.forEach((_, state) => {
    const wide = shares[state] * (width - 16);
    if (wide > 0.2) drawn.append(makeSvg("rect", { x: left, y: y + height - 10, width: wide, height: 6, fill: colours[state], class: "bar" }));
    left += wide;
  });
  return drawn;
}

/** Shares of units' cycles by state; untraced units do not count. */
function sharesOf(units) {
  const traced = units.filter(isTraced);
  const whole = Math.max(1, data.run.cycles * traced.length);
  return data.causes.map(({ id }) => traced.reduce((sum, unit) => sum + data.units[id][unit], 0) / whole);
}

/** Shows details of a box and ends the search. */
function opened({ units, title }) {
  byId("search").value = "";
  if (units.length === 1) {
    narrow(null, "");
    choose(units[0]);
  } else {
    view.unit = null;
    narrow(null, "");
    chooseGroup(units, title);
  }
}

/** Highlights the chosen box, its neighbours and their arrows; fades boxes outside of the search. */
function markGraph({ boxes, arrows }) {
  const searched = view.query.trim() !== "";
  const isChosen = ({ units }) => (view.unit !== null ? units.includes(view.unit) : view.group !== null && units.every((unit) => view.group.includes(unit)));
  const chosen = new Set(boxes.flatMap((box, n) => (isChosen(box) ? [n] : [])));
  const near = new Set(arrows.flatMap(({ ends: [from, to] }) => (chosen.has(from) ? [to] : chosen.has(to) ? [from] : [])));
  const isBack = (n) => (searched ? !boxes[n].units.some(isFound) : chosen.size > 0 && !chosen.has(n) && !near.has(n));
  boxes.forEach(({ element }, n) => {
    element.classList.toggle("chosen", chosen.has(n));
    element.classList.toggle("near", near.has(n) && !chosen.has(n));
    element.classList.toggle("faint", isBack(n));
  });
  for (const { ends: [from, to], element, label } of arrows) {
    const joined = chosen.has(from) || chosen.has(to);
    element.classList.toggle("near", joined);
    label.classList.toggle("near", joined);
  }
}

/** Lets an SVG be moved by dragging and zoomed by Ctrl and the wheel; returns a function that shows all. */
function movable(svg, x, y, width, height) {
  let box;
  const set = (...next) => {
    box = next;
    svg.setAttribute("viewBox", box.join(" "));
  };
  const scale = () => Math.max(box[2] / svg.clientWidth, box[3] / svg.clientHeight);
  const zoomed = (factor, px, py) => {
    const by = Math.min(Math.max(factor, 60 / box[2]), (3 * width) / box[2]);
    set(px - (px - box[0]) * by, py - (py - box[1]) * by, box[2] * by, box[3] * by);
  };
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    zoomed(Math.exp(event.deltaY / 300), point.x, point.y);
  }, { passive: false });
  let grip = null;
  svg.addEventListener("pointerdown", (event) => { grip = [event.clientX, event.clientY, ...box]; });
  window.addEventListener("pointerup", () => { grip = null; });
  svg.addEventListener("pointermove", (event) => {
    if (!grip || !event.buttons) return;
    const by = scale();
    set(grip[2] - (event.clientX - grip[0]) * by, grip[3] - (event.clientY - grip[1]) * by, box[2], box[3]);
  });
  const tall = (scale) => { svg.style.height = `${Math.min(height * scale, TALLEST)}px`; };
  const fit = () => {
    tall(Math.min(1, svg.clientWidth / width));
    set(x, y, width, height);
  };
  // Begin with the full width, unless text would be too small to read.
  const begin = () => {
    const scale = Math.max(LEAST_SCALE, Math.min(1, svg.clientWidth / width));
    tall(scale);
    set(x + (width - svg.clientWidth / scale) / 2, y, svg.clientWidth / scale, svg.clientHeight / scale);
  };
  byId("graph-in").onclick = () => zoomed(1 / 1.4, box[0] + box[2] / 2, box[1] + box[3] / 2);
  byId("graph-out").onclick = () => zoomed(1.4, box[0] + box[2] / 2, box[1] + box[3] / 2);
  return { fit, begin };
}

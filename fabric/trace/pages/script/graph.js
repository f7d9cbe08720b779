// The graph of the program: drawn whole, moved and zoomed; a box is a unit or several alike ones.

const LETTERS = 24;

function makeGraph() {
  const place = byId("graph");
  const select = byId("graph-of");
  data.graphs.forEach((graph, n) => select.append(make("option", { value: n }, `${graph.title}: ${counted(graph.boxes.length, "box")}`)));
  select.hidden = data.graphs.length < 2;
  let shown = null;
  const draw = () => {
    shown = drawnGraph(data.graphs[select.value || 0]);
    place.replaceChildren(shown.svg);
    markBoxes(shown.boxes);
  };
  select.addEventListener("change", draw);
  byId("graph-whole").addEventListener("click", () => shown.fit());
  draw();
  watch((what) => {
    if (what.has("theme")) draw();
    else if (what.has("unit") || what.has("rows")) markBoxes(shown.boxes);
  });
}

function drawnGraph(graph) {
  const margin = 14;
  const [width, height] = graph.size;
  const lines = makeSvg("g", { class: "arrows" });
  const boxes = makeSvg("g");
  const tip = makeSvg("marker", { id: "tip-of-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" },
    makeSvg("path", { d: "M0 0L8 4L0 8z" }));
  const svg = makeSvg("svg", { role: "img", "aria-label": "The graph of the program" }, makeSvg("defs", {}, tip), lines, boxes);
  for (const arrow of graph.arrows) lines.append(drawnArrow(graph, arrow));
  const drawn = graph.boxes.map((box) => ({ units: box.units, element: drawnBox(graph, box) }));
  boxes.append(...drawn.map((each) => each.element));
  const fit = movable(svg, -margin, -margin, width + 2 * margin, height + 2 * margin);
  return { svg, boxes: drawn, fit };
}

function drawnArrow(graph, { ends, channels, curves }) {
  const d = curves.map(([start, ...bends]) => `M${start}C${bends.join(" ")}`).join("");
  const { name, depth } = data.channels;
  const more = channels.length > 1 ? `\nand ${number(channels.length - 1)} more` : "";
  const stuck = ends.every((box) => graph.boxes[box].units.some((unit) => data.in_loop.includes(unit)));
  return makeSvg("path", { d, class: `arrow${stuck ? " stuck" : ""}`, "marker-end": "url(#tip-of-arrow)", "stroke-width": channels.length > 1 ? 2.5 : 1.2 },
    makeSvg("title", {}, `${name[channels[0]]}, depth ${depth[channels[0]]}${more}`));
}

function drawnBox(graph, box) {
  const { at, units } = box;
  const [width, height] = graph.box;
  const [x, y] = [at[0] - width / 2, at[1] - height / 2];
  const { name, place } = data.units;
  const title = units.length > 1 ? `${short(box.title, LETTERS - 3 - number(units.length).length)} × ${number(units.length)}` : short(box.title, LETTERS);
  const shares = sharesOf(units);
  const told = data.causes.map(({ label }, state) => `${label} ${(100 * shares[state]).toFixed(1)} %`).join(", ");
  const whole = units.length > 1 ? `${name[units[0]]} to ${name[units[units.length - 1]]}` : name[units[0]];
  const stuck = units.some((unit) => data.in_loop.includes(unit));
  const drawn = makeSvg("g", {
    class: `box${stuck ? " stuck" : ""}`, tabindex: 0, role: "button",
    onclick: () => opened(box),
    onkeydown: (event) => event.key === "Enter" && opened(box),
  },
    makeSvg("title", {}, `${whole} (${place[units[0]]}): ${told}`),
    ...(units.length > 1 ? [makeSvg("rect", { x: x + 4, y: y + 4, width, height, rx: 5, class: "behind" })] : []),
    makeSvg("rect", { x, y, width, height, rx: 5, fill: mixed(css("--panel"), colours[BUSY], 0.7 * shares[BUSY]) }),
    makeSvg("text", { x: x + 8, y: y + 16 }, title));
  let left = x + 6;
  data.causes.forEach((_, state) => {
    const wide = shares[state] * (width - 12);
    if (wide > 0.2) drawn.append(makeSvg("rect", { x: left, y: y + height - 11, width: wide, height: 5, fill: colours[state], class: "bar" }));
    left += wide;
  });
  return drawn;
}

/** What part of their cycles some units spent in each state; those not traced do not count. */
function sharesOf(units) {
  const traced = units.filter(isTraced);
  const whole = Math.max(1, data.run.cycles * traced.length);
  return data.causes.map(({ id }) => traced.reduce((sum, unit) => sum + data.units[id][unit], 0) / whole);
}

function opened({ units, title }) {
  if (units.length === 1) choose(units[0]);
  else chooseGroup(units, title);
}

function markBoxes(boxes) {
  const searched = view.query.trim() !== "";
  for (const { units, element } of boxes) {
    element.classList.toggle("chosen", units.includes(view.unit));
    element.classList.toggle("faint", searched && !units.some(isFound));
  }
}

/** Lets an SVG be moved by dragging and zoomed by Ctrl and the wheel; returns what shows all. */
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
  const fit = () => set(x, y, width, height);
  byId("graph-in").onclick = () => zoomed(1 / 1.4, box[0] + box[2] / 2, box[1] + box[3] / 2);
  byId("graph-out").onclick = () => zoomed(1.4, box[0] + box[2] / 2, box[1] + box[3] / 2);
  fit();
  return fit;
}

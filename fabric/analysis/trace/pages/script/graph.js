// The graph of the program, as in its picture: a box is a unit or several equal units.

const TALLEST = 0.8; // of the window's height

function makeGraph() {
  const select = byId("graph-of");
  data.graphs.forEach((graph, n) => select.append(make("option", { value: n }, `${graph.title}: ${counted(graph.boxes.length, "box")}`)));
  select.hidden = data.graphs.length < 2;
  let shown = null;
  const draw = () => {
    shown = drawnGraph(data.graphs[select.value || 0]);
    shown.fit();
    markGraph(shown);
  };
  select.addEventListener("change", draw);
  byId("graph-whole").addEventListener("click", () => shown.fit());
  window.addEventListener("resize", () => shown.fit());
  draw();
  watch((what) => {
    if (what.has("unit") || what.has("rows")) markGraph(shown);
  });
}

function drawnGraph(graph) {
  byId("graph").innerHTML = graph.svg;
  const svg = byId("graph").firstElementChild;
  const { width, height } = svg.viewBox.baseVal;
  const boxes = graph.boxes.map((box, n) => ({ units: box.units, element: opens(svg.querySelector(`.box${n}`), box) }));
  const arrows = graph.arrows.map((ends, n) => ({ ends, elements: svg.querySelectorAll(`.arrow${n}`) }));
  return { boxes, arrows, ...movable(svg, width, height) };
}

function opens(element, box) {
  element.setAttribute("tabindex", 0);
  element.setAttribute("role", "button");
  element.addEventListener("click", () => opened(box));
  element.addEventListener("keydown", (event) => event.key === "Enter" && opened(box));
  return element;
}

/** Shows details of a box and ends the search. */
function opened({ units, title }) {
  search("");
  if (units.length === 1) choose(units[0]);
  else chooseGroup(units, title);
}

/** Highlights the chosen box, its neighbours and their arrows; fades boxes outside of the search. */
function markGraph({ boxes, arrows }) {
  const searched = view.query.trim() !== "";
  const chosen = new Set(boxes.flatMap(({ units }, n) => (units.some(isChosen) ? [n] : [])));
  const near = new Set(arrows.flatMap(({ ends: [from, to] }) => (chosen.has(from) ? [to] : chosen.has(to) ? [from] : [])));
  const isBack = (n) => (searched ? !boxes[n].units.some(isFound) : chosen.size > 0 && !chosen.has(n) && !near.has(n));
  boxes.forEach(({ element }, n) => {
    element.classList.toggle("chosen", chosen.has(n));
    element.classList.toggle("near", near.has(n) && !chosen.has(n));
    element.classList.toggle("faint", isBack(n));
  });
  for (const { ends: [from, to], elements } of arrows) {
    const joined = chosen.has(from) || chosen.has(to);
    elements.forEach((element) => element.classList.toggle("near", joined));
  }
}

/** Lets an SVG be moved by dragging and zoomed by Ctrl and the wheel; returns functions that set its view. */
function movable(svg, width, height) {
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
  const fit = () => {
    // The width stays if the panel makes the page narrower.
    Object.assign(svg.style, { width: "", maxWidth: "none" });
    svg.style.width = `${svg.clientWidth}px`;
    const scale = Math.min(1, svg.clientWidth / width, (TALLEST * window.innerHeight) / height);
    svg.style.height = `${height * scale}px`;
    set(0, 0, width, height);
  };
  byId("graph-in").onclick = () => zoomed(1 / 1.4, box[0] + box[2] / 2, box[1] + box[3] / 2);
  byId("graph-out").onclick = () => zoomed(1.4, box[0] + box[2] / 2, box[1] + box[3] / 2);
  return { fit };
}

// Calls drawing functions once a frame, with the changed parts of the view.

const watchers = [];
let dirty = new Set();

/** Calls `draw` with the changes, once a frame: names of parts of the view, "theme" and "size". */
function watch(draw) {
  watchers.push(draw);
}

function changed(...what) {
  if (!dirty.size) requestAnimationFrame(redraw);
  for (const each of what) dirty.add(each);
}

function redraw() {
  const what = dirty;
  dirty = new Set();
  for (const draw of watchers) draw(what);
}

// Who draws what, and when: once a frame, what depends on what has changed.

const watchers = [];
let dirty = new Set();

/** Calls `draw` with what changed, once a frame: names of parts of the view, "theme" and "size". */
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

// Details of the chosen unit, or of a box of equal units.

const LISTED = 200;

/** Lists units: first those on the critical path, then the most stalled. */
function chooseGroup(units, title, cycle = null) {
  const rank = new Map(data.units.ranked.map((unit, place) => [unit, place]));
  const last = data.units.name.length;
  const ordered = units.slice().sort((a, b) => (rank.get(a) ?? last) - (rank.get(b) ?? last));
  const onPath = new Map();
  for (const [root, cycles] of data.path) onPath.set(data.roots[root].unit, (onPath.get(data.roots[root].unit) ?? 0) + cycles);
  const list = make("ul", { class: "units" }, ...ordered.slice(0, LISTED).map((unit) => {
    const share = onPath.has(unit) ? [make("span", { class: "quiet" }, ` ${percent(onPath.get(unit), data.run.cycles)} % of the critical path`)] : [];
    return make("li", {}, unitLink(unit, cycle), ...share, shareBar([unit]));
  }));
  const more = units.length > LISTED ? [make("p", { class: "quiet" }, `and ${number(units.length - LISTED)} more: they are in the timeline`)] : [];
  choose(null, cycle, units);
  const chain = cycle === null ? [] : chainList(ordered[0], cycle, false);
  openDetails(`${title} × ${number(units.length)}`, `${data.units.operator[units[0]]}, ${data.units.place[units[0]]}`, shareBar(units), ...chain, list, ...more);
}

function openDetails(title, subtitle, ...content) {
  byId("details-title").textContent = title;
  byId("details-place").textContent = subtitle;
  byId("details-body").replaceChildren(...content);
  showDetails(true);
}

let touched = null;
document.addEventListener("pointerdown", ({ target }) => { touched = target.closest("#graph, .strip, table") ?? touched; });

/** Shows or hides the panel. The last clicked element does not move, even if lines above it wrap. */
function showDetails(isShown) {
  const fixed = touched ?? document.querySelector("main");
  const before = fixed.getBoundingClientRect().top;
  byId("details").hidden = !isShown;
  document.body.classList.toggle("with-details", isShown);
  window.scrollBy(0, fixed.getBoundingClientRect().top - before);
  changed("size");
}

function closeDetails() {
  choose(null);
  showDetails(false);
}

function shareBar(units) {
  const bar = make("span", { class: "shares" });
  sharesOf(units).forEach((share, state) => {
    if (share <= 0) return;
    bar.append(make("i", { style: `width:${100 * share}%;background:${colours[state]}`, title: `${data.causes[state].label} ${(100 * share).toFixed(1)} %` }));
  });
  return bar;
}

function detailsOf(unit) {
  const { name, operator, kind, place } = data.units;
  const subtitle = `${operator[unit]}, ${kind[unit]} unit, ${place[unit]}`;
  if (!isTraced(unit)) {
    openDetails(name[unit], subtitle, make("p", {}, "It was not traced."), channelTable(unit));
    return;
  }
  const longest = longestWait(unit);
  const cycle = view.cycle ?? (data.units.still[unit] ? data.run.last : longest ? Math.floor((longest.from + longest.until) / 2) : null);
  openDetails(name[unit], subtitle, shareBar([unit]), cyclesTable(unit),
    ...(cycle === null ? [] : chainList(unit, cycle, view.cycle === null)),
    ...rootList(unit), make("h3", {}, "Channels"), channelTable(unit));
}

function cyclesTable(unit) {
  const rows = data.causes.flatMap(({ id, label }, state) => {
    const cycles = data.units[id][unit];
    return !cycles ? [] : make("tr", {}, make("td", {}, make("i", { class: "swatch", style: `background:${colours[state]}` }), label),
      make("td", { class: "n" }, number(cycles)), make("td", { class: "n" }, `${percent(cycles, data.run.cycles)} %`));
  });
  return make("table", { class: "cycles" }, make("tbody", {}, ...rows));
}

function chainList(unit, cycle, isAutomatic) {
  const items = chainOf(unit, cycle).map(({ unit: each, now, end }) => {
    const item = make("li", {}, unitLink(each, cycle));
    if (now) {
      item.append(" ", make("i", { class: "swatch", style: `background:${colours[now.state]}` }), data.causes[now.state].label);
      if (now.channel >= 0) item.append(now.state === data.waits[0] ? " from " : " to ", unitLink(now.peer, cycle));
      item.append(`, since ${number(now.from)}`);
    }
    if (end) item.append(make("span", { class: "quiet" }, `: ${end}`));
    return item;
  });
  const why = !isAutomatic ? "" : data.units.still[unit] ? " (the last cycle)" : " (in the middle of its longest wait)";
  return [make("h3", {}, `Chain of waits in cycle ${number(cycle)}${why}`), make("ol", { class: "chain" }, ...items),
    make("p", { class: "quiet" }, "Click a row of the timeline for another cycle.")];
}

function rootList(unit) {
  const charged = data.charged_by_unit[unit] ?? [];
  if (!charged.length) return [];
  const rows = charged.map(([root, cycles]) => make("tr", {}, make("td", {}, rootName(root)), make("td", { class: "n" }, number(cycles))));
  return [make("h3", {}, "Roots of its waits"), make("table", {}, make("tbody", {}, ...rows))];
}

function rootName(root) {
  const { name, unit } = data.roots[root];
  return unit < 0 ? name : unitLink(unit, null, name);
}

function channelTable(unit) {
  const { producer, consumer, depth, elements, empty, full } = data.channels;
  const rows = [];
  for (const [side, channels, peers, waited] of [["from", data.inputs[unit], producer, empty], ["to", data.outputs[unit], consumer, full]]) {
    for (const channel of channels) {
      rows.push(make("tr", { title: data.channels.name[channel] }, make("td", {}, `${side} `, unitLink(peers[channel], view.cycle)),
        make("td", { class: "n" }, number(depth[channel])), make("td", { class: "n" }, number(elements[channel])),
        make("td", { class: "n" }, number(waited[channel]))));
    }
  }
  const head = ["channel", "depth", "elements", "waited here"].map((title, n) => make("th", { class: n ? "n" : "" }, title));
  return make("table", { class: "channels" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

function watchDetails() {
  byId("details-close").addEventListener("click", closeDetails);
  watch((what) => {
    if (view.unit !== null && (what.has("unit") || what.has("theme"))) detailsOf(view.unit);
  });
}

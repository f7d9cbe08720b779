// The points: what can be shown of each, and which are selected or pointed at.

let data;
let fields = [];
const view = { across: null, up: null, colour: null, selected: new Set(), at: null };

// Okabe and Ito: told apart whatever colours somebody sees; the last one is the text's.
const KINDS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

const digitsOf = (whole) => (value) =>
  whole ? number(value) : value.toLocaleString("en-US", { maximumSignificantDigits: 6 });

/** Parameters, then metrics: title, value of a point as a number or null, and as text. */
function makeFields() {
  const axes = data.axes.map(({ name, texts, whole, numbers, at }) => ({
    title: name, isAxis: true, texts, at, numbers,
    ticks: numbers ? null : texts,
    value: (place) => (at[place] < 0 ? null : numbers ? numbers[at[place]] : at[place]),
    text: (place) => (at[place] < 0 ? "" : texts[at[place]]),
    whole: (place) => (at[place] < 0 ? "" : whole[at[place]]),
    digits: (value) => (numbers ? String(value) : texts[value] ?? ""),
  }));
  const metrics = data.metrics.map(({ name, unit, whole, values, bounds }) => ({
    title: unit ? `${name} (${unit})` : name, isAxis: false, ticks: null, bounds,
    value: (place) => values[place],
    text: (place) => (values[place] === null ? "" : digitsOf(whole)(values[place])),
    digits: digitsOf(whole),
  }));
  fields = [...axes, ...metrics];
}

const isRun = (place) => data.statuses[data.status[place]].name === "completed";
const isProved = (place) => ["pruned", "infeasible"].includes(data.statuses[data.status[place]].name);
const isFront = (place) => data.onFront.has(place);
const isShown = (place) => !view.selected.size || view.selected.has(place);

/** What a point is, line by line. */
function described(place) {
  const status = data.statuses[data.status[place]];
  const lines = [`point ${data.index[place]}${isFront(place) ? ", on the front" : ""}`];
  if (!isRun(place)) lines.push(`${status.meaning}${data.why[place] ? `: ${data.why[place]}` : ""}`);
  for (const field of fields) {
    if (field.isAxis) lines.push(`${field.title} = ${field.whole(place)}`);
    else if (field.value(place) !== null) lines.push(`${field.title}: ${field.text(place)}`);
    else if (field.bounds[place] !== null) lines.push(`${field.title}: at least ${field.digits(field.bounds[place])}`);
  }
  return lines;
}

/** Selects points; `add` keeps those that are selected. */
function select(places, add = false) {
  view.selected = new Set(add ? [...view.selected, ...places] : places);
  changed("selected");
}

function toggle(place) {
  if (!view.selected.delete(place)) view.selected.add(place);
  changed("selected");
}

function pointAt(place, x = null, y = null) {
  const tip = byId("tip");
  tip.hidden = place === null || x === null;
  if (!tip.hidden) {
    tip.replaceChildren(...described(place).slice(0, 14).map((line, n) => make(n ? "div" : "b", {}, line)));
    const right = x + 16 + tip.offsetWidth < innerWidth;
    const below = y + 16 + tip.offsetHeight < innerHeight;
    tip.style.left = `${Math.max(4, right ? x + 14 : x - 14 - tip.offsetWidth)}px`;
    tip.style.top = `${Math.max(4, below ? y + 14 : y - 14 - tip.offsetHeight)}px`;
  }
  if (view.at === place) return;
  view.at = place;
  changed("at");
}

/** The colours of points: by the front, or by a parameter's values. */
function colourOf(place) {
  if (!view.colour) return isFront(place) ? css("--front") : css("--other");
  return kindColour(view.colour, view.colour.at[place]);
}

function kindColour({ texts }, at) {
  if (at < 0) return css("--other");
  if (texts.length <= KINDS.length) return KINDS[at];
  return mixed("#56b4e9", isDark() ? "#fff3b0" : "#3b0f50", at / (texts.length - 1));
}

function drawColours() {
  const { colour } = view;
  const keys = colour
    ? colour.texts.map((text, at) => [kindColour(colour, at), text])
    : [[css("--front"), "on the front"], [css("--other"), "other runs"]].slice(data.front.length ? 0 : 1);
  const shown = keys.length > 14 ? [keys[0], keys[keys.length - 1]] : keys;
  const proved = data.index.some((_, place) => isProved(place)) ? [make("span", {}, "× proved away, at its bounds")] : [];
  byId("colours").replaceChildren(...shown.map(([fill, text]) =>
    make("span", {}, make("i", { class: "swatch", style: `background:${fill}` }), text)), ...proved);
}

// Texts, elements and colours. Names come to the page as text nodes, and escaped in the SVG of the graph.

const number = (value) => Math.round(value).toLocaleString("en-US");
// 1 box, 2 boxes.
const counted = (value, noun) => `${number(value)} ${noun}${Math.round(value) === 1 ? "" : noun.endsWith("x") ? "es" : "s"}`;
const percent = (part, whole) => (whole ? ((100 * part) / whole).toFixed(1) : "0.0");
const short = (text, most) =>
  text.length <= most ? text : `${text.slice(0, Math.ceil(most * 0.6))}…${text.slice(1 - Math.floor(most * 0.4))}`;

/** Makes an element; `on...` are handlers, children are elements or text. */
function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const byId = (id) => document.getElementById(id);

/** A button that looks like a link and chooses a unit. */
function unitLink(unit, cycle = null, text = data.units.name[unit]) {
  return make("button", { class: "link", title: data.units.name[unit], onclick: () => choose(unit, cycle) }, text);
}

const isPrinted = matchMedia("print");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return !isPrinted.matches && (chosen ? chosen === "dark" : prefersDark.matches);
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const channelsOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
const mixed = (one, other, share) =>
  "#" + channelsOf(one).map((value, n) =>
    Math.round(value + (channelsOf(other)[n] - value) * share).toString(16).padStart(2, "0")).join("");
const luminance = (colour) => {
  const [r, g, b] = channelsOf(colour).map((value) => (value / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

/** The colours of causes or of uses. */
const coloursOf = (isDark, things = data.causes) => things.map(({ colour, dark }) => (isDark ? dark : colour));

let colours = [];
const textOn = (colour) => (luminance(colour) > 0.3 ? "#10161c" : "#ffffff");

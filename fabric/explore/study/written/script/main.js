// The page: a table of the points, which a click sorts and a text filters.

const view = { query: "" };

function makePoints(data) {
  const front = new Set(data.front);
  const isFront = (at) => front.has(at);
  const significant = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 6 });
  const words = data.index.map((index, at) => [
    `point=${index}`, isFront(at) ? "front" : "", ...data.columns.map(({ title, values }) => `${title}=${values[at] ?? ""}`),
  ].join(" ").toLowerCase());
  const found = (at) => view.query.toLowerCase().split(/\s+/).every((word) => words[at].includes(word));
  const column = ({ title, values, whole }) => ({
    title, value: (at) => values[at], digits: whole ? number : significant,
    show: (at) => (typeof values[at] === "string" ? make("span", { class: "why" }, values[at]) : values[at]),
  });
  makeTable(byId("points-table"), {
    rows: data.index.map((_, at) => at), found, parts: ["query"],
    columns: [
      { title: "point", meaning: "● on the front", value: (at) => data.index[at], show: (at) => `${data.index[at]}${isFront(at) ? " ●" : ""}` },
      ...data.columns.map(column),
    ],
  });
  byId("filter").addEventListener("input", () => { view.query = byId("filter").value.trim(); changed("query"); });
}

try {
  makePoints(JSON.parse(byId("data").textContent));
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  });
  document.body.classList.add("drawn");
} catch (error) {
  byId("failed").textContent = `This page could not be drawn: ${error.message}. It needs a browser of 2023 or later.`;
  byId("failed").hidden = false;
}

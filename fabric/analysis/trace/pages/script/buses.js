// Uses of the memory's bandwidth: over time, and its channels side by side.

const LABEL = 34;

function makeBuses() {
  const { buses } = data;
  if (!buses) return;
  const { uses, edges, shares, channels } = buses;
  byId("buses-of").hidden = false;
  byId("buses-findings").append(...buses.findings.map((finding) => make("p", {}, finding)));
  byId("buses-note").textContent = buses.note;
  makeStack(byId("buses"), { edges, shares, things: uses, colourOf: (use) => coloursOf(isDark(), uses)[use] });
  const place = byId("buses-channels");

  function draw() {
    const shades = coloursOf(isDark(), uses);
    const every = Math.ceil((channels.length * LABEL) / Math.max(1, place.clientWidth));
    place.replaceChildren(...channels.map((channel, n) => make("div", { title: tip(channel) },
      make("span", {}, ...channel.shares.map((share, use) => make("i", { style: `height:${share}%;background:${shades[use]}` }))),
      n % every ? "" : channel.name.split(" ")[0])));
  }

  function tip({ name, requests, rows: [hits, misses, conflicts], shares: ofChannel }) {
    const parts = ofChannel.map((share, use) => `${uses[use].label} ${share.toFixed(1)} %`);
    const rows = `row hits ${number(hits)}, misses ${number(misses)}, conflicts ${number(conflicts)}`;
    return `channel ${name}: ${parts.join(", ")}; requests ${number(requests)}: ${rows}`;
  }

  watch((what) => {
    if (what.has("theme") || what.has("size")) draw();
  });
  draw();
}

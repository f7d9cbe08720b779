// The tables of a run.

const tenths = (value) => value.toFixed(1);

function makeTables() {
  const { units, channels, roots, causes, run } = data;
  makeStages();
  makeTable(byId("units-table"), {
    rows: units.ranked, found: isFound, chosen: isChosen, parts: ["rows", "unit"],
    family: (each) => units.family[each], last: (each) => units.absent[each], lastTitle: "never got an element",
    columns: [
      { title: "unit", value: (each) => units.name[each], show: (each) => unitLink(each) },
      ...causes.map(({ id, label, meaning }) => ({ title: label, meaning, value: (each) => units[id][each] })),
      { title: "mostly", value: (each) => (Number.isInteger(units.mostly[each]) ? farEnd(each, units.mostly[each]) : units.mostly[each] ?? "") },
      { title: "wired at", value: (each) => units.place[each] },
    ],
  });
  const waited = (each) => channels.empty[each] + channels.full[each];
  makeTable(byId("channels-table"), {
    rows: channels.name.map((_, each) => each).sort((a, b) => waited(b) - waited(a) || a - b),
    found: (each) => isFound(channels.producer[each]) || isFound(channels.consumer[each]),
    family: (each) => channels.family[each],
    columns: [
      { title: "from", value: (each) => units.name[channels.producer[each]], show: (each) => unitLink(channels.producer[each]) },
      { title: "to", value: (each) => units.name[channels.consumer[each]], show: (each) => unitLink(channels.consumer[each]) },
      { title: "depth", value: (each) => channels.depth[each] },
      { title: "elements", meaning: "values dequeued", value: (each) => channels.elements[each] },
      { title: causes[data.waits[0]].label, meaning: "cycles in which its reader waited for an element", value: (each) => channels.empty[each] },
      { title: causes[data.waits[1]].label, meaning: "cycles in which its writer waited for a slot or a credit", value: (each) => channels.full[each] },
    ],
  });
  const stalled = data.charged.reduce((sum, [, cycles]) => sum + cycles, 0);
  const rootColumn = (title) => ({ title, value: ([root]) => roots[root].name, show: ([root]) => rootName(root) });
  const ofRoot = ([root]) => !view.query.trim() || (roots[root].unit >= 0 && isFound(roots[root].unit));
  makeTable(byId("roots-table"), {
    rows: data.charged, found: ofRoot, family: ([root]) => roots[root].family,
    columns: [rootColumn("root"), { title: "cycles", sum: true, value: ([, cycles]) => cycles },
      { title: "%", sum: true, value: ([, cycles]) => (100 * cycles) / stalled, digits: tenths },
      { title: "units stalled", value: ([root]) => roots[root].units }],
  });
  makeTable(byId("path-table"), {
    rows: data.path, found: ofRoot, family: ([root]) => roots[root].family,
    columns: [rootColumn("through"), { title: "cycles", sum: true, value: ([, cycles]) => cycles },
      { title: "%", sum: true, value: ([, cycles]) => (100 * cycles) / Math.max(1, run.cycles), digits: tenths }],
  });
  makeTable(byId("phases-table"), {
    rows: data.phases,
    columns: [{ title: "from", value: ([start]) => start, show: ([start, end]) => make("button", { class: "link", onclick: () => show(start, end) }, number(start)) },
      { title: "to", value: ([, end]) => end },
      { title: "% of it", value: ([, , , share]) => share, digits: tenths },
      { title: "mostly through", value: ([, , root]) => roots[root].name, show: ([, , root]) => rootName(root) }],
  });
}

/** Stages with their time, traffic and memory; and changes that would help. */
function makeStages() {
  const { stages, help, help_notes: notes, run } = data;
  const share = (cycles) => (100 * cycles) / Math.max(1, run.cycles);
  const chooseFamily = (title) => {
    const members = data.units.family.flatMap((family, unit) => (family === title ? [unit] : []));
    if (members.length > 1) chooseGroup(members, title);
    else choose(members[0]);
  };
  makeTable(byId("stages-table"), {
    rows: stages,
    columns: [
      { title: "stage", value: ([name]) => name, show: ([name]) => make("button", { class: "link", onclick: () => chooseFamily(name) }, name) },
      { title: "units", value: ([, count]) => count },
      { title: "path, %", meaning: "share of the critical path", value: ([, , cycles]) => share(cycles), digits: tenths },
      { title: "headroom, %", meaning: "cycles that the run would save if the stage took no time", value: ([, , , saved]) => (saved === null ? null : share(saved)), digits: tenths },
      { title: "off-chip bytes", value: ([, , , , bytes]) => bytes },
      { title: "on-chip bytes", value: ([, , , , , bytes]) => bytes },
      { title: "wired at", value: ([, , , , , , place]) => place },
    ],
  });
  byId("help-of").hidden = !help.length && !notes.length;
  byId("help-of").append(...notes.map((note) => make("p", {}, note)));
  makeTable(byId("help-table"), {
    rows: help,
    columns: [
      { title: "if", value: ([change]) => change },
      { title: "cycles", value: ([, cycles]) => cycles },
      { title: "fewer, %", value: ([, cycles]) => share(run.cycles - cycles), digits: tenths },
      { title: "", value: ([, , estimated]) => (estimated ? "estimated" : "exact") },
    ],
  });
}

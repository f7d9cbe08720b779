"""Stalls by names: cycles of units by cause, roots of waits, and the bound of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from fabric.analysis.trace.analysis.accounts import Accounts, StalledUnit
from fabric.analysis.trace.analysis.critical import (
    CriticalPath,
    WaitRoot,
    cycles_by_root,
    named_path,
    named_root,
    ranked,
    summed,
)
from fabric.analysis.trace.analysis.roots import Root
from fabric.analysis.trace.analysis.slow_memory import SlowMemory, slow_memory_of
from fabric.analysis.trace.analysis.traffic import traffic_of
from fabric.analysis.trace.analysis.what_if import Gain, large_gains
from fabric.analysis.trace.reading.names import Names, percent
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.display.parts import SHOWN as ROWS
from fabric.display.parts import Bar, Fold, Rows, Sheet, Title, line
from fabric.display.result import Result
from fabric.messages.causes import SHOWN, Cause
from fabric.messages.place import Place
from fabric.messages.text import Family, Spread, absent_line, counted, families_with, spread

_LINKS: Final = "for links"


@dataclass(frozen=True)
class ChargedRoot:
    """Stalled cycles of all units with one root, and the number of units."""

    root: WaitRoot
    cycles: int
    units: int


@dataclass(frozen=True)
class StalledFamily:
    """Units that were wired at one place, with names that differ in numbers only."""

    name: str
    units: tuple[StalledUnit, ...] = field(repr=False)
    mostly: str  # the median unit's longest wait, such as ``from load_0..3`` or ``for HBM``

    @property
    def spread(self) -> Spread[StalledUnit]:
        """The least, the median and the most stalled unit."""
        return spread(self.units, lambda unit: unit.stalled_cycles)


class StageFigures(NamedTuple):
    """A family of units as a stage of the program: its time, traffic and memory."""

    name: str
    file: str
    line: int
    units: int
    path_cycles: int  # of the critical path, in its units or in a memory that serves them
    headroom_cycles: int | None  # saved if the family took no time; None if unknown
    off_chip_bytes: int  # moved
    on_chip_bytes: int | None  # required; None if not recorded


@dataclass(frozen=True)
class FoldedStalls:
    """The account by families of units."""

    stages: tuple[StageFigures, ...]
    families: tuple[StalledFamily, ...]  # on the critical path first, then the most stalled
    absent: tuple[Family[str], ...]  # units that took and sent no element
    roots: tuple[ChargedRoot, ...] = field(repr=False)
    critical_path: CriticalPath = field(repr=False)


@dataclass(frozen=True, repr=False)
class Stalls(Result):
    """The cycles of a run by unit and cause, and the bound of the run.

    ``units``: traced units, on the critical path first, then the most stalled, idle units last.
    ``hbm``: reasons for a slow HBM; None without waits for it or without counters. ``gains``:
    changes that shorten the run, the largest first; None if the run cannot be timed again, because
    it did not complete or not all was traced.
    """

    cycles: int  # the traced cycles; each unit accounts for all
    units: tuple[StalledUnit, ...] = field(repr=False)
    roots: tuple[ChargedRoot, ...] = field(repr=False)  # of stalled cycles, the largest first
    critical_path: CriticalPath = field(repr=False)
    hbm: SlowMemory | None = field(repr=False)
    gains: tuple[Gain, ...] | None = field(repr=False)
    verdict: str  # a sentence with the bound of the run, or its end if it did not complete
    traffic: tuple[str, ...]  # sentences about the HBM's bytes, bytes read again, and a slow end
    folded: FoldedStalls = field(repr=False)  # the same accounts by family

    @property
    def stalled_cycles(self) -> int:
        return sum(root.cycles for root in self.roots)

    def sheet(self, shown: int = ROWS, *, unfold: bool = False) -> Sheet:
        """Yield the verdict, the gains, the tables and the critical path.

        Each table has at most ``shown`` rows: families of units, or units with ``unfold``.
        """
        yield line((self.verdict, "bold"))
        yield from map(line, self.traffic)
        if self.gains:
            yield from _gains(self.gains, self.cycles, shown)
        yield from _stages(self, shown)
        unfold = unfold or all(len(family.units) == 1 for family in self.folded.families)
        accounts = self if unfold else self.folded
        yield from self.cycles_sheet(shown, unfold=unfold)
        if not unfold:
            yield Fold("Each unit", self.cycles_sheet(None, unfold=True))
        yield from _roots(accounts.roots, self.stalled_cycles, shown)
        yield from accounts.critical_path.sheet(shown)
        if self.hbm is not None:
            yield from self.hbm.sheet(shown)

    def cycles_sheet(self, shown: int | None = ROWS, *, unfold: bool = False) -> Sheet:
        """Yield a row for each unit, or for each family with its median unit and its spread."""
        families = self.folded.families
        if unfold:
            families = tuple(
                StalledFamily(unit.name, (unit,), unit.memory_wait or str(unit.mostly or ""))
                for unit in self.units
            )
        spreads = [family.spread for family in families]
        columns = _columns([units.median for units in spreads])
        rows = []
        for family, (least, median, most) in zip(families, spreads, strict=True):
            shares = {cause: getattr(median, cause.column) / (self.cycles or 1) for cause in SHOWN}
            cells = [Bar(shares), *(getattr(median, column) for column in columns.values())]
            if not unfold:
                count = len(family.units)
                ends = (unit.stalled_cycles if count > 1 else None for unit in (least, most))
                cells = [count, *cells, *ends]
            place = Place(median.file, median.line).brief
            rows.append((family.name, *cells, family.mostly, place))
        note = f", each row sums to {counted(self.cycles, 'cycle')}"
        note += "" if unfold else ", for the median unit of each family by stalled cycles"
        note += f"; {_LINKS} is part of {Cause.EMPTY.label}" if _LINKS in columns else ""
        yield Title("Where the cycles went", note)
        titles = ["", *columns]
        if not unfold:
            titles = ["units", *titles, "least stalled", "most stalled"]
        yield Rows(("unit", *titles, "mostly", "wired at"), rows, shown)
        if self.folded.absent and not unfold:
            yield line(absent_line(self.folded.absent))


def _stages(stalls: Stalls, shown: int) -> Sheet:
    rows = []
    for stage in stalls.folded.stages:
        path, headroom = (
            None if cycles is None else percent(cycles, stalls.cycles)
            for cycles in (stage.path_cycles, stage.headroom_cycles)
        )
        amounts = (stage.off_chip_bytes, stage.on_chip_bytes)
        place = Place(stage.file, stage.line).brief
        rows.append((stage.name, stage.units, path, headroom, *amounts, place))
    note = ", by their share of the critical path; headroom: saved if the stage took no time"
    yield Title("Stages", note)
    titles = ("stage", "units", "path, %", "headroom, %", "off-chip bytes", "on-chip bytes")
    yield Rows((*titles, "wired at"), rows, shown)


def _columns(units: Sequence[StalledUnit]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for cause in SHOWN:
        columns[cause.label] = cause.column
        if cause is Cause.EMPTY:
            columns[_LINKS] = "links_cycles"
    return {
        title: column
        for title, column in columns.items()
        if any(getattr(unit, column) for unit in units)
    }


def _roots(roots: Iterable[ChargedRoot], stalled: int, shown: int) -> Sheet:
    rows = [(r.root.name, r.cycles, percent(r.cycles, stalled), r.units) for r in roots]
    cycles = counted(stalled, "stalled cycle")
    yield Title(
        "Roots of the waits", f", {cycles} of all units, each charged to the end of its chain"
    )
    yield Rows(("root", "stalled cycles", "%", "units stalled"), rows, shown)


def _gains(gains: Sequence[Gain], cycles: int, shown: int) -> Sheet:
    large, sentence = large_gains(gains, cycles)
    rows = [
        (
            gain.change,
            gain.changed_cycles,
            percent(cycles - gain.changed_cycles, cycles),
            "estimated" if gain.estimated else "exact",
        )
        for gain in large
    ]
    note = "half as long: half the work and half the waits for the HBM; `trace what-if` has more"
    yield Title("What would help", f"; {note}")
    if rows:
        yield Rows(("if", "cycles", "fewer, %", ""), rows, shown)
    if sentence:
        yield line(sentence)


def stalls_of(trace: RecordedRun) -> Stalls:
    accounts = Accounts(trace)
    names = accounts.names
    return Stalls(
        cycles=accounts.cycles,
        units=tuple(accounts.ranked()),
        roots=_charged(names, accounts.by_unit.values()),
        critical_path=named_path(names, accounts.timelines, accounts.path, accounts.status),
        hbm=slow_memory_of(trace.hbm, accounts),
        gains=accounts.gains,
        verdict=accounts.verdict(),
        traffic=traffic_of(trace, accounts),
        folded=_folded(trace, accounts),
    )


def _folded(trace: RecordedRun, accounts: Accounts) -> FoldedStalls:
    names, first = accounts.names, accounts.names.first

    def of_family(root: Root) -> Root:
        return root if root.unit < 0 else root._replace(unit=first[root.unit])

    waits = [
        summed((of_family(root), cycles) for root, cycles in charged.items())
        for charged in accounts.by_unit.values()
    ]
    path = [step._replace(root=of_family(step.root)) for step in accounts.path]
    on_path = summed((root.unit, cycles) for root, cycles in cycles_by_root(path).items())
    traced = accounts.by_number
    active = families_with(names.families, (traced.keys() & accounts.active).__contains__)
    absent = families_with(names.families, (traced.keys() - accounts.active).__contains__)
    stalled = [_family(names.folded, [traced[unit] for unit in members]) for _, members in active]

    def key(family: StalledFamily) -> tuple[int, int, int]:
        number = first[family.units[0].number]
        return -on_path[number], -family.spread.most.stalled_cycles, number

    return FoldedStalls(
        stages=stages_of(trace, accounts),
        families=tuple(sorted(stalled, key=key)),
        absent=tuple(
            Family(title, tuple(names.units[unit] for unit in units)) for title, units in absent
        ),
        roots=_charged(names.folded, waits),
        critical_path=named_path(names.folded, accounts.timelines, path, accounts.status),
    )


def stages_of(trace: RecordedRun, accounts: Accounts) -> tuple[StageFigures, ...]:
    names, needs = accounts.names, trace.end.on_chip_bytes
    path = accounts.on_path().items()
    on_path = summed((names.first[root.unit], cycles) for root, cycles in path if root.unit >= 0)
    saved: dict[str, int] = {}
    if accounts.gains is not None:
        saved = {names.family[unit].title: 0 for unit in accounts.tried}
        saved |= {gain.name: accounts.cycles - gain.cycles for gain in accounts.gains}
    stages = [
        StageFigures(
            title,
            *names.wired[members[0]],
            len(members),
            on_path[members[0]],
            saved.get(title),
            sum(accounts.moved_bytes[unit] for unit in members),
            sum(needs[unit] for unit in members) if needs else None,
        )
        for title, members in names.families
    ]
    return tuple(sorted(stages, key=lambda stage: [n or 0 for n in stage[4:]], reverse=True))


def _family(names: Names, members: list[StalledUnit]) -> StalledFamily:
    units = tuple(sorted(members, key=lambda unit: (unit.stalled_cycles, unit.number)))
    median = spread(units, lambda unit: unit.stalled_cycles).median
    channel = names.far_end(median.number, median.mostly.number) if median.mostly else ""
    return StalledFamily(names.units[median.number], units, median.memory_wait or channel)


def _charged(names: Names, waits: Iterable[Counter[Root]]) -> tuple[ChargedRoot, ...]:
    cycles: Counter[Root] = Counter()
    units: Counter[Root] = Counter()
    for of_unit in waits:
        cycles.update(of_unit)
        units.update(of_unit.keys())
    return tuple(
        ChargedRoot(named_root(names, root), count, units[root]) for root, count in ranked(cycles)
    )

"""Stalls by names: cycles of units by cause, roots of waits, and reasons for a slow HBM."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.analysis.trace.analysis.critical import (
    CriticalPath,
    WaitRoot,
    cycles_by_root,
    named_path,
    named_root,
)
from fabric.analysis.trace.analysis.stalls import Accounts
from fabric.display.parts import ShownAsTables
from fabric.messages.causes import BusUse
from fabric.messages.text import Family, Spread, spread
from fabric.timing.state.resource_use import bus_shares, row_outcomes, uneven_channels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fabric.analysis.trace.analysis.roots import Root
    from fabric.analysis.trace.analysis.timeline import UnitStalls
    from fabric.analysis.trace.analysis.what_if import Gain
    from fabric.analysis.trace.reading.reader import RecordedRun
    from fabric.analysis.trace.reading.wording import Names
    from fabric.timing.engine.off_chip import ClientTraffic, MemoryCounters

_MUCH: Final = {
    BusUse.WINDOW: 10.0,
    BusUse.CONFLICT: 10.0,
    BusUse.TURNAROUND: 5.0,
    BusUse.REFRESH: 5.0,
    BusUse.IDLE: 50.0,
}
"""Smallest percentage of the buses' cycles that is reported."""

_NEVER: Final = 101.0

_LOST: Final = {BusUse.WINDOW, BusUse.CONFLICT}

_MANY_CONFLICTS: Final = 20


@dataclass(frozen=True)
class SlowedUnit:
    """The requests of a unit that waited for the HBM; cycles are averages.

    Attributes:
        queued_cycles: outside of a full window.
        waiting_cycles: in the window, up to the first command.
        serving_cycles: from the first command to the end.
        conflict_percent: requests that found another row open in their bank.
    """

    name: str
    hbm_cycles: int
    requests: int
    queued_cycles: float
    waiting_cycles: float
    serving_cycles: float
    conflict_percent: float


@dataclass(frozen=True)
class SlowMemory:
    """Reasons for a slow HBM; the counters cover the whole run."""

    counters: MemoryCounters = field(repr=False)
    units: tuple[SlowedUnit, ...] = field(repr=False)
    findings: tuple[str, ...]


def slow_memory_of(counters: MemoryCounters | None, accounts: Accounts) -> SlowMemory | None:
    """Return the reasons for a slow HBM; None without waits for it or without counters."""
    if counters is None:
        return None
    waited = {each.unit: each.hbm for each in accounts.units if each.hbm}
    units = [
        _slowed(accounts.names.units[each.unit], waited[each.unit], each)
        for each in counters.clients
        if each.unit in waited and each.requests
    ]
    if not units:
        return None
    units.sort(key=lambda each: (-each.hbm_cycles, each.name))
    return SlowMemory(counters, tuple(units), tuple(_findings(counters)))


def _slowed(name: str, hbm_cycles: int, client: ClientTraffic) -> SlowedUnit:
    requests = client.requests
    return SlowedUnit(
        name,
        hbm_cycles,
        requests,
        client.queued_cycles / requests,
        client.waiting_cycles / requests,
        client.serving_cycles / requests,
        100 * client.row_conflicts / requests,
    )


def _findings(counters: MemoryCounters) -> Iterator[str]:
    shares = dict(bus_shares(counters.bus))
    if not shares:
        return
    spent = ", ".join(f"{use.label} {share:.1f} %" for use, share in shares.items())
    yield f"Cycles of its buses: {spent}."
    yield f"Of its requests: {row_outcomes(counters)}."
    much = {use for use, share in shares.items() if share >= _MUCH.get(use, _NEVER)}
    conflicts = sum(each.row_conflicts for each in counters.channels)
    # If most requests wait for rows, a larger window would only hold more such requests.
    if BusUse.WINDOW in much and shares[BusUse.WINDOW] > shares.get(BusUse.CONFLICT, 0):
        yield (
            "Window full: no request in it was ready, and requests waited outside, unseen. Fewer "
            "concurrent streams or a larger window leave fewer requests outside."
        )
    if BusUse.CONFLICT in much:
        yield (
            "Rows and commands: all waiting requests were in the window. A larger window would "
            "not help."
        )
    if 100 * conflicts >= _MANY_CONFLICTS * counters.requests > 0 and _LOST & much:
        yield (
            "Row conflicts: where tensors lie ([placement]) and how addresses are mapped decide "
            "which streams share a bank."
        )
    uneven = uneven_channels(counters)
    if uneven is not None:
        yield (
            f"Channels: {uneven}. Where tensors lie ([placement]) and how addresses are "
            "mapped decide that."
        )
    if BusUse.TURNAROUND in much:
        yield "Turnaround: longer runs of reads and of writes take fewer turns."
    if BusUse.REFRESH in much:
        yield "Refresh: rows are refreshed whatever the program does."
    if BusUse.IDLE in much:
        yield "Idle: no request waited then, so that bandwidth was not what was short."


@dataclass(frozen=True)
class ChannelWait:
    """A unit's wait at one of its channels.

    ``reads``: the unit reads the channel and waited for elements; otherwise for slots.
    """

    channel: str
    peer: str
    reads: bool
    cycles: int

    def __str__(self) -> str:
        """``from PRODUCER`` or ``to CONSUMER``."""
        return f"{'from' if self.reads else 'to'} {self.peer}"


@dataclass(frozen=True)
class StalledUnit:
    """A unit's cycles by cause. They sum to the cycles accounted for, without ``links_cycles``.

    Attributes:
        links_cycles: part of ``empty_cycles`` in which shared network links delayed the element.
        mostly: the channel of the longest wait; None without a wait.
    """

    name: str
    operator: str
    file: str
    line: int
    busy_cycles: int
    empty_cycles: int
    links_cycles: int
    full_cycles: int
    hbm_cycles: int
    capacity_cycles: int
    idle_cycles: int
    elements: int
    mostly: ChannelWait | None

    @property
    def stalled_cycles(self) -> int:
        """Cycles of all waits."""
        return self.empty_cycles + self.full_cycles + self.hbm_cycles + self.capacity_cycles

    @property
    def took_part(self) -> bool:
        """Whether it received an element, worked, or used a memory."""
        return bool(self.elements or self.busy_cycles or self.hbm_cycles or self.capacity_cycles)


@dataclass(frozen=True)
class ChargedRoot:
    """Stalled cycles with one root, of all units together."""

    root: WaitRoot
    cycles: int
    units: int


@dataclass(frozen=True)
class StalledFamily:
    """Units that were wired at one place, with names that differ in numbers only.

    ``mostly``: the family in the median unit's longest wait, such as ``from load_0..3``.
    """

    name: str
    units: tuple[StalledUnit, ...] = field(repr=False)
    mostly: str

    @property
    def spread(self) -> Spread[StalledUnit]:
        """The least, the median and the most stalled unit."""
        return spread(self.units, lambda unit: unit.stalled_cycles)


class StageFigures(NamedTuple):
    """A family of units as a stage of the program: its time, traffic and memory.

    Attributes:
        path_cycles: of the critical path, in its units or in a memory that serves them.
        headroom_cycles: saved if the stage took no time; None if the run cannot be timed again.
        on_chip_bytes: required; None if not recorded.
    """

    name: str
    file: str
    line: int
    units: int
    path_cycles: int
    headroom_cycles: int | None
    off_chip_bytes: int
    on_chip_bytes: int | None


@dataclass(frozen=True)
class FoldedStalls:
    """The account with families for units.

    Attributes:
        families: on the critical path first, then the most stalled.
        absent: families of units without an element.
    """

    stages: tuple[StageFigures, ...]
    families: tuple[StalledFamily, ...]
    absent: tuple[Family[str], ...]
    roots: tuple[ChargedRoot, ...] = field(repr=False)
    critical_path: CriticalPath = field(repr=False)


@dataclass(frozen=True, repr=False)
class Stalls(ShownAsTables):
    """The cycles of a run by unit and cause, and the bound of the run.

    Attributes:
        cycles: the traced cycles; each unit accounts for all.
        units: traced units, on the critical path first, then the most stalled, idle units last.
        roots: of stalled cycles, the largest first.
        critical_path: chain of work and waits that decides when the run ends.
        hbm: reasons for a slow HBM; None without waits for it or without counters.
        gains: changes that shorten the run, the largest first; None if the run cannot be timed
            again, because it did not complete or not all was traced.
        verdict: a sentence with the bound of the run, or its end if it did not complete.
        folded: the same accounts by family.
    """

    cycles: int
    units: tuple[StalledUnit, ...] = field(repr=False)
    roots: tuple[ChargedRoot, ...] = field(repr=False)
    critical_path: CriticalPath = field(repr=False)
    hbm: SlowMemory | None = field(repr=False)
    gains: tuple[Gain, ...] | None = field(repr=False)
    verdict: str
    folded: FoldedStalls = field(repr=False)

    @property
    def stalled_cycles(self) -> int:
        """Stalled cycles of all units."""
        return sum(each.cycles for each in self.roots)


def stalls_of(trace: RecordedRun) -> Stalls:
    """Account for ``trace``."""
    accounts = Accounts(trace)
    names = accounts.names
    units = {each.unit: _named(accounts, each) for each in accounts.ranked()}
    return Stalls(
        cycles=accounts.cycles,
        units=tuple(units.values()),
        roots=_charged(names, accounts.by_unit.values()),
        critical_path=named_path(names, accounts.timelines, accounts.path, accounts.status),
        hbm=slow_memory_of(trace.hbm, accounts),
        gains=accounts.gains,
        verdict=accounts.verdict(),
        folded=_folded(trace, accounts, units),
    )


def _folded(trace: RecordedRun, accounts: Accounts, units: dict[int, StalledUnit]) -> FoldedStalls:
    names = accounts.names

    def of_family(root: Root) -> Root:
        return root if root.unit < 0 else root._replace(unit=names.first[root.unit])

    waits: list[Counter[Root]] = []
    for charged in accounts.by_unit.values():
        together: Counter[Root] = Counter()
        for root, cycles in charged.items():
            together[of_family(root)] += cycles
        waits.append(together)
    path = [step._replace(root=of_family(step.root)) for step in accounts.path]
    on_path: Counter[int] = Counter()
    for root, cycles in cycles_by_root(path).items():
        on_path[root.unit] += cycles
    took_part: dict[int, list[int]] = {}
    absent: dict[int, list[str]] = {}
    for unit, stalled in units.items():
        if stalled.took_part:
            took_part.setdefault(names.first[unit], []).append(unit)
        else:
            absent.setdefault(names.first[unit], []).append(stalled.name)
    found = [
        (first, _family(accounts, [(unit, units[unit]) for unit in members]))
        for first, members in took_part.items()
    ]
    found.sort(key=lambda each: (-on_path[each[0]], -each[1].spread.most.stalled_cycles, each[0]))
    return FoldedStalls(
        stages=stages_of(trace, accounts),
        families=tuple(family for _, family in found),
        absent=tuple(
            Family(names.folded.units[first], tuple(members))
            for first, members in sorted(absent.items())
        ),
        roots=_charged(names.folded, waits),
        critical_path=named_path(names.folded, accounts.timelines, path, accounts.status),
    )


def stages_of(trace: RecordedRun, accounts: Accounts) -> tuple[StageFigures, ...]:
    """Return the stages of the program."""
    on_path: Counter[int] = Counter()
    for root, cycles in accounts.on_path().items():
        if root.unit >= 0:
            on_path[accounts.names.first[root.unit]] += cycles
    names, needs = accounts.names, trace.on_chip_bytes
    moved = Counter(dict(trace.rows("SELECT unit, sum(bytes)::BIGINT FROM bursts GROUP BY unit")))
    saved: dict[str, int] = {}
    if accounts.gains is not None:
        saved = {names.family_of(unit).title: 0 for unit in accounts.tried}
        saved |= {gain.name: accounts.cycles - gain.cycles for gain in accounts.gains}
    found = [
        StageFigures(
            title,
            *names.wired[members[0]],
            len(members),
            on_path[members[0]],
            saved.get(title),
            sum(moved[unit] for unit in members),
            sum(needs[unit] for unit in members) if needs else None,
        )
        for title, members in names.families
    ]

    def weight(stage: StageFigures) -> tuple[int, int, int, int]:
        headroom = stage.headroom_cycles or 0
        return stage.path_cycles, headroom, stage.off_chip_bytes, stage.on_chip_bytes or 0

    return tuple(sorted(found, key=weight, reverse=True))


def _family(accounts: Accounts, members: list[tuple[int, StalledUnit]]) -> StalledFamily:
    names = accounts.names.folded
    members = sorted(members, key=lambda member: (member[1].stalled_cycles, member[0]))
    median = spread(members, lambda member: member[1].stalled_cycles).median[0]
    worst = accounts.by_number[median].worst
    return StalledFamily(
        name=names.units[median],
        units=tuple(unit for _, unit in members),
        mostly="" if worst is None else names.far_end(median, worst[0]),
    )


def _charged(names: Names, waits: Iterable[Counter[Root]]) -> tuple[ChargedRoot, ...]:
    cycles: Counter[Root] = Counter()
    stalled: Counter[Root] = Counter()
    for each in waits:
        cycles.update(each)
        stalled.update(each.keys())
    ranked = sorted(cycles.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        ChargedRoot(named_root(names, root), count, stalled[root]) for root, count in ranked
    )


def _named(accounts: Accounts, stalls: UnitStalls) -> StalledUnit:
    names, unit, mostly = accounts.names, stalls.unit, None
    if stalls.worst is not None:
        channel, cycles = stalls.worst
        producer, consumer = names.ends[channel]
        peer = producer if consumer == unit else consumer
        mostly = ChannelWait(names.channels[channel], names.units[peer], consumer == unit, cycles)
    place = names.wired[unit]
    return StalledUnit(
        name=names.units[unit],
        operator=names.operators[unit],
        file=place.file,
        line=place.line,
        busy_cycles=stalls.busy,
        empty_cycles=stalls.empty,
        links_cycles=stalls.links,
        full_cycles=stalls.full,
        hbm_cycles=stalls.hbm,
        capacity_cycles=stalls.capacity,
        idle_cycles=stalls.idle,
        elements=accounts.elements[unit],
        mostly=mostly,
    )

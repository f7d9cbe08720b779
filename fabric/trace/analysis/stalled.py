"""Stalls as a result: where each unit's cycles went, and for whom it waited, by names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabric.trace.analysis.path import CriticalPath, WaitRoot, named_path, named_root
from fabric.trace.analysis.slow_memory import SlowMemory, slow_memory_of
from fabric.trace.analysis.stalls import Accounts

if TYPE_CHECKING:
    from fabric.trace.analysis.gains import Gain
    from fabric.trace.analysis.timeline import UnitStalls
    from fabric.trace.reading.reader import RecordedRun
    from fabric.trace.reading.wording import Names

__all__ = ["ChannelWait", "ChargedRoot", "StalledUnit", "Stalls", "stalls_of"]


@dataclass(frozen=True)
class ChannelWait:
    """How long a unit waited at one of its channels.

    Attributes:
        channel: its name.
        peer: the unit at the other end.
        reads: the unit reads the channel, so that it waited for elements; else for slots.
        cycles: that it waited.
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
    """Where a unit's cycles went; the columns of cycles sum to those accounted for.

    Attributes:
        name, operator, file, line: which unit, and where it was wired.
        busy_cycles: charged for work.
        empty_cycles: waited for an element or the end of a stream.
        full_cycles: waited for a slot, and for its credit on the way back.
        hbm_cycles: waited for the HBM.
        capacity_cycles: waited for on-chip capacity.
        idle_cycles: between its end and the run's.
        mostly: the channel at which it waited longest; None where it waited at none.
    """

    name: str
    operator: str
    file: str
    line: int
    busy_cycles: int
    empty_cycles: int
    full_cycles: int
    hbm_cycles: int
    capacity_cycles: int
    idle_cycles: int
    mostly: ChannelWait | None

    @property
    def stalled_cycles(self) -> int:
        """Cycles of all waits."""
        return self.empty_cycles + self.full_cycles + self.hbm_cycles + self.capacity_cycles


@dataclass(frozen=True)
class ChargedRoot:
    """Stalled cycles that were waits for one thing in the end.

    Attributes:
        root: the thing.
        cycles: of all units together.
        units: how many of them.
    """

    root: WaitRoot
    cycles: int
    units: int


@dataclass(frozen=True)
class Stalls:
    """All of a run's cycles, accounted for.

    Attributes:
        cycles: accounted for, of each unit: those that were traced.
        units: those of the critical path first, then the most stalled; not those that were not
            traced.
        roots: what stalled cycles were really waiting for, the most first.
        critical_path: what the run went through.
        hbm: why the HBM was slow for those that waited for it; None where its model counts nothing.
        gains: what would make the run shorter, the most first; None of a run that cannot be timed
            again, since it did not complete or not all of it was traced.
        verdict: a sentence: what bounds the run, or what became of it.
    """

    cycles: int
    units: tuple[StalledUnit, ...] = field(repr=False)
    roots: tuple[ChargedRoot, ...] = field(repr=False)
    critical_path: CriticalPath = field(repr=False)
    hbm: SlowMemory | None = field(repr=False)
    gains: tuple[Gain, ...] | None = field(repr=False)
    verdict: str

    @property
    def stalled_cycles(self) -> int:
        """Of all units."""
        return sum(each.cycles for each in self.roots)


def stalls_of(trace: RecordedRun) -> Stalls:
    """Account for ``trace``."""
    accounts = Accounts(trace)
    names = accounts.names
    stalled = Counter(root for each in accounts.by_unit.values() for root in each)
    ranked = sorted(accounts.charged.items(), key=lambda item: (-item[1], item[0]))
    return Stalls(
        cycles=accounts.cycles,
        units=tuple(_named(names, each) for each in accounts.ranked()),
        roots=tuple(
            ChargedRoot(named_root(names, root), cycles, stalled[root]) for root, cycles in ranked
        ),
        critical_path=named_path(names, accounts.timelines, accounts.path, accounts.status),
        hbm=slow_memory_of(trace.hbm, accounts),
        gains=accounts.gains,
        verdict=accounts.verdict(),
    )


def _named(names: Names, stalls: UnitStalls) -> StalledUnit:
    """Return ``stalls`` with names for numbers."""
    unit, mostly = stalls.unit, None
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
        full_cycles=stalls.full,
        hbm_cycles=stalls.hbm,
        capacity_cycles=stalls.capacity,
        idle_cycles=stalls.idle,
        mostly=mostly,
    )

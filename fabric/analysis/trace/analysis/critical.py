"""The critical path of a run, traced back from the last cycle through the events that end waits."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from fabric.analysis.trace.analysis.roots import HOP, NETWORK, UNTRACED, Root
from fabric.analysis.trace.analysis.timeline import Timelines, timelines
from fabric.analysis.trace.reading.names import Names, percent
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.display.parts import SHOWN, Rows, Sheet, Title
from fabric.display.result import Result
from fabric.messages.causes import Cause

_PHASES: Final = 10


class Stretch(NamedTuple):
    start: int
    end: int
    root: Root


def critical_path(timelines: Timelines) -> list[Stretch]:
    """Return the path, earliest step first; the steps cover the cycles without a gap.

    The path ends with the unit that runs longest (the lowest node on a tie). If the run is
    longer than this unit, the HBM's shutdown is the last step.
    """
    unit = max(range(len(timelines.names)), key=lambda number: (timelines.final[number], -number))
    cycle = timelines.final[unit]
    begins = [[wait.start for wait in waits] for waits in timelines.waits]
    steps: list[Stretch] = []
    if timelines.last > cycle:
        steps.append(Stretch(cycle, timelines.last, Root(Cause.HBM, unit)))
    cycle = min(cycle, timelines.last)
    while cycle > timelines.first:
        waits = timelines.waits[unit]
        number = bisect_left(begins[unit], cycle) - 1
        if number < 0 or waits[number].end < cycle:
            start = timelines.first if number < 0 else waits[number].end
            root = Root("unit", unit) if timelines.traced[unit] else UNTRACED
            steps.append(Stretch(start, cycle, root))
            cycle = start
            continue
        wait = waits[number]
        if wait.peer < 0:
            steps.append(Stretch(wait.start, cycle, Root(wait.cause, unit)))
            cycle = wait.start
            continue
        until, held = min(wait.until, cycle), min(wait.end - wait.links, cycle)
        if held < cycle:
            steps.append(Stretch(held, cycle, NETWORK))
        if until < held:
            steps.append(Stretch(until, held, Root("unit", wait.peer) if wait.late else HOP))
        unit, cycle = wait.peer, until
    steps.reverse()
    return steps


Key = TypeVar("Key", str, int, Root)


def summed(counts: Iterable[tuple[Key, int]]) -> Counter[Key]:
    """Return the sum of the counts of each key."""
    sums: Counter[Key] = Counter()
    for key, count in counts:
        sums[key] += count
    return sums


def ranked(counts: Mapping[Key, int]) -> list[tuple[Key, int]]:
    """Return the keys with their counts, the largest count first."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def cycles_by_root(path: Iterable[Stretch]) -> Counter[Root]:
    return summed((step.root, step.end - step.start) for step in path)


def path_note(status: str) -> str:
    """Return a note about the path of an incomplete run; empty for a complete one."""
    return "" if status == "completed" else "of what happened until the run stopped"


def phases(timelines: Timelines, path: list[Stretch]) -> list[tuple[int, int, Root, float]]:
    """Return the largest part of the path, and its share, in each tenth of the run.

    Neighbours with the same root are one phase.
    """
    first, last = timelines.first, timelines.last
    edges = sorted({first + (last - first) * tenth // _PHASES for tenth in range(_PHASES + 1)})
    merged: list[tuple[int, int, Root, int]] = []
    number = 0
    for start, end in pairwise(edges):
        cycles: Counter[Root] = Counter()
        while number < len(path) and path[number].end <= start:
            number += 1
        for step in path[number:]:
            if step.start >= end:
                break
            cycles[step.root] += min(step.end, end) - max(step.start, start)
        root, most = max(cycles.items(), key=lambda item: (item[1], item[0]))
        if merged and merged[-1][2] == root:
            begun, _, _, before = merged[-1]
            merged[-1] = (begun, end, root, before + most)
        else:
            merged.append((start, end, root, most))
    return [(start, end, root, most / (end - start)) for start, end, root, most in merged]


@dataclass(frozen=True)
class WaitRoot:
    """The end of a chain of waits.

    ``kind``: a ``unit`` that works, ``hbm`` or ``capacity`` that serves a unit, a ``hop`` between
    units, shared links of the ``network``, ``untraced`` units, or ``open`` waits.
    """

    kind: str
    unit: str | None
    name: str


@dataclass(frozen=True)
class PathStep:
    """A stretch of the path; ``end_cycle`` is the cycle after it."""

    start_cycle: int
    end_cycle: int
    root: WaitRoot


@dataclass(frozen=True)
class PathShare:
    root: WaitRoot
    cycles: int


@dataclass(frozen=True)
class Phase:
    """Tenths of the run with one largest root; ``share``: its part of the path there, 0 to 1."""

    start_cycle: int
    end_cycle: int
    root: WaitRoot
    share: float


@dataclass(frozen=True, repr=False)
class CriticalPath(Result):
    """The chain of work and waits that decides when a run ends. It has each cycle once."""

    cycles: int  # of the path: all traced cycles
    steps: tuple[PathStep, ...] = field(repr=False)  # earliest first, without a gap
    shares: tuple[PathShare, ...] = field(repr=False)  # by root, the largest first
    phases: tuple[Phase, ...] = field(repr=False)
    note: str  # about the path of an incomplete run; empty for a complete one

    def sheet(self, shown: int = SHOWN) -> Sheet:
        """Yield the shares by root, and the phases."""
        note = self.note and f", {self.note}"
        yield Title("Critical path", note)
        rows = [
            (share.root.name, share.cycles, percent(share.cycles, self.cycles))
            for share in self.shares
        ]
        yield Rows(("through", "path cycles", "%"), rows, shown)
        yield Title("Critical path over time", note)
        stretches = [
            (phase.start_cycle, phase.end_cycle, f"{100 * phase.share:.1f}", phase.root.name)
            for phase in self.phases
        ]
        yield Rows(("from", "to", "% of it", "mostly through"), stretches)


def path_of(trace: RecordedRun) -> CriticalPath:
    lines = timelines(trace)
    return named_path(Names(trace), lines, critical_path(lines), trace.status)


def named_path(names: Names, lines: Timelines, path: list[Stretch], status: str) -> CriticalPath:
    cycles = cycles_by_root(path)
    roots = {root: named_root(names, root) for root in cycles}
    return CriticalPath(
        cycles=lines.last - lines.first,
        steps=tuple(PathStep(step.start, step.end, roots[step.root]) for step in path),
        shares=tuple(PathShare(roots[root], count) for root, count in ranked(cycles)),
        phases=tuple(
            Phase(start, end, roots[root], share) for start, end, root, share in phases(lines, path)
        ),
        note=path_note(status),
    )


def named_root(names: Names, root: Root) -> WaitRoot:
    return WaitRoot(
        str(root.kind), names.units[root.unit] if root.unit >= 0 else None, names.root(root)
    )

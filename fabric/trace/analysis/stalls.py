"""All cycles of a run, accounted for: where they went, for whom units waited, what bounds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from fabric.telling.causes import MEMORIES
from fabric.trace.analysis.critical import Step, critical_path, path_note
from fabric.trace.analysis.roots import Root, Roots
from fabric.trace.analysis.timeline import Timelines, UnitStalls, timelines
from fabric.trace.reading.wording import Names, percent

if TYPE_CHECKING:
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["Accounts"]

Key = TypeVar("Key", str, Root)


class Accounts:
    """All a run's cycles, accounted for.

    Attributes:
        names: of units and channels.
        timelines: of all units.
        cycles: accounted for, of each unit.
        units: where each unit's cycles went, in node order; units not traced are left out.
        by_number: the same, by the unit's number.
        charged: stalled cycles of all units by root.
        by_unit: stalled cycles of each unit by root.
        path: the critical path; of a run that stopped, the path to its last cycle.
        status: how the run ended.
    """

    def __init__(self, trace: RecordedRun) -> None:
        """Account for ``trace``."""
        self.names: Final = Names(trace)
        self.status: Final = trace.status
        self.timelines: Final[Timelines] = timelines(trace)
        self.cycles: Final = self.timelines.last - self.timelines.first
        traced = [unit for unit, kept in enumerate(self.timelines.traced) if kept]
        self.units: Final[list[UnitStalls]] = [self.timelines.stalls(unit) for unit in traced]
        self.by_number: Final = {each.unit: each for each in self.units}
        roots = Roots(self.timelines)
        self.by_unit: Final = {unit: roots.charged(unit) for unit in traced}
        self.charged: Final[Counter[Root]] = Counter()
        for each in self.by_unit.values():
            self.charged.update(each)
        self.path: Final[list[Step]] = critical_path(self.timelines)

    def on_path(self) -> Counter[Root]:
        """Return the cycles of the critical path by root."""
        cycles: Counter[Root] = Counter()
        for step in self.path:
            cycles[step.root] += step.end - step.start
        return cycles

    def ranked(self) -> list[UnitStalls]:
        """Return the units, those of the critical path first, then the most stalled."""
        share: Counter[int] = Counter()
        for root, cycles in self.on_path().items():
            share[root.unit] += cycles
        return sorted(self.units, key=lambda each: (-share[each.unit], -each.stalled, each.unit))

    @property
    def path_note(self) -> str:
        """What the path is of a run that did not come to its end."""
        return path_note(self.status)

    def verdict(self) -> str:
        """Return the sentence that says what bounds the run, or what became of it."""
        if self.status != "completed":
            return self._stopped()
        if not self.cycles:
            return "The run took no cycles."
        names, path = self.names, self.on_path()
        together: Counter[str] = Counter()
        for root, cycles in path.items():
            together[names.bound(root)] += cycles
        name, cycles = _ranked(together)[0]
        root, most = _ranked({r: c for r, c in path.items() if names.bound(r) == name})[0]
        sentence = f"Bound by {name}: {percent(cycles, self.cycles)} % of the critical path"
        if root.kind in MEMORIES:
            sentence += f", {percent(most, self.cycles)} % for {names.units[root.unit]}"
        if root.unit >= 0:
            sentence += f" ({names.places[root.unit]})"
        return sentence + "."

    def _stopped(self) -> str:
        """Return the sentence about a run that did not come to its end: nothing bounds it."""
        lines = self.timelines
        waits = [wait for wait in map(lines.still, range(len(lines.names))) if wait is not None]
        sentence = f"Not completed ({self.status}), so nothing bounds it"
        if not waits:
            return sentence + "."
        waiting = f"{len(waits):,} of {len(lines.names):,} units"
        still = "wait for ever" if self.status == "deadlock" else "were waiting when it stopped"
        first, last = min(wait.start for wait in waits), max(wait.start for wait in waits)
        since = f"since cycle {first:,}"
        if first < last:
            since = f"the first since cycle {first:,}, the last since cycle {last:,}"
        cycles = sum(
            max(0, min(wait.end, lines.last) - max(wait.start, lines.first)) for wait in waits
        )
        share = percent(cycles, self.cycles * len(lines.names))
        return f"{sentence}. {waiting} {still}, {since}: {share} % of all units' cycles."


def _ranked(counted: Mapping[Key, int]) -> list[tuple[Key, int]]:
    """Return the items, the largest count first, then in the order of their keys."""
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))

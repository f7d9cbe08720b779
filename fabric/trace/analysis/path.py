"""The critical path as a result: what a run went through, by names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabric.telling.sheet import ShownAsTables
from fabric.trace.analysis.critical import critical_path, path_note, phases
from fabric.trace.analysis.timeline import timelines
from fabric.trace.reading.wording import Names

if TYPE_CHECKING:
    from fabric.trace.analysis.critical import Step
    from fabric.trace.analysis.roots import Root
    from fabric.trace.analysis.timeline import Timelines
    from fabric.trace.reading.reader import RecordedRun

__all__ = [
    "CriticalPath",
    "PathShare",
    "PathStep",
    "Phase",
    "WaitRoot",
    "named_path",
    "named_root",
    "path_of",
]


@dataclass(frozen=True)
class WaitRoot:
    """What a chain of waits comes to.

    Attributes:
        kind: ``unit`` that works, ``hbm`` or ``capacity`` that serves a unit, ``hop`` between
            units, links of the ``network`` that channels share, ``untraced`` units, or ``open``
            waits that had not ended.
        unit: that works or is served; None for the others.
        name: what it is called.
    """

    kind: str
    unit: str | None
    name: str


@dataclass(frozen=True)
class PathStep:
    """A stretch of the path.

    Attributes:
        start_cycle, end_cycle: its first cycle and the first one after it.
        root: what it went through.
    """

    start_cycle: int
    end_cycle: int
    root: WaitRoot


@dataclass(frozen=True)
class PathShare:
    """How much of the path went through one thing.

    Attributes:
        root: the thing.
        cycles: of the path.
    """

    root: WaitRoot
    cycles: int


@dataclass(frozen=True)
class Phase:
    """Tenths of the run in which the path mostly went through one thing.

    Attributes:
        start_cycle, end_cycle: its first cycle and the first one after it.
        root: the thing.
        share: of the phase, from 0 to 1.
    """

    start_cycle: int
    end_cycle: int
    root: WaitRoot
    share: float


@dataclass(frozen=True, repr=False)
class CriticalPath(ShownAsTables):
    """The chain of work and waits that decides when a run ends, with each cycle once.

    Attributes:
        cycles: of the path, which are all that were traced.
        steps: earliest first, without a gap.
        shares: by root, the largest first.
        phases: earliest first.
        note: what the path is of a run that did not come to its end; empty of one that did.
    """

    cycles: int
    steps: tuple[PathStep, ...] = field(repr=False)
    shares: tuple[PathShare, ...] = field(repr=False)
    phases: tuple[Phase, ...] = field(repr=False)
    note: str


def path_of(trace: RecordedRun) -> CriticalPath:
    """Return the critical path of ``trace``."""
    lines = timelines(trace)
    return named_path(Names(trace), lines, critical_path(lines), trace.status)


def named_path(names: Names, lines: Timelines, path: list[Step], status: str) -> CriticalPath:
    """Return ``path`` with names for numbers."""
    cycles: Counter[Root] = Counter()
    for step in path:
        cycles[step.root] += step.end - step.start
    roots = {root: named_root(names, root) for root in cycles}
    ranked = sorted(cycles.items(), key=lambda item: (-item[1], item[0]))
    return CriticalPath(
        cycles=lines.last - lines.first,
        steps=tuple(PathStep(step.start, step.end, roots[step.root]) for step in path),
        shares=tuple(PathShare(roots[root], count) for root, count in ranked),
        phases=tuple(
            Phase(start, end, roots[root], share) for start, end, root, share in phases(lines, path)
        ),
        note=path_note(status),
    )


def named_root(names: Names, root: Root) -> WaitRoot:
    """Return ``root`` with names for numbers."""
    return WaitRoot(
        str(root.kind), names.units[root.unit] if root.unit >= 0 else None, names.root(root)
    )

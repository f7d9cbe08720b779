"""The critical path of a run: backwards from its last cycle, always to what ended the wait."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise
from typing import Final, NamedTuple

from fabric.telling.causes import Cause
from fabric.trace.analysis.roots import HOP, NETWORK, UNTRACED, Root
from fabric.trace.analysis.timeline import Timelines

__all__ = ["Step", "critical_path", "path_note", "phases"]

_PHASES: Final = 10


class Step(NamedTuple):
    """A stretch of the path: from ``start`` to ``end`` it went through ``root``."""

    start: int
    end: int
    root: Root


def critical_path(timelines: Timelines) -> list[Step]:
    """Return the path, earliest step first; the steps cover the cycles without a gap.

    It ends with the unit that comes furthest (the first in node order where several do), whose
    open wait has no cycles. Cycles after that are those the HBM takes to stop.
    """
    unit = max(range(len(timelines.names)), key=lambda each: (timelines.final[each], -each))
    cycle = timelines.final[unit]
    begins = [[wait.start for wait in waits] for waits in timelines.waits]
    steps: list[Step] = []
    if timelines.last > cycle:
        steps.append(Step(cycle, timelines.last, Root(Cause.HBM, unit)))
    cycle = min(cycle, timelines.last)
    while cycle > timelines.first:
        waits = timelines.waits[unit]
        number = bisect_left(begins[unit], cycle) - 1
        if number < 0 or waits[number].end < cycle:
            start = timelines.first if number < 0 else waits[number].end
            root = Root("unit", unit) if timelines.traced[unit] else UNTRACED
            steps.append(Step(start, cycle, root))
            cycle = start
            continue
        wait = waits[number]
        if wait.peer < 0:
            steps.append(Step(wait.start, cycle, Root(wait.cause, unit)))
            cycle = wait.start
            continue
        until, held = min(wait.until, cycle), min(wait.end - wait.links, cycle)
        if held < cycle:
            steps.append(Step(held, cycle, NETWORK))
        if until < held:
            steps.append(Step(until, held, Root("unit", wait.peer) if wait.late else HOP))
        unit, cycle = wait.peer, until
    steps.reverse()
    return steps


def path_note(status: str) -> str:
    """Return what the path is of a run that did not come to its end; nothing of one that did."""
    return "" if status == "completed" else "of what happened until the run stopped"


def phases(timelines: Timelines, path: list[Step]) -> list[tuple[int, int, Root, float]]:
    """Return what the path mostly went through, and its share, in each tenth of the run.

    Neighbours with the same root are one phase.
    """
    first, last = timelines.first, timelines.last
    edges = sorted({first + (last - first) * tenth // _PHASES for tenth in range(_PHASES + 1)})
    found: list[tuple[int, int, Root, int]] = []
    number = 0
    for start, end in pairwise(edges):
        cycles: Counter[Root] = Counter()
        while number < len(path) and path[number].end <= start:
            number += 1
        for step in path[number:]:
            if step.start >= end:
                break
            cycles[step.root] += min(step.end, end) - max(step.start, start)
        if not cycles:
            continue
        root, most = max(cycles.items(), key=lambda item: (item[1], item[0]))
        if found and found[-1][2] == root:
            begun, _, _, before = found[-1]
            found[-1] = (begun, end, root, before + most)
        else:
            found.append((start, end, root, most))
    return [(start, end, root, most / (end - start)) for start, end, root, most in found]

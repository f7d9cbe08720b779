"""Root attribution: the work or memory at the end of each chain of waits.

In a cycle, a unit may wait for a peer that also waits. The chain of waits in that cycle leads to
its root: a unit that works, or a memory that moves data. Chains are finite: if A waits for B, and B
waits too, B's wait ends at least one hop (one cycle or more) before A's wait ends.

Cycles in which an element or a credit was in flight are charged to hops, with two exceptions. The
delay of an element by shared links is charged to the network. If the producer made an element
visible later than the channel's latency, the cycles are charged to the producer.

A wait that had not ended when the run stopped may lead into a loop, or to a unit that has ended:
these cycles are charged to open waits.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from fabric.analysis.trace.analysis.timeline import Interval, Timelines
from fabric.messages.causes import MEMORIES


class Root(NamedTuple):
    """The root that a stalled cycle is charged to."""

    kind: str
    unit: int  # the unit that works or is served by the memory; -1 for other roots


HOP: Final = Root("hop", -1)
NETWORK: Final = Root("network", -1)
UNTRACED: Final = Root("untraced", -1)
OPEN: Final = Root("open", -1)


class Roots:
    """The root of each unit in each cycle: the unit while it works, else the end of its chain."""

    def __init__(self, timelines: Timelines) -> None:
        self._timelines: Final = timelines
        units = len(timelines.names)
        # A root is an index into this list, which begins with the units that work.
        self._by_number: Final = [
            *(Root("unit", unit) for unit in range(units)),
            *(Root(kind, unit) for kind in MEMORIES for unit in range(units)),
            HOP,
            NETWORK,
            UNTRACED,
            OPEN,
        ]
        self._number: Final = {root: number for number, root in enumerate(self._by_number)}
        self._closing: Final = _closing(timelines)
        self._starts: Final = [array("q") for _ in range(units)]
        self._roots: Final = [array("q") for _ in range(units)]
        self._ends: Final = [0] * units
        self._next: Final = [0] * units
        for unit in range(units):
            self._build(unit, self._end(unit))

    def charged(self, unit: int) -> Counter[Root]:
        first, last = self._timelines.first, self._timelines.last
        starts = np.array(self._starts[unit], np.int64)
        roots = np.array(self._roots[unit], np.int64)
        ends = np.append(starts[1:], self._ends[unit])
        lengths = np.minimum(ends, last) - np.maximum(starts, first)
        counted = (roots != unit) & (lengths > 0)
        cycles = np.zeros(len(self._by_number), np.int64)
        np.add.at(cycles, roots[counted], lengths[counted])
        return Counter({self._by_number[n]: int(cycles[n]) for n in np.flatnonzero(cycles)})

    def _build(self, unit: int, target: int) -> None:
        stack = [(unit, target)]
        under_way = {unit}
        while stack:
            unit, target = stack[-1]
            needed = self._advance(unit, target, under_way)
            if needed is None:
                stack.pop()
                under_way.discard(unit)
            else:
                stack.append(needed)
                under_way.add(needed[0])

    def _advance(self, unit: int, target: int, under_way: set[int]) -> tuple[int, int] | None:
        """Resolve ``unit`` up to ``target``; or return a peer to resolve first, and its target."""
        waits = self._timelines.waits[unit]
        number = self._next[unit]
        while number < len(waits) and waits[number].start < target:
            wait = waits[number]
            self._work_until(unit, wait.start)
            if wait.peer >= 0 and not (wait.open and unit in self._closing):
                peer_target = min(wait.until, self._end(wait.peer))
                if self._ends[wait.peer] < peer_target and wait.peer not in under_way:
                    self._next[unit] = number
                    return wait.peer, peer_target
            self._resolve(unit, wait)
            number += 1
        self._next[unit] = number
        self._work_until(unit, min(target, self._timelines.final[unit]))
        return None

    def _end(self, unit: int) -> int:
        still = self._timelines.open_wait(unit)
        return self._timelines.final[unit] if still is None else still.end

    def _work_until(self, unit: int, cycle: int) -> None:
        if cycle > self._ends[unit]:
            root = unit if self._timelines.traced[unit] else self._number[UNTRACED]
            self._append(unit, self._ends[unit], root)
            self._ends[unit] = cycle

    def _resolve(self, unit: int, wait: Interval) -> None:
        if wait.peer < 0:
            kind = 1 + MEMORIES.index(wait.cause)
            self._append(unit, wait.start, kind * len(self._ends) + unit)
        elif wait.open and unit in self._closing:
            self._append(unit, wait.start, self._number[OPEN])
        else:
            end = min(wait.until, self._ends[wait.peer])
            if end > wait.start:
                self._copy(unit, wait.peer, wait.start, end)
            end = max(end, wait.start)
            held = max(end, wait.end - wait.links)
            if held > end:
                root = wait.peer if wait.late else self._number[OPEN if wait.open else HOP]
                self._append(unit, end, root)
            if wait.end > held:
                self._append(unit, held, self._number[NETWORK])
        self._ends[unit] = wait.end

    def _copy(self, unit: int, peer: int, start: int, end: int) -> None:
        starts, roots = self._starts[peer], self._roots[peer]
        low = bisect_right(starts, start) - 1
        high = bisect_left(starts, end)
        self._append(unit, start, roots[low])
        self._starts[unit].extend(starts[low + 1 : high])
        self._roots[unit].extend(roots[low + 1 : high])

    def _append(self, unit: int, start: int, root: int) -> None:
        self._starts[unit].append(start)
        self._roots[unit].append(root)


def _closing(timelines: Timelines) -> set[int]:
    """Return one unit of each loop of open waits: the unit that began to wait last.

    From then on all units of its loop wait.
    """
    still = [timelines.open_wait(unit) for unit in range(len(timelines.names))]
    closing: set[int] = set()
    seen: set[int] = set()
    for first in range(len(still)):
        chain: list[int] = []
        unit, wait = first, still[first]
        while wait is not None and wait.peer >= 0 and unit not in seen:
            seen.add(unit)
            chain.append(unit)
            unit = wait.peer
            wait = still[unit]
        if unit in chain:
            loop = chain[chain.index(unit) :]
            closing.add(max(loop, key=lambda unit: (timelines.final[unit], -unit)))
    return closing

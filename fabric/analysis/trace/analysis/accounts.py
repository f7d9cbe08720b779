"""The account of all cycles of a run: by cause, by root, and the bound of the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

# Any: keyword arguments of several types.
from typing import Any, Final

from fabric.analysis.trace.analysis.critical import (
    Stretch,
    critical_path,
    cycles_by_root,
    ranked,
    summed,
)
from fabric.analysis.trace.analysis.roots import Root, Roots
from fabric.analysis.trace.analysis.timeline import Timelines, timelines
from fabric.analysis.trace.analysis.what_if import Gain, gains_of
from fabric.analysis.trace.reading.names import Names, percent
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.messages.causes import MEMORIES
from fabric.messages.place import Place
from fabric.messages.text import counted

_DEQUEUED: Final = """
SELECT consumer, count(*) FROM transfers JOIN channels USING (channel)
WHERE taken_cycle IS NOT NULL AND NOT bare GROUP BY consumer
"""

_SENDERS: Final = """
SELECT DISTINCT producer FROM transfers JOIN channels USING (channel) WHERE NOT bare
"""

_TRIED: Final = 8

_BOUND_SHARE: Final = 0.1
"""A change that saves less than this share of the cycles is not a bound."""


@dataclass(frozen=True)
class ChannelWait:
    """A unit's wait at one of its channels."""

    number: int
    channel: str
    peer: str
    reads: bool  # the unit reads the channel and waited for elements; otherwise for slots
    cycles: int

    def __str__(self) -> str:
        return f"{'from' if self.reads else 'to'} {self.peer}"


@dataclass(frozen=True)
class StalledUnit:
    """A unit's cycles by cause. All but ``links_cycles`` sum to the cycles of the account."""

    number: int
    name: str
    operator: str
    file: str
    line: int
    busy_cycles: int
    empty_cycles: int
    links_cycles: int  # part of ``empty_cycles`` in which shared links delayed the element
    full_cycles: int
    hbm_cycles: int
    capacity_cycles: int
    idle_cycles: int
    elements: int
    mostly: ChannelWait | None  # the channel at which it waited longest

    @property
    def stalled_cycles(self) -> int:
        return self.empty_cycles + self.full_cycles + self.hbm_cycles + self.capacity_cycles

    @property
    def memory_wait(self) -> str:
        """``for HBM`` or another memory, if its wait was longer than any channel's; else empty."""
        cause = max(MEMORIES, key=lambda memory: int(getattr(self, memory.column)))
        at_channel = self.mostly.cycles if self.mostly else 0
        return f"for {cause.label}" if getattr(self, cause.column) > at_channel else ""


class Accounts:
    """The account of all cycles of a run.

    Attributes:
        units: traced units in node order.
        active: numbers of the units that took or sent an element, worked, or used a memory.
        path: the critical path; of an incomplete run, the path to its last cycle.
    """

    def __init__(self, trace: RecordedRun) -> None:
        self._trace: Final = trace
        self.names: Final = Names(trace)
        self.status: Final = trace.status
        self.timelines: Final[Timelines] = timelines(trace)
        self.cycles: Final = self.timelines.last - self.timelines.first
        traced = [unit for unit, kept in enumerate(self.timelines.traced) if kept]
        self.elements: Final[Counter[int]] = Counter(dict(trace.rows(_DEQUEUED)))
        self.units: Final[list[StalledUnit]] = [self._unit(unit) for unit in traced]
        self.by_number: Final = {unit.number: unit for unit in self.units}
        self.active: Final = {unit for (unit,) in trace.rows(_SENDERS)}.union(
            unit.number
            for unit in self.units
            if unit.elements or unit.busy_cycles or unit.hbm_cycles or unit.capacity_cycles
        )
        roots = Roots(self.timelines)
        self.by_unit: Final = {unit: roots.charged(unit) for unit in traced}
        every = chain.from_iterable(cycles.items() for cycles in self.by_unit.values())
        self.charged: Final[Counter[Root]] = summed(every)
        self.path: Final[list[Stretch]] = critical_path(self.timelines)

    def _unit(self, unit: int) -> StalledUnit:
        names, mostly = self.names, None
        cycles, links, worst = self.timelines.stalls(unit)
        columns: dict[str, Any] = {cause.column: count for cause, count in cycles.items()}
        if worst is not None:
            channel, waited = worst
            peer, reads = names.peer(unit, channel), names.ends[channel][1] == unit
            ends = names.channels[channel], names.units[peer]
            mostly = ChannelWait(channel, *ends, reads, waited)
        columns |= {"links_cycles": links, "elements": self.elements[unit], "mostly": mostly}
        return StalledUnit(
            unit, names.units[unit], names.operators[unit], *names.wired[unit], **columns
        )

    def on_path(self) -> Counter[Root]:
        return cycles_by_root(self.path)

    def ranked(self) -> list[StalledUnit]:
        """Return units on the critical path first, then the most stalled, inactive ones last."""
        share = summed((root.unit, cycles) for root, cycles in self.on_path().items())

        def key(unit: StalledUnit) -> tuple[bool, int, int, int]:
            absent = unit.number not in self.active
            return absent, -share[unit.number], -unit.stalled_cycles, unit.number

        return sorted(self.units, key=key)

    @cached_property
    def moved_bytes(self) -> Counter[int]:
        """Bytes that each unit moved between the chip and the HBM."""
        sums = "SELECT unit, sum(bytes)::BIGINT FROM bursts GROUP BY unit"
        return Counter(dict(self._trace.rows(sums)))

    @cached_property
    def gains(self) -> tuple[Gain, ...] | None:
        """Changes that shorten the run; None if it cannot be timed again."""
        return gains_of(self._trace, self.names, self.tried)

    @cached_property
    def tried(self) -> list[int]:
        """First units of the families with most of the path, of caused waits, or of work."""
        first = self.names.first
        rankings = [
            summed((first[root.unit], cycles) for root, cycles in roots.items() if root.unit >= 0)
            for roots in (self.on_path(), self.charged)
        ]
        rankings.append(summed((first[unit.number], unit.busy_cycles) for unit in self.units))
        tried = chain.from_iterable(ranked(ranking)[:_TRIED] for ranking in rankings)
        return list(dict.fromkeys(unit for unit, cycles in tried if cycles))

    def verdict(self) -> str:
        """Return a sentence with the change that shortens the run most.

        For a run that cannot be timed again, it names the largest part of the critical path; for a
        run that did not complete, its end.
        """
        if self.status != "completed":
            return self._stop_sentence()
        if not self.cycles:
            return "The run took no cycles."
        if self.gains is None:
            return self._mostly()
        gains = [gain for gain in self.gains if gain.kind != "hbm"]
        if not gains:
            return "Nothing alone bounds the run: no change of one resource shortens it."
        first, *others = gains[:2]
        bound = first.cycles <= (1 - _BOUND_SHARE) * self.cycles
        start = "Bound by" if bound else "Nothing alone bounds the run, not even"
        sentence = f"{start} {_gain_name(first)}: {_gain_text(first, self.cycles)}."
        for gain in others:
            sentence += f" Next {_gain_name(gain)}: {_gain_text(gain)}."
        return sentence

    def _mostly(self) -> str:
        path = self.on_path().items()
        named = summed((self.names.bound(root), cycles) for root, cycles in path)
        name, cycles = ranked(named)[0]
        return f"Most of the critical path: {name}, {percent(cycles, self.cycles)} %."

    def _stop_sentence(self) -> str:
        lines = self.timelines
        waits = [wait for wait in map(lines.open_wait, range(len(lines.names))) if wait is not None]
        sentence = f"Not completed ({self.status}), so nothing bounds it"
        if not waits:
            return sentence + "."
        waiting = f"{len(waits):,} of {counted(len(lines.names), 'unit')}"
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


def _gain_name(gain: Gain) -> str:
    return f"{gain.name} ({Place(gain.file, gain.line).brief})" if gain.line else gain.name


def _gain_text(gain: Gain, instead_of: int | None = None) -> str:
    text = f"{'about ' if gain.estimated else ''}{counted(gain.cycles, 'cycle')}"
    if instead_of is not None:
        text += f" instead of {instead_of:,}"
    if gain.half_cycles is None:
        return f"if it were unlimited, {text}"
    if gain.kind == "links":
        return f"if they were unlimited, {text}; if twice as wide, {gain.half_cycles:,}"
    return f"if it took no time, {text}; if half as long, {gain.half_cycles:,}"

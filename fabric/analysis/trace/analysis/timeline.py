"""The timeline of each unit, rebuilt from its waits, as slices without overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.analysis.trace.selection import TraceOptions
from fabric.messages.causes import WAITS, Cause

STATES: Final = (Cause.IDLE, Cause.BUSY, *WAITS)
"""The states of a unit; a state's index is its number in VCD."""


class Interval(NamedTuple):
    """A wait; ``channel`` and ``peer`` are -1 for the memories."""

    start: int
    end: int
    cause: Cause
    channel: int
    peer: int
    until: int  # when the peer acted; from then to ``end`` the element or credit was in flight
    late: bool  # the producer delayed visibility beyond the channel's latency
    links: int  # number of cycles before ``end`` in which shared links delayed the element
    open: bool  # the run stopped before the wait ended; ``end`` is the run's end


@dataclass(frozen=True)
class Timelines:
    """All timelines of a run; lists are by unit."""

    names: list[str]
    first: int  # the first cycle of the account
    last: int  # the cycle after the account
    waits: list[list[Interval]]
    final: list[int]  # the last cycle of its clock; its open wait begins there
    finished: list[bool | None]  # whether the operator had ended; None if not recorded
    traced: list[bool]

    def stalls(self, unit: int) -> tuple[dict[Cause, int], int, tuple[int, int] | None]:
        """Return the cycles of ``unit`` by cause, the cycles of links, and the worst channel.

        In cycles of links, shared links delayed an awaited element. At the worst channel the unit
        waited longest; it comes with these cycles. It is None without a wait at a channel.
        """
        first, last = self.first, self.last
        cycles = dict.fromkeys(WAITS, 0)
        by_channel: dict[int, int] = {}
        links = 0
        for wait in self.waits[unit]:
            length = min(wait.end, last) - max(wait.start, first)
            if length > 0:
                cycles[wait.cause] += length
                links += max(0, min(wait.end, last) - max(wait.end - wait.links, first))
                if wait.channel >= 0:
                    by_channel[wait.channel] = by_channel.get(wait.channel, 0) + length
        idle = 0 if self.open_wait(unit) else max(0, last - max(self.final[unit], first))
        busy = last - first - idle - sum(cycles.values())
        worst = max(by_channel.items(), key=lambda item: (item[1], -item[0]), default=None)
        return {Cause.BUSY: busy, **cycles, Cause.IDLE: idle}, links, worst

    def open_wait(self, unit: int) -> Interval | None:
        """Return the wait of ``unit`` that lasts to the end of the run, if any."""
        waits = self.waits[unit]
        return waits[-1] if waits and waits[-1].open else None


def timelines(trace: RecordedRun) -> Timelines:
    names = trace.unit_names()
    waits: list[list[Interval]] = [[] for _ in names]
    set_out = "set_out_at(end_cycle - links_cycles, forward_cycles)"
    rows = trace.rows(
        "SELECT unit, start_cycle, end_cycle, cause, coalesce(channel, -1), "
        "coalesce(CASE WHEN consumer = unit THEN producer ELSE consumer END, -1), until_cycle, "
        f"coalesce(cause = '{Cause.EMPTY}' AND until_cycle < {set_out}, false), links_cycles, "
        "open FROM waits LEFT JOIN channels USING (channel) ORDER BY unit, start_cycle, open"
    )
    causes = {str(cause): cause for cause in WAITS}
    for unit, start, end, cause, *rest in rows:
        waits[unit].append(Interval(start, end, causes[cause], *rest))
    final = [0] * len(names)
    for unit, cycle in trace.rows("SELECT unit, cycle FROM last_cycles"):
        final[unit] = cycle
    finished: list[bool | None] = [None] * len(names)
    for unit, ended in trace.rows("SELECT unit, finished FROM states"):
        finished[unit] = ended
    options = TraceOptions(nodes=trace.head.nodes)
    first, last = trace.window
    traced = [options.keeps(name) for name in names]
    return Timelines(names, first, last, waits, final, finished, traced)


class Slice(NamedTuple):
    """A unit's state from ``start`` to ``end``."""

    start: int
    end: int
    state: Cause
    channel: int  # -1 without a channel
    open: bool = False  # a wait that lasts to the end of the run; it may have 0 cycles
    until: int = -1  # when the peer ended the wait; -1 without a peer and for an open wait


class Level(NamedTuple):
    cycle: int
    value: int


def slices(lines: Timelines, unit: int) -> Iterator[Slice]:
    """Yield the states of ``unit``, in order, without gaps up to its end."""
    cycle = lines.first
    for wait in lines.waits[unit]:
        start, end = max(wait.start, lines.first), min(wait.end, lines.last)
        if start >= end and not (wait.open and start == end):
            continue
        if start > cycle:
            yield Slice(cycle, start, Cause.BUSY, -1)
        until = wait.until if wait.channel >= 0 and not wait.open else -1
        yield Slice(start, end, wait.cause, wait.channel, wait.open, until)
        cycle = end
    end = min(lines.final[unit], lines.last)
    if end > cycle:
        yield Slice(cycle, end, Cause.BUSY, -1)


def occupancy(
    trace: RecordedRun, channels: Iterable[int] | None = None
) -> Iterator[tuple[int, list[Level]]]:
    """Yield the number of each channel, and the elements that it holds after each change."""
    first, last = trace.window
    chosen = "" if channels is None else f"AND channel IN ({', '.join(map(str, channels))})"
    rows = trace.rows(
        f"SELECT channel, least(greatest(cycle, {first}), {last}) AS since, "
        "sum(sum(change)) OVER (PARTITION BY channel ORDER BY since)::BIGINT FROM ("
        "SELECT channel, sent_cycle AS cycle, 1 AS change FROM transfers UNION ALL "
        "SELECT channel, taken_cycle, -1 FROM transfers WHERE taken_cycle IS NOT NULL) "
        f"WHERE true {chosen} "
        "GROUP BY channel, since HAVING sum(change) <> 0 ORDER BY channel, since"
    )
    for channel, levels in groupby(rows, lambda row: row[0]):
        yield channel, [Level(cycle, held) for _, cycle, held in levels]


def bandwidth(trace: RecordedRun, width: int) -> list[Level]:
    """Return the bytes that the HBM moved in every ``width`` cycles.

    A trace has the start and end of a burst. Its bytes are spread evenly between them. Bytes above
    the peak move to the nearest earlier stretch with room, or else to a later one. A stretch stays
    above the peak only if the memory exceeded its described peak.
    """
    import numpy as np

    first, last = trace.window
    bursts = trace.numpy("SELECT submitted_cycle, end_cycle, bytes FROM bursts ORDER BY end_cycle")
    bins = max(1, -(-(last - first) // width))
    # Bytes moved up to a cycle, at the cycles in which the slope changes.
    begun, ended = bursts["submitted_cycle"], bursts["end_cycle"]
    slope = bursts["bytes"] / np.maximum(ended - begun, 1)
    cycles = np.concatenate([begun, ended, [first, last + width]])
    change = np.concatenate([slope, -slope, [0.0, 0.0]])
    order = np.argsort(cycles, kind="stable")
    cycles, change = cycles[order], change[order]
    moved = np.concatenate([[0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(cycles))])
    edges = first + width * np.arange(bins + 1)
    # Bytes up to each edge are rounded, so that rounding errors do not add up.
    spread = np.diff(np.rint(np.interp(edges, cycles, moved))).astype(np.int64).tolist()
    peak = trace.head.off_chip.peak_bytes_per_cycle
    room = np.floor(np.diff(np.minimum(edges, last)) * peak).astype(np.int64).tolist()
    if sum(spread) <= sum(room):
        spread = _pushed(_pushed(spread[::-1], room[::-1])[::-1], room)
    return list(map(Level, edges[:-1].tolist(), spread))


def _pushed(amounts: list[int], room: list[int]) -> list[int]:
    """Move bytes above the peak to the next stretch; the last one keeps the rest."""
    pushed, over = [], 0
    for amount, most in zip(amounts, room, strict=True):
        over += amount
        pushed.append(min(over, most))
        over -= pushed[-1]
    pushed[-1] += over
    return pushed

"""The state of a run at a cycle, from the rows of its log.

All events with stamps up to the cycle have happened. A working unit's clock is the cycle; a waiting
unit's clock is the start of its wait, which counts once it is over.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from fabric.messages.causes import OPERATIONS, WAITS, Cause
from fabric.timing.engine import channel_rule, log
from fabric.timing.engine.channel_rule import credit_part, set_out_at, usable_from, visible_from
from fabric.timing.engine.log import Entries
from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters, Row, Table
from fabric.timing.log.transfers import Transfer
from fabric.timing.state.run_state import ChannelState, UnitState, WaitState

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from fabric.timing.state.run_state import ChannelFacts, UnitFacts

_PLACE: Final = {cause: place for place, cause in enumerate(WAITS)}
_FULL: Final = _PLACE[Cause.FULL]
_CAUSE_COUNT: Final = len(WAITS)


class Way(Row):
    """The units and latencies of a channel; ``shared`` is 1 if links may delay its elements."""

    producer: int
    consumer: int
    forward: int
    backward: int
    shared: int


class WaitRow(Row):
    """A wait that has ended; -1 for no channel. ``chose`` is 1 if several channels could end it."""

    unit: int
    cause: int
    channel: int
    end: int
    cycles: int
    chose: int


class Counts(Row):
    """The traffic and the waits of a channel; ``next`` is the number of its next dequeue."""

    next: int
    held: int
    held_values: int
    taken_values: int
    bare_stops: int
    newest_sent: int
    last_taken: int
    peak: int
    left_over: int
    empty: int
    full: int
    credit: int


class _World(NamedTuple):
    rows: Table[Transfer]  # by channel and element
    waits: Table[WaitRow]
    ways: Table[Way]
    counts: Table[Counts]
    waited: Counters  # cycles by unit and cause
    under_way: Counters  # by unit, its open wait


@partial(MachineCode, uses=(channel_rule,))
def count_events(w: _World, cut: int) -> tuple[int, int]:
    """Count events up to ``cut``; return the number of dequeued elements, and of ended waits."""
    return _count_elements(w, cut), _count_waits(w, cut)


def _count_elements(w: _World, cut: int) -> int:
    """Add the elements sent and dequeued up to ``cut``; return the number of dequeued ones.

    When an element is sent, it and the earlier elements without usable credits use slots. Their
    number counts for the peak once the element is dequeued. Unless links are shared, an element
    with a requested cycle counts as sent one hop before that cycle. Rows below ``next`` have been
    counted before, and are only read for their credits.
    """
    dequeued = 0
    last = -1
    first = returned = 0
    for number in range(w.rows.size):
        row = w.rows[number]
        if row.channel != last:
            last = row.channel
            first = returned = number
        if row.sent_cycle > cut:
            continue
        counts, way = w.counts[row.channel], w.ways[row.channel]
        set_out = row.sent_cycle
        if not way.shared:
            visible = visible_from(row.sent_cycle, way.forward, row.requested_cycle)
            set_out = set_out_at(visible, way.forward)
        value = 1 if row.stop >= 0 else 0
        if row.taken_cycle < 0 or row.taken_cycle > cut:
            counts.held += 1
            counts.held_values += value
            counts.newest_sent = set_out
            continue
        if row.element < counts.next:
            continue
        dequeued += 1
        counts.next = row.element + 1
        counts.taken_values += value
        counts.bare_stops += 1 - value
        counts.peak = max(counts.peak, 1)
        if row.dropped > 0:
            counts.left_over += value
            continue
        counts.last_taken = row.taken_cycle
        # Credits return in order, but an element may be requested to set out after the next one.
        while (
            returned < number and usable_from(w.rows[returned].taken_cycle, way.backward) <= set_out
        ):
            returned += 1
        while (
            returned > first
            and usable_from(w.rows[returned - 1].taken_cycle, way.backward) > set_out
        ):
            returned -= 1
        back = w.rows[returned - 1].element if returned > first else -1
        counts.peak = max(counts.peak, row.element - back)
    return dequeued


def _count_waits(w: _World, cut: int) -> int:
    """Add the waits that ended up to ``cut``, and note open ones; return how many ended."""
    ended = 0
    for number in range(w.waits.size):
        wait = w.waits[number]
        if wait.end > cut:
            if wait.end - wait.cycles <= cut:
                w.under_way[wait.unit] = number
            continue
        ended += 1
        w.waited[wait.unit * _CAUSE_COUNT + wait.cause] += wait.cycles
        if wait.channel < 0:
            continue
        counts = w.counts[wait.channel]
        if wait.cause == _FULL:
            credit = credit_part(wait.cycles, w.ways[wait.channel].backward)
            counts.full += wait.cycles - credit
            counts.credit += credit
        else:
            counts.empty += wait.cycles
    return ended


class UnitEnd(NamedTuple):
    """The end of a unit.

    Attributes:
        busy_cycles: charged for work; None to count all cycles without waits.
        flops: None if unknown.
    """

    cycle: int
    finished: bool
    busy_cycles: int | None
    flops: int | None


CAUSES: Final = {
    log.SEND: Cause.FULL, log.RESERVE: Cause.FULL, log.SEE: Cause.EMPTY, log.TAKE: Cause.EMPTY,
    log.END: Cause.EMPTY, log.IDLE: Cause.EMPTY, log.BURST: Cause.HBM,
    log.ALLOCATE: Cause.CAPACITY,
}  # fmt: skip
"""The cause of waits for each operation."""

_PLACES: Final = np.zeros(log.ALLOCATE + 1, np.int64)
_PLACES[[*CAUSES]] = [_PLACE[cause] for cause in CAUSES.values()]


def waits_of(entries: Entries) -> NDArray[np.void]:
    """Return the ended waits, in the order of their rows."""
    rows = entries[(entries["waited"] > 0) & np.isin(entries["operation"], [*CAUSES])]
    waits = np.empty(len(rows), Table.zeros(WaitRow, 0).rows.dtype)
    waits["unit"], waits["channel"] = rows["unit"], rows["channel"]
    waits["cause"], waits["chose"] = _PLACES[rows["operation"]], rows["operation"] == log.IDLE
    waits["end"], waits["cycles"] = rows["cycle"], rows["waited"]
    return waits


class Tally:
    """Traffic of channels and waits of units up to a cycle.

    Attributes:
        ways, counts: by channel.
    """

    def __init__(
        self, units: Sequence[UnitFacts], channels: Sequence[ChannelFacts], shared: Container[int]
    ) -> None:
        """Begin with zeros; ``shared`` are the channels on shared links."""
        self._units: Final = units
        self._channels: Final = channels
        self.ways: Final = Table.zeros(Way, len(channels))
        ways = self.ways.rows
        ways["producer"] = [channel.producer for channel in channels]
        ways["consumer"] = [channel.consumer for channel in channels]
        ways["forward"] = [channel.forward_cycles for channel in channels]
        ways["backward"] = [channel.backward_cycles for channel in channels]
        ways["shared"] = [channel.number in shared for channel in channels]
        self.counts = Table.zeros(Counts, len(channels))
        self.counts.rows["newest_sent"] = self.counts.rows["last_taken"] = -1
        self._waited = np.zeros((len(units), _CAUSE_COUNT), np.int64)

    def copy(self) -> Tally:
        other = copy.copy(self)
        other.counts, other._waited = Table(Counts, self.counts.cells.copy()), self._waited.copy()
        return other

    def count(
        self, rows: NDArray[np.void], waits: NDArray[np.void], cycle: int
    ) -> dict[int, np.void]:
        """Add events up to ``cycle``; return the open wait by unit.

        ``rows`` are transfers, by channel and element. ``waits`` may end at any cycle.
        """
        under_way = np.full(len(self._units), -1)
        world = _World(
            Table(Transfer, rows.view(np.int64)), Table(WaitRow, waits.view(np.int64)), self.ways,
            self.counts, self._waited.reshape(-1), under_way,
        )  # fmt: skip
        count_events.over(world)(cycle)
        return {unit: waits[under_way[unit]] for unit in np.flatnonzero(under_way >= 0).tolist()}

    def units(
        self, waits: dict[int, WaitState], ends: dict[int, UnitEnd], cycle: int
    ) -> tuple[UnitState, ...]:
        """Return the units at ``cycle``; ``ends`` has an entry for each ended unit."""
        states = []
        for facts, waited in zip(self._units, self._waited.tolist(), strict=True):
            wait = waits.get(facts.number)
            now = cycle if wait is None else wait.since_cycle
            end = ends.get(facts.number, UnitEnd(now, finished=False, busy_cycles=None, flops=None))
            busy = end.cycle - sum(waited) if end.busy_cycles is None else end.busy_cycles
            states.append(
                UnitState(
                    **asdict(facts),
                    cycle=end.cycle,
                    finished=end.finished,
                    wait=wait,
                    busy_cycles=busy,
                    hbm_cycles=waited[_PLACE[Cause.HBM]],
                    capacity_cycles=waited[_PLACE[Cause.CAPACITY]],
                    flops=end.flops,
                )
            )
        return tuple(states)

    def channels(self, closed: dict[int, int], taken: dict[int, int]) -> tuple[ChannelState, ...]:
        """Return the channels.

        By channel, ``closed`` has the ends of streams, and ``taken`` replaces the dequeued values.
        """
        states = []
        for facts in self._channels:
            number, counts = facts.number, self.counts[facts.number]
            values = taken.get(number, counts.taken_values)
            states.append(
                ChannelState(
                    **asdict(facts),
                    held=counts.held,
                    sent=values + counts.held_values,
                    taken=values,
                    bare_stops=counts.bare_stops + counts.held - counts.held_values,
                    closed_cycle=closed.get(number),
                    newest_sent_cycle=counts.newest_sent if counts.held else None,
                    last_taken_cycle=None if counts.last_taken < 0 else counts.last_taken,
                    peak_occupancy=max(counts.peak, counts.held),
                    empty_cycles=counts.empty,
                    full_cycles=counts.full,
                    credit_cycles=counts.credit,
                    left_over=counts.left_over,
                )
            )
        return tuple(states)


def wait_state(wait: np.void) -> WaitState:
    """Return the wait of a ``WaitRow``."""
    _, cause, channel, end_cycle, cycles, _ = wait.tolist()
    channels = () if channel < 0 else (channel,)
    return WaitState(
        OPERATIONS[WAITS[cause]], channels, end_cycle - cycles, any_of=False, stops=None
    )

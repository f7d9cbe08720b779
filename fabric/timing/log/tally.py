"""The state of a run at a cycle, from the rows of its log.

All events with stamps up to the cycle have happened. A working unit's clock is the cycle; a waiting
unit's clock is the start of its wait, which counts once it is over.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec.structs import asdict

from fabric.messages.telling.causes import OPERATIONS, WAITS, Cause
from fabric.timing.log import columns as c
from fabric.timing.log.log_rows import IDLE, NUMBERED, OPERATION_COLUMNS
from fabric.timing.log.loops import count_elements, count_waits
from fabric.timing.state.run_state import ChannelState, UnitState, WaitState

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from fabric.timing.engine.tables import Counters
    from fabric.timing.state.run_state import ChannelFacts, UnitFacts

_PLACE: Final = {cause: place for place, cause in enumerate(WAITS)}
_OPERATION, _UNIT, _, _CYCLE, _WAITED, _CHANNEL, _ = range(len(OPERATION_COLUMNS))
_CAUSES: Final = np.array([_PLACE[step.cause] for step in NUMBERED])


class UnitEnd(NamedTuple):
    """The end of a unit.

    Attributes:
        busy_cycles: charged for work; None for all cycles without waits.
        flops: None if unknown.
    """

    cycle: int
    finished: bool
    busy_cycles: int | None
    flops: int | None


def waits_of(rows: Counters, operations: Counters, ways: Counters) -> Counters:
    """Return the ended waits, in no order; see ``columns``.

    ``rows`` are long, ``operations`` the other rows.
    """
    parts = []
    for cause, end, cycles, its_end in (
        (Cause.FULL, c.RESERVED, c.SEND_WAIT, c.PRODUCER),
        (Cause.EMPTY, c.SEEN, c.RECEIVE_WAIT, c.CONSUMER),
    ):
        its = np.flatnonzero(rows[:, cycles] > 0)
        channel, no = rows[its, c.CHANNEL], np.zeros(len(its), np.int64)
        unit, ended, waited = ways[channel, its_end], rows[its, end], rows[its, cycles]
        parts.append(np.column_stack([unit, no + _PLACE[cause], channel, ended, waited, no]))
    its = operations[(operations[:, _OPERATION] < len(NUMBERED)) & (operations[:, _WAITED] > 0)]
    kind = its[:, _OPERATION]
    columns = _CAUSES[kind], its[:, _CHANNEL], its[:, _CYCLE], its[:, _WAITED], kind == IDLE
    parts.append(np.column_stack([its[:, _UNIT], *columns]))
    return np.concatenate(parts)


class Tally:
    """Traffic of channels and waits of units up to a cycle."""

    def __init__(
        self, units: Sequence[UnitFacts], channels: Sequence[ChannelFacts], shared: Container[int]
    ) -> None:
        """Begin with nothing; ``shared`` are the channels that use shared links."""
        self._units: Final = units
        self._channels: Final = channels
        ways = [
            (
                each.producer,
                each.consumer,
                each.forward_cycles,
                each.backward_cycles,
                number in shared,
            )
            for number, each in enumerate(channels)
        ]
        self.ways: Final = np.array(ways, np.int64).reshape(-1, c.WAY)
        self.carried = np.zeros((len(channels), c.COUNTS), np.int64)
        self.carried[:, (c.NEWEST_SENT, c.LAST_TAKEN)] = -1
        self._waited = np.zeros((len(units), len(WAITS)), np.int64)

    def copy(self) -> Tally:
        """Return a copy."""
        other = copy.copy(self)
        other.carried, other._waited = self.carried.copy(), self._waited.copy()
        return other

    def count(self, rows: Counters, waits: Counters, cycle: int) -> dict[int, Counters]:
        """Add events up to ``cycle``; return the open wait by unit.

        ``rows`` are long, by channel and element; ``waits`` have ended at any cycle.
        """
        ways, carried = self.ways.reshape(-1), self.carried.reshape(-1)
        flat = np.ascontiguousarray(rows, np.int64).reshape(-1)
        count_elements.over(rows=flat, ways=ways, counts=carried)(cycle)
        under_way = np.full(len(self._waited), -1)
        count_waits.over(
            waits=np.ascontiguousarray(waits, np.int64).reshape(-1),
            ways=ways,
            counts=carried,
            waited=self._waited.reshape(-1),
            under_way=under_way,
        )(len(WAITS), _PLACE[Cause.FULL], cycle)
        return {unit: waits[under_way[unit]] for unit in np.flatnonzero(under_way >= 0).tolist()}

    def units(
        self, waits: dict[int, WaitState], ends: dict[int, UnitEnd], cycle: int
    ) -> tuple[UnitState, ...]:
        """Return the units at ``cycle``; ``ends`` are those of ended units."""
        found = []
        for facts, waited in zip(self._units, self._waited.tolist(), strict=True):
            wait = waits.get(facts.number)
            now = cycle if wait is None else wait.since_cycle
            end = ends.get(facts.number, UnitEnd(now, finished=False, busy_cycles=None, flops=None))
            busy = end.cycle - sum(waited) if end.busy_cycles is None else end.busy_cycles
            found.append(
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
        return tuple(found)

    def channels(self, closed: dict[int, int], taken: dict[int, int]) -> tuple[ChannelState, ...]:
        """Return the channels.

        ``closed`` is when streams ended; ``taken`` overrides the number of dequeued values.
        """
        found = []
        for facts, counts in zip(self._channels, self.carried.tolist(), strict=True):
            number = facts.number
            values = taken.get(number, counts[c.TAKEN_VALUES])
            newest, last = counts[c.NEWEST_SENT], counts[c.LAST_TAKEN]
            found.append(
                ChannelState(
                    **asdict(facts),
                    held=counts[c.HELD],
                    sent=values + counts[c.HELD_VALUES],
                    taken=values,
                    bare_stops=counts[c.BARE_STOPS] + counts[c.HELD] - counts[c.HELD_VALUES],
                    closed_cycle=closed.get(number),
                    newest_sent_cycle=newest if counts[c.HELD] else None,
                    last_taken_cycle=None if last < 0 else last,
                    peak_occupancy=max(counts[c.PEAK], counts[c.HELD]),
                    empty_cycles=counts[c.EMPTY],
                    full_cycles=counts[c.FULL],
                    credit_cycles=counts[c.CREDIT],
                    left_over=counts[c.LEFT_OVER_VALUES],
                )
            )
        return tuple(found)


def wait_state(wait: Counters) -> WaitState:
    """Return the wait of a row; see ``columns``."""
    _, cause, channel, end_cycle, cycles, _ = wait.tolist()
    channels = () if channel < 0 else (channel,)
    return WaitState(
        OPERATIONS[WAITS[cause]], channels, end_cycle - cycles, any_of=False, stops=None
    )

"""The state of a run at a cycle, from the rows of its log.

All events with stamps up to the cycle have happened. A working unit's clock is the cycle; a waiting
unit's clock is the start of its wait, which counts once it is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from fabric.messages.telling.causes import OPERATIONS, WAITS, Cause
from fabric.timing.log import columns as c
from fabric.timing.log.log_rows import IDLE, NUMBERED, OPERATION_COLUMNS
from fabric.timing.log.loops import count_elements, count_waits
from fabric.timing.state.run_state import ChannelState, UnitState, WaitState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.graph.hardware.description import UnitKind
    from fabric.messages.telling.place import Place
    from fabric.timing.engine.machine_code import Counters

UnitStem: TypeAlias = "tuple[int, str, str, UnitKind, Place, int]"
"""First fields of a ``UnitState``."""

ChannelStem: TypeAlias = "tuple[int, str, str, int, int, str, int, int, int]"
"""First fields of a ``ChannelState``."""

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

    def __init__(self, units: int, ways: Counters) -> None:
        self.ways: Final = np.ascontiguousarray(ways, np.int64).reshape(-1, c.WAY)
        self.carried = np.zeros((len(self.ways), c.COUNTS), np.int64)
        self.carried[:, (c.NEWEST_SENT, c.LAST_TAKEN)] = -1
        self._waited = np.zeros((units, len(WAITS)), np.int64)

    def copy(self) -> Tally:
        """Return a copy."""
        other = Tally(len(self._waited), self.ways)
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
        self,
        stems: Sequence[UnitStem],
        waits: dict[int, WaitState],
        ends: dict[int, UnitEnd],
        cycle: int,
    ) -> tuple[UnitState, ...]:
        """Return units at ``cycle``; ``stems`` are in node order, ``ends`` of ended units."""
        found = []
        for stem, waited in zip(stems, self._waited.tolist(), strict=True):
            wait = waits.get(stem[0])
            now = cycle if wait is None else wait.since_cycle
            end = ends.get(stem[0], UnitEnd(now, finished=False, busy_cycles=None, flops=None))
            busy = end.cycle - sum(waited) if end.busy_cycles is None else end.busy_cycles
            hbm, capacity = waited[_PLACE[Cause.HBM]], waited[_PLACE[Cause.CAPACITY]]
            found.append(
                UnitState(*stem, end.cycle, end.finished, wait, busy, hbm, capacity, end.flops)
            )
        return tuple(found)

    def channels(
        self, stems: Sequence[ChannelStem], closed: dict[int, int], taken: dict[int, int]
    ) -> tuple[ChannelState, ...]:
        """Return channels; ``stems`` are in edge order.

        ``closed`` is when streams ended; ``taken`` overrides the number of dequeued values.
        """
        found = []
        for stem, counts in zip(stems, self.carried.tolist(), strict=True):
            number = stem[0]
            values = taken.get(number, counts[c.TAKEN_VALUES])
            newest, last = counts[c.NEWEST_SENT], counts[c.LAST_TAKEN]
            found.append(
                ChannelState(
                    *stem,
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

"""Whether a run that was recorded ends with other depths: timed again, not run again.

With the orders of the record it ends if and only if no unit waits for itself in the end, however
long everything takes. Where no unit chooses by what comes first, there are no other orders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.retiming.retimer import Retimer

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.deadlock.search import Change
    from fabric.engine.machine_code import Counters
    from fabric.retiming.record import Record

__all__ = ["Replay"]

_EFFORT_EVENTS: Final = 500_000_000
"""Of the record, over all timings together: some seconds."""


class Replay:
    """Times one record again with changed depths.

    Attributes:
        record: which.
    """

    def __init__(self, record: Record, depth_before: Callable[[str], int]) -> None:
        """Get ready; ``depth_before`` gives the depth of a channel that is not changed."""
        self.record: Final = record
        self._retimer: Final = Retimer(record)
        self._before: Final = np.array(
            [depth_before(channel.option) for channel in record.channels], np.int64
        )
        self._events_left = _EFFORT_EVENTS
        self._too_shallow: Final[list[tuple[Counters, Counters]]] = []

    def completes(self, change: Change) -> bool | None:
        """Whether the record ends with ``change``, of depths only; None where no effort is left.

        What made the units wait for each other once does so wherever these channels, all of them
        full then, are no deeper: that is looked up first.
        """
        depths = self._before.copy()
        for option, depth in change.depths.items():
            depths[self.record.number[option]] = depth
        if any((depths[full] <= limits).all() for full, limits in self._too_shallow):
            return False
        if self._events_left <= 0:
            return None
        self._events_left -= len(self.record.events)
        retimed = self._retimer.time(depths)
        if retimed.cycles is not None:
            return True
        full = np.array(sorted(self._retimer.blamed(retimed)), np.int64)
        self._too_shallow.append((full, depths[full]))
        return False

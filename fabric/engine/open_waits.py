"""Waits that had not ended when a run stopped: in a deadlock, at an error, at an interrupt.

They go on to the run's last cycle, and are counted under the cause they would have had. Counters
and traces both ask here.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, NamedTuple

from fabric.telling.causes import Cause

if TYPE_CHECKING:
    from fabric.engine.channel import Channel
    from fabric.engine.unit import Unit

__all__ = ["OpenWait", "open_wait"]


class OpenWait(NamedTuple):
    """What a unit was still waiting for.

    Attributes:
        cause: under which the cycles count.
        channel: waited for, the first one of several; None for the memories.
        since_cycle: the unit's clock, which stands still while it waits.
    """

    cause: Cause
    channel: Channel | None
    since_cycle: int


def open_wait(unit: Unit, wanting_room: Container[Unit]) -> OpenWait | None:
    """Return the wait of ``unit``; None where it had ended or could have gone on.

    Args:
        unit: after the run, or in between while nothing can run.
        wanting_room: units that have asked for room on chip and not got it.
    """
    wait = unit.wait
    if wait is None:
        return None
    cause = wait.operation.cause
    if cause is None:
        # It asked the clock for its turn: to merge what comes first, or to take room that is free.
        if wait.channels:
            cause = Cause.EMPTY
        elif unit in wanting_room:
            cause = Cause.CAPACITY
        else:
            return None
    return OpenWait(cause, wait.channels[0] if wait.channels else None, unit.now)

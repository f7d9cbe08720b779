"""Waits that had not ended when a run stopped: in a deadlock, at an error, at an interrupt.

They go on to the run's last cycle, and are counted under the cause they would have had. Counters
and traces both ask here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fabric.telling.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Container

    from fabric.state.run_state import RunState, UnitState

__all__ = ["OpenWait", "open_waits"]


class OpenWait(NamedTuple):
    """What a unit was still waiting for.

    Attributes:
        cause: under which the cycles count.
        channel: waited for, the first one of several; None for the memories.
        since_cycle: the unit's clock, which stands still while it waits.
    """

    cause: Cause
    channel: int | None
    since_cycle: int


def open_waits(state: RunState) -> list[OpenWait | None]:
    """Return for each unit the wait that goes on to the end of the run.

    Args:
        state: at the run's end, or in between while nothing can run.

    Returns:
        In node order; None where the wait had ended or the unit could have gone on.
    """
    wanting_room = {unit for unit, _ in state.on_chip.requests}
    return [_open_wait(unit, wanting_room) for unit in state.units]


def _open_wait(unit: UnitState, wanting_room: Container[int]) -> OpenWait | None:
    wait = unit.wait
    if wait is None:
        return None
    cause = wait.operation.cause
    if cause is None:
        # It asked the clock for its turn: to merge what comes first, or to take room that is free.
        if wait.channels:
            cause = Cause.EMPTY
        elif unit.number in wanting_room:
            cause = Cause.CAPACITY
        else:
            return None
    return OpenWait(cause, wait.channels[0] if wait.channels else None, unit.cycle)

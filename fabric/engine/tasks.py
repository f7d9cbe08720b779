"""Strands that are tasks of trio's, and the conductor as a task beside them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from outcome import Error
from trio.lowlevel import Abort, checkpoint, current_task, reschedule, wait_task_rescheduled
from typing_extensions import override

from fabric.engine.conductor import Conductor
from fabric.engine.strand import WOKEN, Strand

__all__ = ["TaskStrand", "conduct"]


class TaskStrand(Strand):
    """The strand of the task that makes it."""

    __slots__ = ()

    def __init__(self, *, conducted: bool) -> None:
        """Stand for it; the conductor may go on with it where ``conducted``."""
        super().__init__()
        self.task = task = current_task()
        self.suspension = _suspension(self._abort)
        if conducted:
            self.step = task.coro.send

    @override
    def resume(self) -> None:
        assert self.task is not None
        reschedule(self.task, WOKEN)  # type: ignore[arg-type] # only the strand looks at it

    @override
    def interrupt(self, error: BaseException) -> None:
        if self.parked:
            self.parked = False
            assert self.task is not None
            reschedule(self.task, Error(error))

    def _abort(self, _: object) -> Abort:
        """Let trio cancel the parked task; nobody may wake it any more."""
        self.parked = False
        self.cancelled = True
        return Abort.SUCCEEDED


def _suspension(abort: Callable[[object], Abort]) -> object:
    """Return what ``wait_task_rescheduled(abort)`` tells trio: the same each time a task parks.

    Made once for a strand, it takes 2 of the 4 microseconds of a switch away.
    """
    waiting = wait_task_rescheduled(abort)  # noqa: ASYNC105 - asked, not awaited
    told: object = waiting.send(None)
    waiting.close()
    return told


async def conduct(conductor: Conductor) -> None:
    """Conduct until cancelled."""

    def abort(_: object) -> Abort:
        conductor.awake = None
        return Abort.SUCCEEDED

    while True:
        conductor.conduct()
        if conductor.busy:
            await checkpoint()
        else:
            conductor.awake = partial(reschedule, current_task())
            await wait_task_rescheduled(abort)

"""Lets strands that were woken go on: those of conducted operators without trio in between.

A unit that parks is blocked as trio sees it, and whoever has its coroutine may go on with it; trio
offers that for other runners of coroutines (``temporarily_detach_coroutine_object``). Compared with
trio's scheduler, the conductor saves 2 microseconds each time: a third of the time of an attention
run. It is a task itself, gives trio a turn now and then, and hands an operator that ends back to
trio. Operators that promise nothing may await what they like: trio runs them.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Generator
from typing import Final, TypeAlias, TypeVar

from outcome import Error, Value
from trio.lowlevel import Abort, Task, checkpoint, current_task, reschedule, wait_task_rescheduled

_TURN: Final = 1_000
"""Steps before trio gets a turn."""


class Conductor:
    """Runs strands that were woken, oldest first."""

    def __init__(self) -> None:
        """Wait for the first one."""
        self._ready: Final[deque[Strand]] = deque()
        self._conducting = False
        self._last: Strand | None = None
        self._asleep: Task | None = None
        self._paused = False

    def pause(self) -> None:
        """Let trio have its turn as soon as the strand that goes on parks."""
        self._paused = True

    def resume(self, strand: Strand) -> None:
        """Let ``strand``, which has parked, go on soon."""
        if strand.step is None:
            strand.resume()
            return
        self._ready.append(strand)
        self._awake()

    def resume_last(self, strand: Strand) -> None:
        """Let ``strand``, of which there is one such, go on when no other waits for its turn."""
        self._last = strand
        self._awake()

    def _awake(self) -> None:
        if self._asleep is not None:
            task, self._asleep = self._asleep, None
            reschedule(task)

    async def run(self) -> None:
        """Conduct until cancelled."""
        while True:
            self._conducting = True
            try:
                self._conduct()
            finally:
                self._conducting = False
            if self._ready or self._last is not None:
                await checkpoint()
            else:
                self._asleep = current_task()
                await wait_task_rescheduled(self._abort)

    def _conduct(self) -> None:
        ready = self._ready
        self._paused = False
        for _ in range(_TURN):
            if self._paused:
                return
            if ready:
                strand = ready.popleft()
            elif self._last is not None:
                strand, self._last = self._last, None
            else:
                return
            # A strand that was cancelled meanwhile is trio's.
            if not strand.cancelled:
                assert strand.step is not None
                strand.step(WOKEN)

    @types.coroutine
    def give_way(self, strand: Strand) -> Switching[None]:
        """Let everybody else go on first."""
        if strand.step is None:
            yield from checkpoint()  # noqa: ASYNC105 - as a generator awaits
        else:
            self.resume(strand)
            outcome = yield strand.suspension
            if outcome is not WOKEN:
                outcome.unwrap()

    @types.coroutine
    def end(self, strand: Strand) -> Switching[None]:
        """Be run by trio again: a task can end nowhere else."""
        if self._conducting and strand.step is not None:
            if not strand.cancelled:
                strand.resume()
            yield strand.suspension

    def _abort(self, _: object) -> Abort:
        self._asleep = None
        return Abort.SUCCEEDED


Result = TypeVar("Result")

Switching: TypeAlias = Generator[object, Value[None] | Error, Result]
"""What lets others run: it yields suspensions, and is sent how each has ended."""

WOKEN: Final = Value(None)
"""What a strand that parked is handed where it was woken, and not cancelled; made once."""


class Strand:
    """One operator's task.

    Attributes:
        task: it; None until it runs.
        step: goes on with its coroutine; None where only trio does that.
        parked: it waits to be woken.
        cancelled: trio has cancelled its wait, and goes on with it itself.
        suspension: what the task tells trio when it parks, the same each time.
    """

    __slots__ = ("cancelled", "parked", "step", "suspension", "task")

    def __init__(self) -> None:
        """Stand for a task that has not begun."""
        self.task: Task | None = None
        self.step: Callable[[Value[None]], object] | None = None
        self.parked = False
        self.cancelled = False
        self.suspension: object = None

    def begin(self, *, conducted: bool) -> Task:
        """Stand for the task that calls this; the conductor may go on with it where ``conducted``.

        Returns:
            The task.
        """
        self.task = task = current_task()
        self.suspension = _suspension(self._abort)
        if conducted:
            self.step = task.coro.send
        return task

    def resume(self) -> None:
        """Let trio go on with the task, which is suspended."""
        assert self.task is not None
        reschedule(self.task, WOKEN)

    def interrupt(self, error: BaseException) -> None:
        """Raise ``error`` in the task where it is parked."""
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

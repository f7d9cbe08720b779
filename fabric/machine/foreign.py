"""Operators that break the fabric's rules, found without slowing those that keep to them.

An operator awaits nothing but the fabric: where it awaits an event of trio's, say, it counts as
running, and nothing ever comes to rest. It does so in one task: its unit waits for one thing at a
time.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from typing import Final

import trio
from typing_extensions import override

from fabric.machine.runtime import Runtime
from fabric.telling.place import Place, deepest_place

__all__ = ["Foreign"]


class _IdleClock(trio.abc.Clock):
    """Wall time for trio, which asks for it before it sleeps: then no task can run."""

    def __init__(self, on_idle: Callable[[], bool]) -> None:
        """Call ``on_idle`` where no task can run; it says whether it changed that."""
        self._on_idle: Final = on_idle

    @override
    def start_clock(self) -> None:
        pass

    current_time = staticmethod(time.perf_counter)

    @override
    def deadline_to_sleep_time(self, deadline: float) -> float:
        if self._on_idle():
            return 0
        return deadline if math.isinf(deadline) else deadline - time.perf_counter()


class _ChildTasks(trio.abc.Instrument):
    """Sees tasks start: a unit has one task, and waits for one thing at a time."""

    def __init__(self, on_start: Callable[[trio.lowlevel.Task], object]) -> None:
        """Call ``on_start`` with the task that started another one."""
        self._on_start: Final = on_start

    @override
    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if task.parent_nursery is not None:
            self._on_start(task.parent_nursery.parent_task)


class Foreign:
    """Refuses what operators do besides awaiting their channels, and ends the run.

    Attributes:
        clock: for trio.
        tasks: an instrument for trio.
    """

    def __init__(self, runtime: Runtime) -> None:
        """Look at the operators of ``runtime``."""
        self._runtime: Final = runtime
        self.clock: Final = _IdleClock(self._idle)
        self.tasks: Final = _ChildTasks(self._started)

    def _idle(self) -> bool:
        """End a run whose units wait for what no unit, memory or clock will ever bring.

        While no task can run, a unit that counts as running waits for something outside of the
        fabric.

        Returns:
            Whether there were any, and the run was stopped.
        """
        runtime = self._runtime
        machine = runtime.machine
        if runtime.over or not machine.clock.running:
            return False
        failed = machine.failures.nodes
        outside = [
            unit
            for unit in machine.units
            if unit.wait is None and not unit.finished and unit.index not in failed
        ]
        for unit in outside:
            task = unit.strand.task
            assert task is not None
            what = "awaits something outside of the fabric: expected its channels only"
            runtime.refuse(unit, what, deepest_place(task.iter_await_frames()))
        if outside:
            runtime.stop()
        return bool(outside)

    def _started(self, parent: trio.lowlevel.Task) -> None:
        """End the run where ``parent``, which has just started a task, is that of an operator."""
        unit = self._runtime.unit_of(parent)
        if unit is not None:
            what = "starts a task of its own: expected one that awaits its channels in turn"
            self._runtime.refuse(unit, what, _line_now())
            self._runtime.stop()

    def dropped(self, name: str) -> bool:
        """Note that an operator has dropped the coroutine ``name``, which it did not await.

        Returns:
            Whether it was an operator.
        """
        runtime, task = self._runtime, None
        if trio.lowlevel.in_trio_task():
            task = trio.lowlevel.current_task()
        unit = None if task is None else runtime.unit_of(task)
        if unit is None:
            return False
        if not runtime.machine.clock.stopped:
            what = (
                f"{name.rpartition('.')[2].lstrip('_')}() is not awaited: expected `await` at once"
            )
            runtime.refuse(unit, what, _line_now())
        return True


def _line_now() -> Place | None:
    """Return the deepest line of the user's code that is being run."""
    return deepest_place(reversed(list(traceback.walk_stack(None))))

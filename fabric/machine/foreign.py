"""Operators that break the fabric's rules, found without slowing those that keep to them.

An operator awaits nothing but the fabric: where it awaits an event of trio's, say, it counts as
running, and nothing ever comes to rest. It does so in one task: its unit waits for one thing at a
time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

import trio
from typing_extensions import override

__all__ = ["ChildTasks", "IdleClock"]


class IdleClock(trio.abc.Clock):
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


class ChildTasks(trio.abc.Instrument):
    """Sees tasks start: a unit has one task, and waits for one thing at a time."""

    def __init__(self, on_start: Callable[[trio.lowlevel.Task], object]) -> None:
        """Call ``on_start`` with the task that started another one."""
        self._on_start: Final = on_start

    @override
    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if task.parent_nursery is not None:
            self._on_start(task.parent_nursery.parent_task)

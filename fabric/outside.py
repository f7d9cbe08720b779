"""Operators that break the fabric's rules, found without slowing those that keep to them.

An operator awaits nothing but the fabric: where it awaits an event of trio's, say, it counts as
running, and nothing ever comes to rest. It does so in one task: its unit waits for one thing at a
time. And it sends tuples of a value and a stop: where it sends
something else, its reader would fail in its stead.
"""

from __future__ import annotations

import math
import reprlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
from typing_extensions import override

from fabric.channel import Channel
from fabric.values import Element

__all__ = ["ChildTasks", "IdleClock", "watch_first_send", "wrong_element"]


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


_watching: dict[type[Channel], type[Channel]] = {}
"""By class of channels, the one they have until something is sent."""


def watch_first_send(channel: Channel) -> None:
    """Let ``channel`` refuse a first element that is none; from the second on nobody looks."""
    kind = channel.__class__
    if kind not in _watching:
        _watching[kind] = _watched(kind)
    channel.__class__ = _watching[kind]


def _watched(kind: type[Channel]) -> type[Channel]:
    def send(channel: Channel, element: Element) -> Awaitable[None]:
        channel.__class__ = kind
        wrong = wrong_element(element, channel.name)
        if wrong is not None:
            raise TypeError(wrong)
        return channel.send(element)

    return type(kind.__name__, (kind,), {"__slots__": (), "send": send})


def wrong_element(element: Any, channel: str) -> str | None:
    """Say what is wrong with an element sent on ``channel``, None where nothing is."""
    if type(element) is tuple and len(element) == 2 and isinstance(element[1], int):
        return None
    found = " ".join(reprlib.repr(element).split())
    return f"{found} is sent on {channel}: expected a tuple (value, level of the stop)"

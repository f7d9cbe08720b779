"""Tells of users' operators that compute for seconds and neither communicate nor end.

No clock of the fabric sees that: nothing comes to rest. A thread looks at the machine once a
second of the host's time, and where nothing has moved for a while says who is at work, and in which
line. It changes nothing, and nothing of it is in a report.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.messages.telling.errors import FabricError
from fabric.messages.telling.place import Place, deepest_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.unit import Unit

__all__ = ["Watched", "watched"]

_PERIOD_SECONDS: Final = 1.0
_PATIENCE: Final = 4
"""Looks at which nothing has moved before somebody is told."""


class Watched(NamedTuple):
    """What the watchdog looks at.

    Attributes:
        units: of a program, in node order.
        users: the numbers of those that run a user's operator or function.
        channels: between the units.
        operating: the coroutine function in which every operator runs; its ``unit`` is the unit.
    """

    units: Sequence[Unit]
    users: frozenset[int]
    channels: Sequence[Channel]
    operating: Callable[..., object]


@contextlib.contextmanager
def watched(what: Watched, say: Callable[[str], object]) -> Iterator[None]:
    """Watch the run in this thread, if users' code takes part in it; ``say`` who does not end."""
    if not what.users:
        yield
        return
    done, runner = threading.Event(), threading.get_ident()
    failures: list[FabricError] = []

    def watch() -> None:
        try:
            _watch(what, runner, say, done)
        except FabricError as error:
            failures.append(error)

    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if failures:
        raise failures[0]


def _watch(what: Watched, runner: int, say: Callable[[str], object], done: threading.Event) -> None:
    moved, looks = -1, 0
    while not done.wait(_PERIOD_SECONDS):
        now_moved = sum(channel.sent + channel.taken for channel in what.channels)
        if now_moved != moved:
            moved, looks = now_moved, 0
            continue
        looks += 1
        if looks == _PATIENCE:
            for unit, place in _at_work(what, sys._current_frames().get(runner)):
                say(
                    f"{unit.name} ({unit.place}) has sent and received nothing for "
                    f"{looks * _PERIOD_SECONDS:.0f} seconds and has not ended: it is in {place}, "
                    f"at cycle {unit.now:,}; Ctrl-C ends the run"
                )


def _at_work(what: Watched, running: FrameType | None) -> Iterator[tuple[Unit, Place]]:
    """Return users' units that do something, each with the line of the user's code it is in.

    Args:
        what: is looked at.
        running: what the run's thread does.
    """
    stack = list(traceback.walk_stack(running))[::-1] if running is not None else []
    for depth, (frame, _) in enumerate(stack):
        unit = _unit_of(frame, what)
        if unit is not None:
            place = deepest_place(stack[depth:])
            if unit.index in what.users and place is not None:
                yield unit, place
            # While it runs no other does.
            return
    for unit in what.units:
        if unit.wait is None and not unit.finished and unit.index in what.users:
            task = unit.strand.task
            place = None if task is None else deepest_place(task.iter_await_frames())
            if place is not None:
                yield unit, place


def _unit_of(frame: FrameType, what: Watched) -> Unit | None:
    """Return the unit whose operator runs in ``frame``, if that is where one does."""
    if frame.f_code is not getattr(what.operating, "__code__", None):
        return None
    unit: Unit = frame.f_locals["unit"]
    return unit

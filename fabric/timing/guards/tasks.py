"""Guards of the tasks of users' operators, and the notice about an operator that does not end.

An operator awaits only the fabric, in one task. A watchdog thread checks the machine every second
of the host's time. If no element has moved for 4 seconds, it names the running unit and its line.
It changes neither the run nor its report.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from trio.lowlevel import Abort

from fabric.messages.errors import FabricError, Refusal
from fabric.messages.place import Place, deepest_place
from fabric.timing.guards.operators import TASKS, GuardedUnit

if TYPE_CHECKING:
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.clock import VirtualClock
    from fabric.timing.engine.unit import Unit

_PERIOD_SECONDS: Final = 1.0

_PATIENCE: Final = 4
"""Checks without progress before the notice."""


@types.coroutine
def guarded(
    running: Coroutine[Any, Any, None], unit: GuardedUnit, clock: VirtualClock
) -> Generator[Any, Any, None]:
    """Run an operator's coroutine, and refuse waits for something outside of the fabric.

    Such a wait is aborted like a cancelled one, which ends tasks that the operator has started.
    """
    guard, own = unit.guard, unit.strand.suspension
    guard.running = running
    step: Callable[[Any], Any] = running.send
    value: Any = None
    refused = False
    while True:
        try:
            trap = step(value)
        except StopIteration:
            return
        if type(trap) is type(own) and trap is not own and not clock.stopped:
            what = "awaits something outside of the fabric: expected its channels only"
            place = deepest_place(_frames(running))
            refusal = Refusal(TASKS if guard.has_tasks else what, place=place)
            if refused:  # the operator has caught the first refusal
                raise refusal
            if _aborted(trap, refusal):
                refused = True
                step, value = running.throw, refusal
                continue
            guard.stray = refusal
        elif guard.has_tasks and guard.stray is None:
            guard.stray = Refusal(TASKS, place=deepest_place(_frames(running)))
        try:
            step, value = running.send, (yield trap)
        except BaseException as error:  # noqa: BLE001 - whatever trio raises
            step, value = running.throw, error


def _aborted(trap: Any, refusal: Refusal) -> bool:
    def cancel() -> NoReturn:
        raise refusal

    return bool(trap.abort_func(cancel) is Abort.SUCCEEDED)


def _frames(running: Any) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames of a suspended coroutine, outermost first."""
    while running is not None:
        frame = getattr(running, "cr_frame", None) or getattr(running, "gi_frame", None)
        if frame is None:
            return
        yield frame, frame.f_lineno
        running = getattr(running, "cr_await", None) or getattr(running, "gi_yieldfrom", None)


_MESSAGE: Final = r"coroutine '(.*)' was never awaited"
_lock: Final = threading.Lock()
_dropped: Final[dict[int, Callable[[str], bool]]] = {}
"""Callbacks by thread. Runs in several threads share Python's only hook for warnings."""


@contextlib.contextmanager
def unawaited(tell: Callable[[str], bool]) -> Iterator[None]:
    """Call ``tell`` with the name of each coroutine that this thread drops without awaiting it.

    If it returns False, the warning is shown as usual.
    """
    thread = threading.get_ident()
    with _lock:
        # Another run may have changed which warnings are shown, and how.
        warnings.filterwarnings("always", _MESSAGE, RuntimeWarning)
        if not isinstance(warnings.showwarning, _Hook):
            warnings.showwarning = _Hook(warnings.showwarning)
        _dropped[thread] = tell
    try:
        yield
    finally:
        with _lock:
            del _dropped[thread]
            if not _dropped and isinstance(hook := warnings.showwarning, _Hook):
                warnings.showwarning = hook.shown


class _Hook:
    def __init__(self, shown: Callable[..., None]) -> None:
        self.shown: Final = shown

    def __call__(
        self, message: Warning | str, category: type[Warning], *where: Any, **named: Any
    ) -> None:
        tell = _dropped.get(threading.get_ident())
        match = re.match(_MESSAGE, str(message))
        if match is None or tell is None or not tell(match[1]):
            self.shown(message, category, *where, **named)


class Watched(NamedTuple):
    """Input of the watchdog.

    Attributes:
        users: indices of units with a user's operator or function.
        operating: the coroutine function in which operators run; its local ``unit`` is the unit.
    """

    units: Sequence[Unit]
    users: frozenset[int]
    channels: Sequence[Channel]
    operating: Callable[..., object]

    def unit_in(self, stack: Sequence[tuple[FrameType, int]]) -> tuple[Unit, Place | None] | None:
        """Return the unit of the operator that runs in ``stack``, and its line of user code."""
        code = getattr(self.operating, "__code__", None)
        for depth, (frame, _) in enumerate(stack):
            if frame.f_code is code:
                return frame.f_locals["unit"], deepest_place(stack[depth:])
        return None


@contextlib.contextmanager
def watched(what: Watched, say: Callable[[str], object]) -> Iterator[None]:
    """Watch a run with user code in this thread; ``say`` receives the notice."""
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
    moved, checks = -1, 0
    while not done.wait(_PERIOD_SECONDS):
        now_moved = sum(channel.sent + channel.taken for channel in what.channels)
        if now_moved != moved:
            moved, checks = now_moved, 0
            continue
        checks += 1
        if checks == _PATIENCE:
            for unit, place in _at_work(what, sys._current_frames().get(runner)):
                say(
                    f"{unit.name} ({unit.place}) has sent and received nothing for "
                    f"{checks * _PERIOD_SECONDS:.0f} seconds and has not ended: it is in {place}, "
                    f"at cycle {unit.now:,}; Ctrl-C ends the run"
                )


def _at_work(what: Watched, running: FrameType | None) -> Iterator[tuple[Unit, Place]]:
    """Yield users' units that are running, each with its line of user code.

    ``running`` is the frame of the run's thread.
    """
    current = what.unit_in(stack_of(running))
    if current is not None:
        # Only one unit runs at a time.
        unit, place = current
        if unit.index in what.users and place is not None:
            yield unit, place
        return
    for unit in what.units:
        if unit.wait is None and not unit.finished and unit.index in what.users:
            task = unit.strand.task
            started = getattr(task, "coro", None)
            if isinstance(unit, GuardedUnit):
                started = unit.guard.running
            place = deepest_place(_frames(started))
            if place is not None:
                yield unit, place


def stack_of(frame: FrameType | None) -> list[tuple[FrameType, int]]:
    """Return the frames that called ``frame`` and itself, outermost first."""
    return [] if frame is None else list(traceback.walk_stack(frame))[::-1]

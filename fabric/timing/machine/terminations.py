"""Ends a command at Ctrl-C, SIGTERM or SIGHUP."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Final

from fabric.messages.place import is_installed, written_by_us
from fabric.messages.users_code import Handler, Interrupted

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command."""

_SOON_SECONDS: Final = 0.01


class Terminations(Handler):
    """Raises Interrupted at Ctrl-C, SIGTERM and SIGHUP while no run is active.

    During an import it is raised after the import, since Python drops errors in its import locks,
    and half-imported libraries are unusable. If Python drops it elsewhere, as in ``__del__``, it is
    raised again.

    Attributes:
        number: of the signal; SIGINT by default.
    """

    def __init__(self) -> None:
        self.number: int = signal.SIGINT
        self.waits = False

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals that have no other handler, in the main thread only."""
        taken = free_signals((*SIGNALS, signal.SIGALRM))
        before = sys.unraisablehook

        def dropped(what: sys.UnraisableHookArgs) -> None:
            if isinstance(what.exc_value, Interrupted) and signal.SIGALRM in taken:
                self._wait()
            else:
                before(what)

        with handling(taken, self.end):
            sys.unraisablehook = dropped
            try:
                yield
            finally:
                sys.unraisablehook = before
                if signal.SIGALRM in taken:
                    signal.setitimer(signal.ITIMER_REAL, 0)

    def end(self, number: int, frame: FrameType | None) -> None:
        """Raise Interrupted in the main thread, or after its import."""
        if number != signal.SIGALRM:
            self.number = number
        if _imports(frame):
            self._wait()
        else:
            self.waits = False
            raise Interrupted(self.number)

    def _wait(self) -> None:
        self.waits = True
        signal.setitimer(signal.ITIMER_REAL, _SOON_SECONDS)


@contextlib.contextmanager
def uninterrupted(*, second_ends: bool = False) -> Iterator[None]:
    """Delay signals until the block has ended; with ``second_ends``, until a second signal."""
    delayed: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        delayed.append(number)
        if second_ends and len(delayed) > 1:
            raise Interrupted(number)

    # SIGALRM too, since an earlier signal may have set an alarm.
    taken = free_signals((*SIGNALS, signal.SIGALRM))
    try:
        with handling(taken, note):
            yield
    finally:
        for number in delayed[:1]:
            signal.raise_signal(number)


@contextlib.contextmanager
def handling(
    numbers: Sequence[int], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Call ``handler`` at the signals ``numbers``; in the main thread only."""
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, earlier in zip(numbers, before, strict=True):
            signal.signal(number, earlier)


def free_signals(numbers: Sequence[int]) -> list[int]:
    """Return the signals that are neither ignored nor handled; none outside of the main thread."""
    main = threading.current_thread() is threading.main_thread()
    return [number for number in numbers if main and _is_free(number)]


def terminations() -> Terminations:
    """Return the signal handler of the running command, if any."""
    owner = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return owner if isinstance(owner, Terminations) else Terminations()


def ending_signal() -> int:
    """Return the signal of a KeyboardInterrupt: SIGTERM, SIGHUP or SIGINT."""
    return terminations().number


def was_terminated() -> bool:
    """Whether a KeyboardInterrupt came from SIGTERM or SIGHUP, not Ctrl-C."""
    return ending_signal() != signal.SIGINT


def _is_free(number: int) -> bool:
    handler = signal.getsignal(number)
    free = (signal.SIG_DFL, signal.default_int_handler)
    return handler in free or isinstance(getattr(handler, "__self__", None), Terminations)


def _imports(frame: FrameType | None) -> bool:
    """Whether ``frame`` imports a module without running user code."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            return True
        if not (file.startswith("<") or written_by_us(frame.f_code) or is_installed(file)):
            return False
        frame = frame.f_back
    return False

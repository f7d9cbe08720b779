"""Ctrl-C, SIGTERM and SIGHUP end a command, wherever it is."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Final

from fabric.messages.telling.place import is_installed, written_by_us
from fabric.messages.telling.users_code import Handler, Interrupted

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a command to end; another way would be SIGKILL."""

_SOON_SECONDS: Final = 0.01


class Terminations(Handler):
    """What Ctrl-C, SIGTERM and SIGHUP do while no run goes on: Interrupted is raised.

    While modules are imported it is raised afterwards: Python drops what is raised where it takes
    its locks of modules away, and libraries that are half there are no use to anybody. What Python
    has dropped anywhere else, as in ``__del__``, is raised again.

    Attributes:
        number: of the signal that came, SIGINT's where none did.
        waits: one came, and is raised in a moment.
    """

    def __init__(self) -> None:
        self.number: int = signal.SIGINT
        self.waits = False

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle them, where this is the main thread and nobody else does."""
        taken = free_ones((*SIGNALS, signal.SIGALRM))
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
        """Raise Interrupted where the main thread is, or once it has imported what it imports."""
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
    """Let what is done here be done before a signal that asks for the end is heard.

    Args:
        second_ends: do not wait any more when a second signal comes.
    """
    came: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        came.append(number)
        if second_ends and len(came) > 1:
            raise Interrupted(number)

    # SIGALRM too: one may have come before.
    taken = free_ones((*SIGNALS, signal.SIGALRM))
    try:
        with handling(taken, hear):
            yield
    finally:
        for number in came[:1]:
            signal.raise_signal(number)


@contextlib.contextmanager
def handling(
    numbers: Sequence[int], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Have ``handler`` called at the signals ``numbers``; the main thread only may ask for any."""
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, earlier in zip(numbers, before, strict=True):
            signal.signal(number, earlier)


def free_ones(numbers: Sequence[int]) -> list[int]:
    """Return the signals that may be handled: nobody ignores them or does anything of his own.

    Only the main thread may handle any.
    """
    main = threading.current_thread() is threading.main_thread()
    return [number for number in numbers if main and _is_free(number)]


def terminations() -> Terminations:
    """Return what handles the signals of the command that goes on, if any does."""
    owner = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return owner if isinstance(owner, Terminations) else Terminations()


def ending_signal() -> int:
    """Return the signal that a KeyboardInterrupt is of: SIGTERM, SIGHUP, or Ctrl-C's."""
    return terminations().number


def was_terminated() -> bool:
    """Whether a KeyboardInterrupt is SIGTERM's or SIGHUP's, which end a command, not Ctrl-C's."""
    return ending_signal() != signal.SIGINT


def _is_free(number: int) -> bool:
    handler = signal.getsignal(number)
    free = (signal.SIG_DFL, signal.default_int_handler)
    return handler in free or isinstance(getattr(handler, "__self__", None), Terminations)


def _imports(frame: FrameType | None) -> bool:
    """Whether a module is being imported in ``frame``, and no user's code is executed for that."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            return True
        if not (file.startswith("<") or written_by_us(frame.f_code) or is_installed(file)):
            return False
        frame = frame.f_back
    return False

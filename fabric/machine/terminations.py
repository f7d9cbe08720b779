"""SIGTERM and SIGHUP: they end a command like Ctrl-C does, wherever it is."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Final

__all__ = ["SIGNALS", "Terminations", "ending_signal", "free_ones", "handling", "was_terminated"]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a command to end; another way would be SIGKILL."""


class Terminations:
    """What SIGTERM and SIGHUP do while no run goes on: KeyboardInterrupt is raised.

    Attributes:
        number: of the signal that came, SIGINT's where none did.
    """

    def __init__(self) -> None:
        """Nothing has come yet."""
        self.number: int = signal.SIGINT

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle them, where this is the main thread and nobody else does."""
        with handling(free_ones(SIGNALS[1:]), self.end):
            yield

    def end(self, number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt where the main thread is."""
        self.number = number
        raise KeyboardInterrupt


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


def ending_signal() -> int:
    """Return the signal that a KeyboardInterrupt is of: SIGTERM, SIGHUP, or Ctrl-C's."""
    owner = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return owner.number if isinstance(owner, Terminations) else signal.SIGINT


def was_terminated() -> bool:
    """Whether a KeyboardInterrupt is SIGTERM's or SIGHUP's, which end a command, not Ctrl-C's."""
    return ending_signal() != signal.SIGINT


def _is_free(number: int) -> bool:
    handler = signal.getsignal(number)
    free = (signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL,)
    return handler in free or isinstance(getattr(handler, "__self__", None), Terminations)

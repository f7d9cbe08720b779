"""SIGTERM and SIGHUP: they end a command like Ctrl-C does, wherever it is."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

__all__ = ["SIGNALS", "Terminations", "is_free"]

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
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        taken = [number for number in SIGNALS[1:] if is_free(number)]
        before = [signal.signal(number, self.end) for number in taken]
        try:
            yield
        finally:
            for number, handler in zip(taken, before, strict=True):
                signal.signal(number, handler)

    def end(self, number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt where the main thread is."""
        self.number = number
        raise KeyboardInterrupt


def is_free(number: int) -> bool:
    """Whether a run may handle the signal: nobody ignores it or does anything of his own."""
    handler = signal.getsignal(number)
    free = (signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL,)
    return handler in free or isinstance(getattr(handler, "__self__", None), Terminations)

"""Ctrl-C, SIGTERM and SIGHUP: the run is asked to end.

What goes on computing all the same is ended a moment later.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Final

import trio

from fabric.terminations import SIGNALS, is_free

__all__ = ["Interrupts"]

_GRACE_SECONDS: Final = 0.4


class Interrupts:
    """What SIGINT, SIGTERM and SIGHUP do while a run goes on.

    The first one cancels the run, which writes what it has. Where a user's function computes and
    does not let trio run anything else, KeyboardInterrupt is raised in it a moment later, or at
    the second signal.

    Attributes:
        seen: there was one.
        number: of the signal that came first.
        handling: SIGINT comes here.
    """

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.seen = False
        self.number: int = signal.SIGINT
        self.handling = False
        self._cancel: Callable[[], object] | None = None

    def cancels(self, scope: trio.CancelScope, abandon: Callable[[], object]) -> None:
        """At the first signal from here on, ``abandon`` and cancel ``scope``; called inside trio.

        ``abandon`` is called at once, also while trio has no turn.
        """
        token = trio.lowlevel.current_trio_token()

        def cancel() -> None:
            abandon()
            token.run_sync_soon(scope.cancel)

        self._cancel = cancel

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals that nobody else does, where this is the main thread."""
        main = threading.current_thread() is threading.main_thread()
        taken = [number for number in SIGNALS if main and is_free(number)]
        if not taken:
            yield
            return
        alarm = signal.signal(signal.SIGALRM, self._late)
        before = [signal.signal(number, self._interrupt) for number in taken]
        self.handling = True
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in zip(taken, before, strict=True):
                signal.signal(number, handler)
            signal.signal(signal.SIGALRM, alarm)

    def _interrupt(self, number: int, _frame: object) -> None:
        if not self.seen:
            self.number = number
        if self.seen or self._cancel is None:
            self.seen = True
            raise KeyboardInterrupt
        self.seen = True
        self._cancel()
        signal.setitimer(signal.ITIMER_REAL, _GRACE_SECONDS)

    def _late(self, *_: object) -> None:
        raise KeyboardInterrupt

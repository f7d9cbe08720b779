"""Ctrl-C: the run is asked to end; what goes on computing all the same is ended a moment later."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Final

import trio

__all__ = ["Interrupts"]

_GRACE_SECONDS: Final = 0.4


class Interrupts:
    """What SIGINT does while a run goes on.

    The first one cancels the run, which writes what it has. Where a user's function computes and
    does not let trio run anything else, KeyboardInterrupt is raised in it a moment later, or at
    the second SIGINT.

    Attributes:
        seen: there was one.
    """

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.seen = False
        self._cancel: Callable[[], object] | None = None

    def cancels(self, scope: trio.CancelScope, abandon: Callable[[], object]) -> None:
        """At the first SIGINT from here on, ``abandon`` and cancel ``scope``; called inside trio.

        ``abandon`` is called at once, also while trio has no turn.
        """
        token = trio.lowlevel.current_trio_token()

        def cancel() -> None:
            abandon()
            token.run_sync_soon(scope.cancel)

        self._cancel = cancel

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle SIGINT, where this is the main thread and nobody else does."""
        if (
            threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        ):
            yield
            return
        before = signal.signal(signal.SIGALRM, self._late)
        signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGALRM, before)

    def _interrupt(self, *_: object) -> None:
        if self.seen or self._cancel is None:
            self.seen = True
            raise KeyboardInterrupt
        self.seen = True
        self._cancel()
        signal.setitimer(signal.ITIMER_REAL, _GRACE_SECONDS)

    def _late(self, *_: object) -> None:
        raise KeyboardInterrupt

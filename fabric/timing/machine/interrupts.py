"""Ends a run at Ctrl-C, SIGTERM or SIGHUP, and a moment later user code that keeps computing."""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final

import trio

from fabric.messages.place import deepest_place
from fabric.messages.users_code import Handler, Interrupted
from fabric.timing.machine.terminations import (
    SIGNALS,
    Terminations,
    free_signals,
    handling,
    terminations,
)

if TYPE_CHECKING:
    from fabric.timing.engine.clock import VirtualClock

GRACE_SECONDS: Final = 0.4

PATIENCE_SECONDS: Final = 1.0
MOST_ALARMS: Final = 3
"""Interrupts that user code may catch, one every ``PATIENCE_SECONDS``, before the process exits."""


class Interrupts(Handler):
    """Handles SIGINT, SIGTERM and SIGHUP during a run.

    The first signal cancels the run, which writes its results. If a user's function keeps
    computing, Interrupted is raised in it a moment later, or at the second signal.
    """

    def __init__(self) -> None:
        self.seen = False
        self.number: int = signal.SIGINT
        self._alarms = 0
        self._command = Terminations()
        self._end: Callable[[], object] | None = None

    def connect(self, clock: VirtualClock, cancel: Callable[[], object]) -> None:
        """Stop ``clock`` and call ``cancel`` at the first signal; to be called inside trio.

        A stopped clock starts no operator, even before trio has a turn.
        """
        token = trio.lowlevel.current_trio_token()

        def end() -> None:
            clock.stopped = True
            token.run_sync_soon(cancel)

        self._end = end
        if self.seen:
            end()

    def come(self) -> bool:
        """Handle the first signal, from any thread; return whether the run still continues."""
        self.seen = True
        if self._end is None:
            return False
        try:
            self._end()
        except trio.RunFinishedError:
            return False
        return True

    def again(self) -> None:
        """Raise the signal again, after the run."""
        signal.raise_signal(self.number)

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle the signals; drop errors after the first signal, since trio may raise any."""
        try:
            with self._taken():
                yield
        except BaseException:
            if not self.seen:
                raise

    @contextlib.contextmanager
    def _taken(self) -> Iterator[None]:
        """Handle the signals that have no other handler, in the main thread only."""
        taken = free_signals(SIGNALS)
        if not taken:
            yield
            return
        self._command = command = terminations()
        with handling((signal.SIGALRM,), self._late), handling(taken, self._interrupt):
            try:
                if command.waits:
                    # A signal came during an import: the run handles it, instead of the command.
                    command.waits = False
                    signal.raise_signal(command.number)
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _interrupt(self, number: int, _frame: object) -> None:
        if self.seen:
            raise Interrupted(self.number)
        self.seen = True
        self.number = self._command.number = number
        if self._end is not None:
            self._end()
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)

    def _late(self, _number: int, frame: FrameType | None) -> None:
        """End a computation that continues; exit the process if user code prevents that."""
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
        self._alarms += 1
        stack = [] if frame is None else list(traceback.walk_stack(frame))
        place = deepest_place(reversed(stack))
        if place is not None and self._alarms > MOST_ALARMS:
            os.write(2, f"fabric: {place} catches all interrupts: left without a report\n".encode())
            os._exit(128 + self.number)
        if place is not None or self._alarms == 1:
            raise Interrupted(self.number)

"""The thread of a run that another thread holds."""

from __future__ import annotations

import atexit
import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakSet

from fabric.telling.users_code import Interrupted

if TYPE_CHECKING:
    from fabric.runs.report import Report

__all__ = ["RunThread", "close_at_exit"]

_GRACE_SECONDS: Final = 0.4
_PATIENCE_SECONDS: Final = 1.0
_MOST_ALARMS: Final = 3
"""How often a user's code may catch the interrupt and go on, and how soon the next comes."""


class _Closed(Protocol):
    def close(self) -> None: ...


_RUNS: Final[WeakSet[_Closed]] = WeakSet()
"""Those that somebody has."""


def close_at_exit(run: _Closed) -> None:
    """Let ``run`` end before the interpreter takes away what its thread needs."""
    _RUNS.add(run)
    _register()


@cache
def _register() -> None:
    # Whoever asks later is called earlier: folders that go with reports are still there.
    atexit.register(_close_all)


def _close_all() -> None:
    for run in list(_RUNS):
        run.close()


class RunThread:
    """Runs a program; of what it raises, whoever holds it is told.

    Attributes:
        ended: the run has ended, or could not begin.
    """

    def __init__(self, run: Callable[[], Report], at_end: Callable[[], object]) -> None:
        """Begin ``run``, and call ``at_end`` once it has ended."""
        self.ended = False
        self._run: Final = run
        self._at_end: Final = at_end
        self._report: Report | None = None
        self._error: BaseException | None = None
        self._thread: Final = threading.Thread(target=self._main, name="run", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        try:
            self._report = self._run()
        except BaseException as error:  # noqa: BLE001 - raised where somebody waits for it
            self._error = error
        self.ended = True
        self._at_end()

    def result(self) -> Report:
        """Return the report, or raise what was raised instead."""
        if self._error is not None:
            raise self._error
        assert self._report is not None
        return self._report

    def end(self, interrupt: Callable[[], bool]) -> None:
        """Wait until the run, which was asked to end, has done so; ``interrupt`` what computes on.

        A user's code that lets nothing end it is left alone: it ends with the process.

        Args:
            interrupt: says whether the run still goes on; else its report is being made.
        """
        self._thread.join(_GRACE_SECONDS)
        for alarm in (False, *[True] * _MOST_ALARMS):
            if not interrupt():
                self._thread.join()
                return
            if alarm:
                # As a signal does in the main thread.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(Interrupted)
                )
            self._thread.join(_PATIENCE_SECONDS if alarm else _GRACE_SECONDS)

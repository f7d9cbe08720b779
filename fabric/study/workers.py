"""Processes that work on points: everything is imported once for each of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import Future
from typing import Final, Protocol, TypeVar

from fabric.study.evaluation import Before, Job, known_before, outcome_of
from fabric.study.outcome import Outcome, Status

__all__ = ["LocalWorkers", "Workers", "available_cores", "unanswered"]

Answer = TypeVar("Answer", Before, Outcome)


class Workers(Protocol):
    """Who works on points.

    Attributes:
        slots: how many points are worked on at once.
    """

    slots: int

    def look(self, job: Job) -> Future[Before]:
        """Begin to find what is known of a point before it runs."""

    def run(self, job: Job) -> Future[Outcome]:
        """Begin to run a point."""

    def close(self) -> None:
        """Stop, whatever is under way."""


class LocalWorkers:
    """Processes on this machine."""

    def __init__(self, slots: int, timeout_seconds: float | None) -> None:
        """Start them when they are first asked for something.

        Args:
            slots: how many.
            timeout_seconds: for one point; None: as long as it takes.
        """
        from pebble import ProcessPool

        self.slots = slots
        self._timeout_seconds: Final = timeout_seconds
        # Children of a small process that has one thread and everything imported.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["fabric.study.evaluation", "operators"])
        self._pool: Final = ProcessPool(slots, initializer=_begin, context=context)

    def look(self, job: Job) -> Future[Before]:
        """Begin to find what is known of a point before it runs."""
        return self._pool.schedule(known_before, (job,), timeout=self._timeout_seconds)

    def run(self, job: Job) -> Future[Outcome]:
        """Begin to run a point."""
        return self._pool.schedule(outcome_of, (job,), timeout=self._timeout_seconds)

    def close(self) -> None:
        """Stop them, whatever is under way."""
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()


def unanswered(job: Job, error: BaseException, timeout_seconds: float | None) -> Outcome:
    """Return the outcome of a point whose worker did not answer.

    Raises:
        BaseException: ``error``, where the fault is ours.
    """
    from pebble import ProcessExpired

    status: Status
    if isinstance(error, TimeoutError):
        status, why = "timeout", f"took longer than {timeout_seconds:g} s"
    elif isinstance(error, ProcessExpired):
        status, why = "lost", f"its worker ended ({_ended(error.exitcode)})"
    else:
        raise error
    return Outcome(index=job.point.index, setting=job.point.setting, status=status, reason=why)


def _ended(exit_code: int) -> str:
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"exit status {exit_code}"


def available_cores() -> int:
    """Return how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin() -> None:
    """Leave Ctrl-C to who conducts the study: a terminal sends it to all processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

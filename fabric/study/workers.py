"""Who works on points: the protocol, and what becomes of a point whose worker does not answer."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future
from typing import Protocol

from fabric.study.evaluation import Before, Job
from fabric.study.outcome import Outcome, Status

__all__ = ["WorkerLost", "Workers", "available_cores", "unanswered"]


class Workers(Protocol):
    """Who works on points.

    What they return fails with TimeoutError where a point takes longer than it is given, and with
    WorkerLost where a worker ends before it answers. Only the one point is lost.

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


class WorkerLost(Exception):  # noqa: N818 - what happened, not what went wrong with us
    """A worker that ended before it answered; the text says how."""

    @staticmethod
    def with_exit_code(exit_code: int | None) -> WorkerLost:
        """Return that of a process that ended so; None where nobody knows."""
        if exit_code is None:
            return WorkerLost("nobody knows how")
        if exit_code < 0:
            return WorkerLost(f"killed by {signal.Signals(-exit_code).name}")
        return WorkerLost(f"exit status {exit_code}")


def unanswered(job: Job, error: BaseException, timeout_seconds: float | None) -> Outcome:
    """Return the outcome of a point whose worker did not answer.

    Raises:
        BaseException: ``error``, where the fault is ours.
    """
    status: Status
    seconds = None
    if isinstance(error, TimeoutError):
        status, why = "timeout", f"took longer than {timeout_seconds:g} s"
        seconds = timeout_seconds
    elif isinstance(error, WorkerLost):
        status, why = "lost", f"its worker ended ({error})"
    else:
        raise error
    return Outcome(
        index=job.point.index,
        setting=job.point.setting,
        status=status,
        reason=why,
        seconds=seconds,
    )


def available_cores() -> int:
    """Return how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

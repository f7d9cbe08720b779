"""Who works on points: the protocol, and what becomes of a point whose worker does not answer."""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from fabric.study.evaluation import Before, Job, known_before, outcome_of
from fabric.study.outcome import Outcome, Status

__all__ = ["Answer", "ThreadedWorkers", "WorkerLost", "Workers", "available_cores", "unanswered"]


Answer = TypeVar("Answer", Before, Outcome)


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


class ThreadedWorkers(ABC):
    """Workers for each of which a thread waits; see ``Workers``."""

    def __init__(self, slots: int, name: str, begin: Callable[[], object] | None = None) -> None:
        """Have a thread for each of ``slots`` points; each calls ``begin`` first."""
        self.slots = slots
        self._threads: Final = ThreadPoolExecutor(slots, thread_name_prefix=name, initializer=begin)

    def look(self, job: Job) -> Future[Before]:
        """Begin to find what is known of a point before it runs."""
        return self._threads.submit(self._answer, known_before, job)

    def run(self, job: Job) -> Future[Outcome]:
        """Begin to run a point."""
        return self._threads.submit(self._answer, outcome_of, job)

    @abstractmethod
    def _answer(self, function: Callable[[Job], Answer], job: Job) -> Answer:
        """Have a worker answer, in a thread that waits for it."""


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
        wall_seconds=seconds,
    )


def available_cores() -> int:
    """Return how many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

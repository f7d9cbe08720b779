"""A study from its first point to its result: who works on what, what is kept, who is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Final, Protocol

from fabric.study.evaluation import Before, Job
from fabric.study.outcome import Outcome, Point
from fabric.study.result import StudyResult
from fabric.study.session import StudySession
from fabric.study.study import Study
from fabric.study.workers import Workers, unanswered

__all__ = ["Kept", "NotKept", "Told", "conduct"]


class Kept(Protocol):
    """Where outcomes stay."""

    def known(self) -> list[Outcome]:
        """Return those of earlier sessions."""

    def keep(self, outcome: Outcome) -> None:
        """Keep one, at once."""


class NotKept:
    """Nothing stays."""

    def known(self) -> list[Outcome]:
        """Return nothing."""
        return []

    def keep(self, outcome: Outcome) -> None:
        """Keep nothing."""


Told = Callable[[StudySession], object]
"""Is told of the session whenever something came of it."""


def conduct(
    study: Study,
    workers: Workers,
    kept: Kept,
    told: Told,
    *,
    timeout_seconds: float | None = None,
) -> StudyResult:
    """Deal with every point of ``study``.

    Ctrl-C ends it: what is known by then is the result.

    Args:
        study: which.
        workers: who work on its points.
        kept: has the outcomes of earlier sessions and keeps those of this one.
        told: is told how far it is.
        timeout_seconds: what workers give to one point.
    """
    start: Final = time.perf_counter()
    known = kept.known()

    def look(points: Sequence[Point]) -> Iterable[Before]:
        jobs = {workers.look(job): job for job in (Job.of(study, each) for each in points)}
        for future, job in jobs.items():
            try:
                yield future.result()
            except Exception as error:  # noqa: BLE001 - ours are raised again
                yield Before(job.point.index, refused=unanswered(job, error, timeout_seconds))

    session = StudySession(study, known, look)
    interrupted = False
    try:
        _work(session, workers, kept, told, timeout_seconds)
    except KeyboardInterrupt:
        interrupted = True
    outcomes = tuple(session.outcomes[index] for index in sorted(session.outcomes))
    return StudyResult(study, outcomes, len(known), time.perf_counter() - start, interrupted)


def _work(
    session: StudySession, workers: Workers, kept: Kept, told: Told, timeout_seconds: float | None
) -> None:
    under_way: dict[Future[Outcome], Job] = {}
    fresh: list[Outcome] = []
    while True:
        while len(under_way) < workers.slots and (point := session.ask()) is not None:
            job = Job.of(session.study, point)
            under_way[workers.run(job)] = job
        # The workers are busy again: now there is time for this.
        while fresh:
            kept.keep(fresh.pop())
        told(session)
        if not under_way:
            return
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            job = under_way.pop(future)
            try:
                outcome = future.result()
            except Exception as error:  # noqa: BLE001 - ours are raised again
                outcome = unanswered(job, error, timeout_seconds)
            fresh.append(session.tell(outcome))

"""Drive a study: hand points to workers, store outcomes, report progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from typing import Final

from fabric.explore.study.evaluation import Job
from fabric.explore.study.outcome import Before, Outcome, Point
from fabric.explore.study.result import StudyResult
from fabric.explore.study.search import Search, SearchSession
from fabric.explore.study.session import BaseStore, StudySession
from fabric.explore.study.space import listed
from fabric.explore.study.study import Study
from fabric.explore.study.workers import Workers, unanswered
from fabric.timing.machine.terminations import uninterrupted

OnProgress = Callable[[StudySession], object]
"""Called when points have started or ended."""

_SIGNAL_SECONDS: Final = 1.0
"""The longest time until a signal is handled."""


def conduct(
    study: Study,
    workers: Workers,
    store: BaseStore,
    on_progress: OnProgress,
    search: Search | None = None,
) -> StudyResult:
    """Evaluate the points of ``study``; after Ctrl-C, return the outcomes so far.

    ``store`` has the outcomes of all sessions. ``search`` draws points; without it, every point is
    evaluated.
    """
    start: Final = time.perf_counter()

    def look(points: Sequence[Point]) -> Iterable[Before]:
        jobs = {workers.look(job): job for job in (Job.of(study, each) for each in points)}
        for future, job in jobs.items():
            try:
                yield future.result()
            except Exception as error:  # noqa: BLE001 - ours are raised again
                yield Before(job.point.index, refused=unanswered(job, error, workers))

    session = (
        StudySession(study, store, look)
        if search is None
        else SearchSession(study, search, store, look)
    )
    under_way: dict[Future[Outcome], Job] = {}
    interrupted = False
    try:
        _work(session, workers, on_progress, under_way)
    except KeyboardInterrupt:
        interrupted = True
        with uninterrupted():
            _tell(session, workers, under_way)
    outcomes = tuple(session.outcomes[index] for index in sorted(session.outcomes))
    seconds = time.perf_counter() - start
    return StudyResult(
        study,
        outcomes,
        session.resumed,
        seconds,
        interrupted,
        tuple(session.runs[run] for run in sorted(session.runs)) if study.has_inputs else (),
        session.resumed_runs,
    )


def run_again(result: StudyResult, run: Callable[[Study], StudyResult]) -> StudyResult:
    """Run the front's designs with each change of ``Study.again``, and add them to ``result``."""
    study = result.study
    if not study.again.values or not result.front or result.interrupted:
        return result
    again = run(study.repeated(listed(study.space[each] for each in result.front)))
    return replace(result, again=again, interrupted=again.interrupted)


def _work(
    session: StudySession,
    workers: Workers,
    on_progress: OnProgress,
    under_way: dict[Future[Outcome], Job],
) -> None:
    while True:
        while len(under_way) < workers.slots and (point := session.ask()) is not None:
            job = Job.of(session.study, point)
            under_way[workers.run(job)] = job
        on_progress(session)
        if not under_way:
            return
        # A signal that arrives just before the wait is handled after the wait.
        while not wait(under_way, _SIGNAL_SECONDS, FIRST_COMPLETED).done:
            pass
        with uninterrupted():
            _tell(session, workers, under_way)


def _tell(session: StudySession, workers: Workers, under_way: dict[Future[Outcome], Job]) -> None:
    for future in [each for each in under_way if each.done()]:
        job = under_way.pop(future)
        try:
            outcome = future.result()
        except Exception as error:  # noqa: BLE001 - ours are raised again
            outcome = unanswered(job, error, workers)
        session.tell(outcome)

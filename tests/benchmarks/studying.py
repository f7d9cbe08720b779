"""Workers of a study that report the seconds of their points."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

# Any: whatever the functions of a run take and return.
from typing import Any

from typing_extensions import override

from fabric.explore.study import evaluation
from fabric.explore.study.evaluation import Job, ProgramQuestion, known_before, outcome_of
from fabric.explore.study.outcome import Before, Outcome
from fabric.explore.study.workers import LocalWorkers


class TimedWorkers(LocalWorkers):
    """Processes with processor seconds among the numbers of their outcomes.

    ``simulate``, ``wiring``, and ``whole``: since the answer before.
    """

    @override
    def run(self, job: Job) -> Future[Outcome]:
        return self._threads.submit(self._answer, _timed_run, job)

    @override
    def look(self, job: Job) -> Future[Before]:
        return self._threads.submit(self._answer, _timed_look, job)


_since = time.process_time()


def _timed_run(job: Job) -> Outcome:
    global _since  # noqa: PLW0603 - what a process took since it answered last
    taken = {"simulated": 0.0, "loaded": 0.0}
    whole: dict[str, Callable[..., Any]] = {}
    owners = {"simulated": evaluation, "loaded": ProgramQuestion}
    for name, owner in owners.items():
        whole[name] = getattr(owner, name)
        setattr(owner, name, _timed(whole[name], name, taken))
    try:
        outcome = outcome_of(job)
    finally:
        for name, function in whole.items():
            setattr(owners[name], name, function)
    now = time.process_time()
    numbers = {"simulate": taken["simulated"], "wiring": taken["loaded"], "whole": now - _since}
    _since = now
    return replace(outcome, numbers=outcome.numbers | numbers)


def _timed_look(job: Job) -> Before:
    start = time.process_time()
    before = known_before(job)
    microseconds = int((time.process_time() - start) * 1e6)
    return replace(before, bounds={**before.bounds, "look_microseconds": microseconds})


def _timed(function: Callable[..., Any], name: str, taken: dict[str, float]) -> Callable[..., Any]:
    def timed(*arguments: Any, **named: Any) -> Any:
        start = time.process_time()
        try:
            return function(*arguments, **named)
        finally:
            taken[name] += time.process_time() - start

    return timed

"""The progress of a study on a terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fabric.explore.study.outcome import PROVED
from fabric.explore.study.search import SearchSession
from fabric.messages.text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.explore.study.session import StudySession

_OVER_SECONDS: Final = 600.0
"""The remaining time is estimated from the speed in the last 600 seconds."""

_EVERY_SECONDS: Final = 0.1


class Watch:
    """A progress line at the bottom of a terminal, removed at the end; not shown elsewhere.

    ::

        with Watch(console) as watch:
            conduct(study, workers, kept, watch)
    """

    def __init__(self, console: Console, *, seconds: Callable[[], float] = time.monotonic) -> None:
        """Show progress on ``console``, timed by the clock ``seconds``."""
        self._progress: Final = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("remaining", style="dim"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            get_time=seconds,
            speed_estimate_period=_OVER_SECONDS,
            disable=not console.is_terminal,
        )
        self._seconds: Final = seconds
        self._session: StudySession | None = None
        self._shown = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def __call__(self, session: StudySession) -> None:
        """Show the progress of ``session``, at most every 0.1 seconds."""
        now = self._seconds()
        is_new = session is not self._session
        if self._progress.disable or (not is_new and now - self._shown < _EVERY_SECONDS):
            return
        total, completed, state = _total(session), len(session.runs), _state(session)
        for task in self._progress.task_ids:
            if is_new:
                self._progress.remove_task(task)
            else:
                self._progress.update(task, total=total, completed=completed, state=state)
        if is_new:
            name = visible(session.study.name)
            self._progress.add_task(name, total=total, completed=completed, state=state)
        self._session, self._shown = session, now


def _total(session: StudySession) -> int | None:
    study = session.study
    if isinstance(session, SearchSession):
        return None  # the number of draws is unknown
    chosen = len(study.space) * len(study.runs_of(0))
    has_front = study.held_out and len(session.outcomes) == len(study.space)
    return chosen + (len(session.front()) * len(study.held_out) if has_front else 0)


def _state(session: StudySession) -> str:
    statuses = Counter(each.status for each in session.runs.values())
    proved = sum(statuses[each] for each in PROVED)
    failed = statuses.total() - proved - statuses["completed"]
    noun = "runs" if session.study.has_inputs else "points"
    return f"{noun}, {proved:,} pruned, {failed:,} failed"

"""How far studies are, on a terminal while they run: points, what failed, how long it may take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fabric.explore.study.outcome import PROVED
from fabric.explore.study.search import SearchSession
from fabric.messages.telling.wording import visible

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.explore.study.session import StudySession

__all__ = ["Watch", "progress_line"]

_OVER_SECONDS: Final = 600.0
"""The estimate is taken from what was dealt with in this time."""

_EVERY_SECONDS: Final = 0.1


def progress_line(
    console: Console, told: str, seconds: Callable[[], float], over_seconds: float
) -> Progress:
    """Return a line at the bottom of a terminal: how much is done, and how long the rest may take.

    Args:
        console: where it is shown, if that is a terminal.
        told: what is counted; a field of the task in braces.
        seconds: the clock.
        over_seconds: the time that the estimate is taken from.
    """
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn(told, markup=False),
        TimeElapsedColumn(),
        TextColumn("remaining", style="dim"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        get_time=seconds,
        speed_estimate_period=over_seconds,
        disable=not console.is_terminal,
    )


class Watch:
    """One line at the bottom of a terminal, gone when all is done; elsewhere nothing.

    ::

        with Watch(console) as watch:
            conduct(study, workers, kept, watch)
    """

    def __init__(self, console: Console, *, seconds: Callable[[], float] = time.monotonic) -> None:
        """Show how far studies are on ``console``, timed by the clock ``seconds``."""
        self._progress: Final = progress_line(
            console, "{task.fields[told]}", seconds, over_seconds=_OVER_SECONDS
        )
        self._seconds: Final = seconds
        self._session: StudySession | None = None
        self._task: TaskID | None = None
        self._shown = 0.0

    def __enter__(self) -> Self:
        """Begin."""
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Take the line away."""
        self._progress.stop()

    def __call__(self, session: StudySession) -> None:
        """Show how far ``session`` is, where the last time was not just now."""
        if self._progress.disable:
            return
        now = self._seconds()
        if session is not self._session or self._task is None:
            self._begin(session)
        elif now - self._shown < _EVERY_SECONDS:
            return
        else:
            done = len(session.runs)
            total = _total(session)
            self._progress.update(self._task, completed=done, total=total, told=_told(session))
        self._shown = now

    def _begin(self, session: StudySession) -> None:
        """Show another study; what is known of it from before takes no time."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._session = session
        self._task = self._progress.add_task(
            visible(session.study.name),
            total=_total(session),
            completed=len(session.runs),
            told=_told(session),
        )


def _total(session: StudySession) -> int | None:
    """Return how many runs there may be; what inputs held out add is known with the front."""
    study = session.study
    if isinstance(session, SearchSession):
        return None  # how many it looks at is not known before
    chosen = len(study.space) * len(study.runs_of(0))
    settled = study.held_out and len(session.outcomes) == len(study.space)
    return chosen + (len(session.front()) * len(study.held_out) if settled else 0)


def _told(session: StudySession) -> str:
    statuses = Counter(each.status for each in session.runs.values())
    proved = sum(statuses[each] for each in PROVED)
    failed = statuses.total() - proved - statuses["completed"]
    what = "runs" if session.study.has_inputs else "points"
    return f"{what}, {proved:,} proved away, {failed:,} failed"

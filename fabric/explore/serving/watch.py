"""How far a question of serving is, on a terminal while it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from typing_extensions import override

from fabric.explore.serving.conducting import Watching
from fabric.explore.study.written.watch import Watch, progress_line
from fabric.messages.telling.wording import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from fabric.explore.study.session import StudySession

__all__ = ["ServingWatch"]

_OVER_SECONDS: Final = 30.0
"""The estimate is taken from what was served in this time."""


class ServingWatch(Watching):
    """One line at the bottom of a terminal, gone when all is done; elsewhere nothing."""

    def __init__(self, console: Console, *, seconds: Callable[[], float] = time.monotonic) -> None:
        """Show how far it is on ``console``, timed by the clock ``seconds``."""
        self._progress: Final = progress_line(
            console, "requests", seconds, over_seconds=_OVER_SECONDS
        )
        self._console: Final = console
        self._seconds: Final = seconds
        self._task: TaskID | None = None
        self._of_study: Watch | None = None

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Take the line away."""
        self._end_study()
        self._progress.stop()

    @override
    def situations(self, session: StudySession) -> None:
        """Show how far the situations of a design are; one terminal has one such line."""
        if self._of_study is None:
            self._progress.stop()
            self._of_study = Watch(self._console, seconds=self._seconds).__enter__()
        self._of_study(session)

    @override
    def requests(self, design: str, rate: float | None, done: int, all_runs: int) -> None:
        """Show how many requests have their last token."""
        if self._progress.disable:
            return
        self._end_study()
        at = "" if rate is None else f" {rate:g}/s"
        told = visible(f"{design}{at}".strip() or "serving")
        if self._task is None:
            self._task = self._progress.add_task(told, total=all_runs)
        self._progress.start()
        self._progress.update(self._task, description=told, completed=done)

    def _end_study(self) -> None:
        if self._of_study is not None:
            self._of_study.__exit__()
            self._of_study = None

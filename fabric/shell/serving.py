"""The command ``serve``: questions, progress and results."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from typing_extensions import override

from fabric.explore.serving.driver import Watching
from fabric.explore.serving.question import open_servings
from fabric.explore.study.written.terminal import Watch, progress_line
from fabric.messages.addresses import shown_command
from fabric.messages.errors import ConfigurationError
from fabric.messages.output import ExitStatus, print_text, tell
from fabric.messages.text import file_name, visible
from fabric.shell.json_object import print_json
from fabric.timing.machine.terminations import ending_signal, uninterrupted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from fabric.explore.serving.question import Serving
    from fabric.explore.serving.result import ServingResult
    from fabric.explore.study.session import StudySession

_OVER_SECONDS: Final = 30.0
"""The estimate is taken from what was served in this time."""

_NEEDED: Final = ("optuna", "matplotlib")


class ServingWatch(Watching):
    """A progress line at the bottom of a terminal, removed at the end; not shown elsewhere."""

    def __init__(self, console: Console, *, seconds: Callable[[], float] = time.monotonic) -> None:
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
        """Remove the line."""
        self._end_study()
        self._progress.stop()

    @override
    def situations(self, session: StudySession) -> None:
        if self._of_study is None:
            self._progress.stop()
            self._of_study = Watch(self._console, seconds=self._seconds).__enter__()
        self._of_study(session)

    @override
    def requests(self, design: str, rate: float | None, done: int, all_runs: int) -> None:
        if self._progress.disable:
            return
        self._end_study()
        at = "" if rate is None else f" {rate:g}/s"
        title = visible(f"{design}{at}".strip() or "serving")
        if self._task is None:
            self._task = self._progress.add_task(title, total=all_runs)
        self._progress.start()
        self._progress.update(self._task, description=title, completed=done)

    def _end_study(self) -> None:
        if self._of_study is not None:
            self._of_study.__exit__()
            self._of_study = None


class Serves:
    """Runs, prints and saves the serving questions of a file."""

    def __init__(self, servings: Sequence[Serving], folder: Path | None) -> None:
        self._servings: Final = servings
        self._folder: Final = folder
        self._found: Final[list[ServingResult]] = []
        self._unwritten: Final[list[str]] = []

    @staticmethod
    def of(file: Path, folder: Path | None) -> Serves:
        """Open the serving questions of a file."""
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigurationError(
                f"serve needs {', '.join(missing)}, which is not installed: expected the extra "
                "study, as in pip install 'step-fabric[study]'"
            )
        return Serves(open_servings(file), folder)

    def run(self, jobs: int | None, *, as_json: bool) -> None:
        """Run the questions, and print and save the result of each."""
        from rich.console import Console

        from fabric.display.terminal import printed_sheet
        from fabric.explore.serving.driver import conduct_serving
        from fabric.explore.study.workers import LocalWorkers, available_cores

        workers = LocalWorkers(jobs or available_cores(), None)
        try:
            for serving in self._servings:
                folder = self._folder_of(serving)
                with ServingWatch(Console(stderr=True)) as watch:
                    result = conduct_serving(serving, workers, folder, watch, self._folder)
                self._found.append(result)
                self._write(result, folder)
                if not as_json:
                    space = "\n" if len(self._found) > 1 else ""
                    print_text(space + printed_sheet(result.sheet()))
                if result.interrupted:
                    break
        finally:
            with uninterrupted():
                workers.close()

    def conclude(self, *, as_json: bool) -> int:
        """Print the paths of results, and return the exit status."""
        for serving in self._servings[: len(self._found)]:
            folder = self._folder_of(serving)
            if folder is not None:
                tell(f"page in {folder / 'index.html'}")
        for sentence in self._unwritten:
            tell(f"fabric: {sentence}")
        if as_json:
            objects = [each.as_json() for each in self._found]
            print_json(objects[0] if len(self._servings) == 1 else {"servings": objects})
        if any(each.interrupted for each in self._found):
            return ExitStatus.interrupted(ending_signal())
        return ExitStatus.UNWRITTEN if self._unwritten else ExitStatus.COMPLETED

    def _folder_of(self, serving: Serving) -> Path | None:
        if self._folder is None or len(self._servings) == 1:
            return self._folder
        return self._folder / file_name(serving.name)

    def _write(self, result: ServingResult, folder: Path | None) -> None:
        from fabric.explore.serving.folder import write_folder

        if folder is None:
            return
        command = shown_command(sys.argv[1:])
        with uninterrupted():
            self._unwritten.extend(write_folder(result, folder, command=command))

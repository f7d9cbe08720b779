"""Driver of the commands ``study`` and ``serve``: run each question, print and save its result."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from fabric.display.terminal import printed_sheet
from fabric.messages.addresses import shown_address
from fabric.messages.errors import ConfigurationError
from fabric.messages.output import ExitStatus, print_text, tell
from fabric.messages.text import file_name
from fabric.shell.json_object import print_json
from fabric.timing.machine.terminations import ending_signal, uninterrupted

if TYPE_CHECKING:
    from fabric.explore.serving.question import Serving
    from fabric.explore.serving.result import ServingResult
    from fabric.explore.study.result import StudyResult
    from fabric.explore.study.study import Study
    from fabric.explore.study.workers import Workers

STUDY_MODULES: Final = ("optuna", "sqlalchemy", "matplotlib", "distributed")
"""Modules of the extra ``study``."""

Q = TypeVar("Q", bound="Study | Serving")
R = TypeVar("R", bound="StudyResult | ServingResult")


def shown_command(arguments: Sequence[str]) -> str:
    """Return a command of this program, quoted for a shell and without passwords."""
    shown = (shown_address(each) if "://" in each else each for each in arguments)
    return shlex.join(["python", "-m", "fabric", *shown])


def workers_of(dask: str | None, jobs: int | None, timeout_seconds: float | None) -> Workers:
    from fabric.explore.study.workers import DaskWorkers, LocalWorkers, available_cores

    if dask is None:
        return LocalWorkers(jobs or available_cores(), timeout_seconds)
    if jobs is not None:
        raise ConfigurationError("--jobs and --dask: expected one of the two")
    return DaskWorkers(dask, timeout_seconds)


class Experiments(Generic[Q, R]):
    """Questions of one command, and their results.

    Each of several questions has a subfolder of ``folder``. ``write`` writes a result into its
    folder, and returns a sentence for each failure.
    """

    def __init__(
        self, questions: Sequence[Q], folder: Path | None, write: Callable[..., list[str]]
    ) -> None:
        self.results: Final[list[R]] = []
        self.unwritten: Final[list[str]] = []
        self._questions: Final = questions
        self._folder: Final = folder
        self._write: Final = write
        # Drawing takes as long as some studies, so it overlaps with the next question.
        self._writer: Final = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._writing: Final[list[Future[list[str]]]] = []

    def run(
        self, conduct: Callable[[Q, Path | None], R], workers: Workers, *, as_json: bool
    ) -> None:
        """Answer the questions, print and save each result, and close the workers."""
        try:
            for question in self._questions:
                folder = self.folder_of(question)
                result = conduct(question, folder)
                self.results.append(result)
                if folder is not None:
                    self._writing.append(self._writer.submit(self._write, result, folder))
                if not as_json:
                    space = "\n" if len(self.results) > 1 else ""
                    print_text(space + printed_sheet(result.sheet()))
                if result.interrupted:
                    break
        finally:
            with uninterrupted():
                workers.close()
        for each in self._writing:
            self.unwritten.extend(each.result())

    def folder_of(self, question: Q) -> Path | None:
        if self._folder is None or len(self._questions) == 1:
            return self._folder
        return self._folder / file_name(question.name)

    def conclude(
        self, pages: Sequence[Path], plural: str, *, as_json: bool, answered: bool = True
    ) -> int:
        """Print the pages' paths, the failed writes and the object; return the exit status."""
        for page in pages:
            tell(f"page in {page / 'index.html'}")
        for sentence in self.unwritten:
            tell(f"fabric: {sentence}")
        if as_json:
            objects = [each.as_json() for each in self.results]
            print_json(objects[0] if len(self._questions) == 1 else {plural: objects})
        if any(each.interrupted for each in self.results):
            return ExitStatus.interrupted(ending_signal())
        if not answered:
            return ExitStatus.WRONG
        return ExitStatus.UNWRITTEN if self.unwritten else ExitStatus.COMPLETED

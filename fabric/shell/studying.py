"""Driver of the command ``study``: run, print and save each study."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.explore.study.opening import StudyOptions, open_study
from fabric.messages.addresses import shown_command
from fabric.messages.errors import ConfigurationError
from fabric.messages.output import ExitStatus, print_text, tell
from fabric.shell.json_object import print_json
from fabric.timing.machine.terminations import ending_signal

if TYPE_CHECKING:
    from fabric.explore.study.result import StudyResult
    from fabric.explore.study.search import Method, Search
    from fabric.explore.study.study import Study
    from fabric.explore.study.workers import Workers

_NEEDED: Final = ("optuna", "matplotlib", "distributed")


class Studying:
    """Runs, prints and saves studies."""

    def __init__(self, studies: Sequence[Study], folder: Path | None) -> None:
        self._studies: Final = studies
        self._folder: Final = folder
        self._found: Final[list[StudyResult]] = []
        # Drawing takes as long as some studies, so it overlaps with the next study.
        self._writer: Final = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._writing: Final[list[Future[list[str]]]] = []

    @staticmethod
    def of(files: Sequence[Path], options: StudyOptions, folder: Path | None) -> Studying:
        """Open the studies of files."""
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigurationError(
                f"study needs {', '.join(missing)}, which is not installed: expected the extra "
                "study, as in pip install 'step-fabric[study]'"
            )
        studies = [open_study(file, options) for file in files]
        files_of: dict[str, Path] = {}
        for study, file in zip(studies, files, strict=True):
            other = files_of.setdefault(study.name, file)
            if other is not file:
                raise ConfigurationError(
                    f"study {study.name} is in {other}, too: expected each name once",
                    file=str(file),
                )
        return Studying(studies, folder)

    def run(
        self,
        workers: Workers,
        storage: str | None,
        timeout_seconds: float | None,
        search: Search | None,
        *,
        as_json: bool,
    ) -> None:
        """Run the studies, and print and save the result of each."""
        from rich.console import Console

        from fabric.display.terminal import printed_sheet
        from fabric.explore.study.driver import conduct
        from fabric.explore.study.session import NoStore
        from fabric.explore.study.store import Store
        from fabric.explore.study.written.terminal import Watch

        for study in self._studies:
            store = NoStore() if storage is None else Store(study, storage, timeout_seconds)
            with Watch(Console(stderr=True)) as watch:
                result = conduct(
                    study, workers, store, watch, timeout_seconds=timeout_seconds, search=search
                )
            self._found.append(result)
            self._write(result)
            if isinstance(store, Store) and store.ignored:
                tell(f"fabric: {store.ignored_note()}")
            if not as_json:
                space = "\n" if len(self._found) > 1 else ""
                print_text(space + printed_sheet(result.sheet()))
                tell(f"{study.name}: {result.wall_seconds:.1f} s")
            if result.interrupted:
                break

    def conclude(self, *, as_json: bool) -> int:
        """Wait for the saved files, print their paths, and return the exit status."""
        from fabric.explore.study.written.folder import write_overview

        unwritten = [sentence for each in self._writing for sentence in each.result()]
        if self._folder is not None:
            if len(self._studies) > 1:
                unwritten += write_overview(self._found, self._folder)
            tell(f"page in {self._folder / 'index.html'}")
        for sentence in unwritten:
            tell(f"fabric: {sentence}")
        if as_json:
            objects = [each.as_json() for each in self._found]
            print_json(objects[0] if len(self._studies) == 1 else {"studies": objects})
        if any(each.interrupted for each in self._found):
            return ExitStatus.interrupted(ending_signal())
        if any(not each.answered for each in self._found):
            return ExitStatus.WRONG
        return ExitStatus.UNWRITTEN if unwritten else ExitStatus.COMPLETED

    def _write(self, result: StudyResult) -> None:
        from fabric.explore.study.written.folder import study_folder, write_folder

        if self._folder is None:
            return
        folder = self._folder if len(self._studies) == 1 else study_folder(result, self._folder)
        command = shown_command(sys.argv[1:])
        self._writing.append(self._writer.submit(write_folder, result, folder, command=command))


def search_of(method: Method | None, points: int | None, seed: int | None) -> Search | None:
    """Return the search of the options; points are required."""
    if method is None:
        if points is not None or seed is not None:
            raise ConfigurationError("--points and --seed need a search: expected --search, too")
        return None
    if points is None:
        raise ConfigurationError("--search: expected --points N, the number of points to run")
    from fabric.explore.study.search import Search

    return Search(method, points, seed or 0)


def storage_of(url: str | None, folder: Path | None) -> str | None:
    """Return the URL of the storage, by default in ``folder``, or None."""
    if url is not None or folder is None:
        return url
    from fabric.explore.study.storage import file_url

    folder.mkdir(parents=True, exist_ok=True)
    return file_url(folder / "study.db")


def workers_of(dask: str | None, jobs: int | None, timeout_seconds: float | None) -> Workers:
    """Return the workers: a Dask cluster or processes, not both."""
    if dask is not None:
        from fabric.explore.study.workers import DaskWorkers

        if jobs is not None:
            raise ConfigurationError("--jobs and --dask: expected one of both")
        return DaskWorkers(dask, timeout_seconds)
    from fabric.explore.study.workers import LocalWorkers, available_cores

    return LocalWorkers(jobs or available_cores(), timeout_seconds)

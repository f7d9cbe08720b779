"""The command ``serve``: questions, progress and results."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.explore.serving.question import open_servings
from fabric.messages.addresses import shown_command
from fabric.messages.errors import ConfigurationError
from fabric.messages.output import ExitStatus, print_text, tell
from fabric.messages.text import file_name
from fabric.shell.json_object import print_json
from fabric.timing.machine.terminations import ending_signal, uninterrupted

if TYPE_CHECKING:
    from fabric.explore.serving.question import Serving
    from fabric.explore.serving.result import ServingResult
    from fabric.explore.study.workers import Workers

_NEEDED: Final = ("sqlalchemy", "matplotlib", "distributed")


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

    def run(self, workers: Workers, *, as_json: bool) -> None:
        """Run the questions, and print and save the result of each."""
        from rich.console import Console

        from fabric.display.terminal import printed_sheet
        from fabric.explore.serving.driver import conduct_serving
        from fabric.explore.study.written.terminal import Watch

        for serving in self._servings:
            folder = self._folder_of(serving)
            with Watch(Console(stderr=True)) as watch:
                result = conduct_serving(serving, workers, folder, watch, self._folder)
            self._found.append(result)
            self._write(result, folder)
            if not as_json:
                space = "\n" if len(self._found) > 1 else ""
                print_text(space + printed_sheet(result.sheet()))
            if result.interrupted:
                break

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

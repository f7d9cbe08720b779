"""Where a run was traced: in a folder that users keep, or in one that goes with the report."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fabric.telling.errors import ConfigurationError

__all__ = ["RunFolder", "passing_folder"]


class RunFolder:
    """The folder of a run.

    Attributes:
        path: absolute.
    """

    def __init__(self, path: Path, *, passing: bool = False) -> None:
        """Stand for ``path``; a ``passing`` one is removed when nobody has this object any more.

        That is when the interpreter ends, at the latest. A process that was forked removes
        nothing.
        """
        self.path: Final = path.absolute()
        if passing:
            weakref.finalize(self, _remove, self.path, os.getpid())

    def __reduce__(self) -> tuple[Callable[[Path], RunFolder], tuple[Path]]:
        """In another process it is where it is, but not to be removed."""
        return RunFolder, (self.path,)


def passing_folder() -> RunFolder:
    """Make a folder among the system's temporary files.

    Raises:
        ConfigurationError: there is no place for one.
    """
    try:
        return RunFolder(Path(tempfile.mkdtemp(prefix="step-fabric-")), passing=True)
    except OSError as error:
        raise ConfigurationError(
            f"simulate: the trace needs a folder: {error.strerror}: expected log_dir, or TMPDIR "
            "to name a folder that can be written"
        ) from None


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)

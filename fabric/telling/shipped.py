"""Files that come with the fabric: hardware descriptions, and programs to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import found_text, one_of

__all__ = ["hardware_file", "programs"]

_PACKAGE: Final = Path(__file__).parents[1]


def programs() -> Path:
    """Return the folder of the example programs: an installed fabric has its own copy of it."""
    installed = _PACKAGE / "programs"
    return installed if installed.is_dir() else _PACKAGE.parent / "programs"


def hardware_file(named: Path | str) -> Path:
    """Return the hardware file that is named: a path, or the name of one that comes with us.

    A file of that name in the current folder goes first.

    Raises:
        ConfigurationError: it is a name, without a folder or a suffix, of no such file.
    """
    path = Path(named)
    if path.suffix or len(path.parts) != 1 or path.exists():
        return path
    files = {each.stem: each for each in sorted((programs() / "hardware").glob("*.toml"))}
    if path.name not in files:
        known = one_of(list(files), path.name)
        raise ConfigurationError(
            f"the hardware is {found_text(path.name)}: expected a file, FILE.toml, or {known}"
        )
    return files[path.name]

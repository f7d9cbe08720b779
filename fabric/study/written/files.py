"""Files of a folder, each whole or not there; who cannot write one says why and goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.telling.whole_file import beside, write_whole

if TYPE_CHECKING:
    from fabric.study.written.pictures import Drawn

__all__ = ["trying", "write_pictures"]


def write_pictures(folder: Path, pictures: Sequence[Drawn]) -> None:
    """Write each picture as SVG and PNG."""
    folder.mkdir(exist_ok=True)
    for picture in pictures:
        write_whole(folder / f"{picture.name}.svg", picture.svg)
        with beside(folder / f"{picture.name}.png") as other:
            other.write_bytes(picture.png)


def trying(path: Path, write: Callable[[], object]) -> Iterator[str]:
    """Yield why something could not be written; ``path`` is where, if the system does not say."""
    try:
        write()
    except OSError as error:
        yield f"{error.filename or path}: {error.strerror or error}"

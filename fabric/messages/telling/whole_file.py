"""Files that are whole or not there: a full disk or a kill leaves no half of one behind."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

# Any: a file of text or of bytes, by its mode.
from typing import Any

__all__ = ["beside", "output_file", "write_parts", "write_whole"]


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give a path to write to, which takes the place of ``path`` when all is written.

    Each writer has another one: several processes may write the same file.

    Raises:
        OSError: it cannot be moved there; or what the writer raised: nothing is left behind then.
    """
    other = path.with_name(f"{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        yield other
        other.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            other.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(other):
            error.filename, error.filename2 = str(path), None
        raise


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` into ``path``; what was there before stays until there is all of it.

    Raises:
        OSError: it cannot be written.
    """
    with beside(path) as other:
        other.write_text(text, encoding="utf-8")


def write_parts(path: Path, parts: Iterable[bytes]) -> None:
    """Write ``parts`` one after the other into ``path``, as a whole in the same way.

    Raises:
        OSError: it cannot be written.
    """
    with beside(path) as other, other.open("wb") as file:
        file.writelines(parts)


@contextlib.contextmanager
def output_file(
    path: Path, mode: str = "w", encoding: str | None = None, errors: str | None = None
) -> Iterator[Any]:
    """Open a file that a user has named, to write all of it; half of it is removed.

    It is written in its place: the name may be that of a device, or of another file by a link.

    Args:
        path: as the user gave it.
        mode: ``w`` or ``wb``.
        encoding: of text.
        errors: what to do with letters that the encoding does not have.

    Raises:
        OSError: it cannot be written; the error names the file.
    """
    file = path.open(mode, encoding=encoding, errors=errors)
    try:
        with file:
            yield file
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        if path.is_file() and not path.is_symlink():
            path.unlink()
        raise

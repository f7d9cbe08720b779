"""Paths for the database, which interprets some characters.

``*``, ``?`` and ``[`` make patterns, ``NAME=VALUE`` makes a column, a prefix before ``:`` is a
protocol, and names must be UTF-8. Not all of this can be quoted, so such a path gets another name.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PLAIN: Final = re.compile(r"/[A-Za-z0-9_./ -]*")


@contextmanager
def plain(path: Path) -> Iterator[Path]:
    """Yield a plain path that leads to ``path`` inside the block."""
    absolute = path.absolute()
    if _PLAIN.fullmatch(str(absolute)):
        yield absolute
        return
    parent = tempfile.gettempdir()
    with tempfile.TemporaryDirectory(dir=parent if _PLAIN.fullmatch(parent) else "/tmp") as folder:
        other = Path(folder) / "trace"
        other.symlink_to(absolute)
        yield other


@contextmanager
def system_errors() -> Iterator[None]:
    """Raise the system's OSError instead of the database's error about a write."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        found = re.search(r'"errno":"(\d+)"', str(error))
        if found is None:
            raise OSError(errno.EIO, str(error).splitlines()[0]) from None
        number = int(found[1])
        raise OSError(number, os.strerror(number)) from None


def literal(text: object) -> str:
    """Return ``text`` as a string of SQL."""
    return "'" + str(text).replace("'", "''") + "'"

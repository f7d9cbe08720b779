"""Read arrays from users' files, of limited size, with one sentence for any fault."""

from __future__ import annotations

import io
import stat
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from fabric import ConfigurationError

_MOST_BYTES: Final = 64_000_000
"""The most bytes of an array, counted while reading; the size in a file's header may be false."""

_PACKED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The compressions that numpy writes; other ones may expand without a limit per read."""

_DAMAGED: Final = (
    *(EOFError, ValueError, OverflowError, SyntaxError, RuntimeError, KeyError, MemoryError),
    *(struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
"""Errors of numpy and zipfile for damaged files."""


def load(file: Path | str, who: str, expected: str, member: str | None = None) -> NDArray[Any]:
    """Return the array in ``file``, or ``member`` of an archive of arrays.

    Raises:
        ConfigurationError: it cannot be read, is not an array, is larger than 64 MB, or holds
            objects; the message names the file and ``expected``.
    """
    path = Path(file)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe may never be written to
            raise _Refused("is no file")
        with path.open("rb") as opened:
            begins = opened.peek(6)
            if member is None and begins.startswith(b"PK"):
                raise _Refused("holds several arrays")
            if member is not None and begins.startswith(np.lib.format.MAGIC_PREFIX):
                raise _Refused("holds a single array")
            if member is None:
                return _array(opened)
            with zipfile.ZipFile(opened) as archive:
                held = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
                if len(held) < len(archive.infolist()):
                    raise _Refused("holds two arrays of one name")
                if member in held and held[member].compress_type in _PACKED:
                    with archive.open(held[member]) as found:
                        return _array(found)
            raise _Refused(f"holds {', '.join(held) or 'nothing'}")
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
    except _Refused as error:
        reason = str(error)
    except _DAMAGED:
        reason = "is not a file of numbers"
    raise ConfigurationError(f"{who}: {reason}: expected {expected}")


class _Refused(Exception):  # noqa: N818 - a refusal, with the reason as text
    """The file is not as expected."""


def _array(opened: BinaryIO | Any) -> NDArray[Any]:
    # Read to the end, where zipfile verifies the checksum.
    content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise _Refused(f"holds more than {_MOST_BYTES:,} bytes")
    found: NDArray[Any] = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if found.dtype.kind not in "biufc":
        raise ValueError
    return found

"""Arrays from users' files. Damaged and oversized files are refused with a clear error."""

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
"""The most bytes of an array. They are counted while reading, since a header may be wrong."""

_PACKED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The compressions that numpy writes. Other decoders may return more bytes than requested."""

_DAMAGED: Final = (
    *(EOFError, ValueError, OverflowError, SyntaxError, RuntimeError, KeyError, MemoryError),
    *(struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
"""Errors of numpy and zipfile for damaged files."""


def load(file: Path | str, who: str, expected: str, member: str | None = None) -> NDArray[Any]:
    """Return the array in ``file``, or ``member`` of an archive of arrays.

    Raises:
        ConfigurationError: the file cannot be read, is not an array, is larger than 64 MB, or holds
            objects.
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
                arrays = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                if len(arrays) < len(archive.infolist()):
                    raise _Refused("holds two arrays of one name")
                if member in arrays and arrays[member].compress_type in _PACKED:
                    with archive.open(arrays[member]) as opened_member:
                        return _array(opened_member)
            raise _Refused(f"holds {', '.join(arrays) or 'nothing'}")
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
    except _Refused as error:
        reason = str(error)
    except _DAMAGED:
        reason = "is not a file of numbers"
    raise ConfigurationError(f"{who}: {reason}: expected {expected}")


class _Refused(Exception):  # noqa: N818 - a refusal, with the reason as text
    pass


def _array(opened: BinaryIO | Any) -> NDArray[Any]:
    # zipfile verifies the checksum at the end.
    content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise _Refused(f"holds more than {_MOST_BYTES:,} bytes")
    array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if array.dtype.kind not in "biufc":
        raise ValueError
    return array

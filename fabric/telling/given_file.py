"""Files that somebody has given, opened without waiting for anybody."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

__all__ = ["open_given"]


def open_given(path: Path) -> BufferedReader:
    """Open a file to read its bytes.

    Only what is a file is read: a pipe may never be written to, a device never end, and neither
    says the same again to whoever asks later (a worker, an error's line, a digest).

    Raises:
        OSError: it cannot be opened, or is a pipe, a socket or a device.
    """
    opened = open(path, "rb", opener=_at_once)  # noqa: SIM115 - for the caller
    if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        return opened
    opened.close()
    raise OSError(errno.EINVAL, "it is a pipe or a device", str(path))


def _at_once(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)

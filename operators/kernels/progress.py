"""Progress of an import, in one line of standard error if it is a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from multiprocessing import parent_process
from typing import Final

_CLEARED: Final = "\r\x1b[K"
"""Moves the cursor to the start of the line, and clears the line."""


def progress(text: str) -> None:
    """Show ``text``, which may be empty, in place of the last text; not in workers of a study."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and parent_process() is None:
        columns = shutil.get_terminal_size().columns
        sys.stderr.write(f"{_CLEARED}{text[: columns - 1]}")
        sys.stderr.flush()

"""How much memory this process has at most, by itself and from some moment on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

__all__ = ["begun_anew", "peak_bytes"]

_PROCESS: Final = Path("/proc/self")

_RESET_PEAK: Final = "5"


def peak_bytes() -> int:
    """Return the largest resident size of this process so far.

    That of ``getrusage`` is at least what the process had that started this one.
    """
    status = (_PROCESS / "status").read_text(encoding="ascii")
    (kilobytes,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kilobytes) * 1024


def begun_anew() -> int:
    """Let the peak be what there is now, and return it: earlier tests may have had more."""
    (_PROCESS / "clear_refs").write_text(_RESET_PEAK, encoding="ascii")
    return peak_bytes()

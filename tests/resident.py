from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_PROCESS: Final = Path("/proc/self")

_RESET_PEAK: Final = "5"


def peak_bytes() -> int:
    # getrusage would include the peak of the process that started this one.
    status = (_PROCESS / "status").read_text(encoding="ascii")
    (kilobytes,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kilobytes) * 1024


def reset_peak() -> int:
    """Reset the peak to the present size, and return it."""
    (_PROCESS / "clear_refs").write_text(_RESET_PEAK, encoding="ascii")
    return peak_bytes()

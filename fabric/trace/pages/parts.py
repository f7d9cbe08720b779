"""What pages are put together from: styles, scripts and frames, files beside this one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["part"]

_FOLDER: Final = Path(__file__).parent


def part(name: str) -> str:
    """Return what stands in a file of this folder."""
    return (_FOLDER / name).read_text(encoding="utf-8")

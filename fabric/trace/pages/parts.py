"""What pages are put together from: styles, scripts and frames, files beside this one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["filled", "head", "part"]

_FOLDER: Final = Path(__file__).parent
_POLICY: Final = "default-src 'none'; "


def part(name: str, folder: Path = _FOLDER) -> str:
    """Return what stands in a file of this folder, or of another room's."""
    return (folder / name).read_text(encoding="utf-8")


def filled(frame: str, parts: Mapping[str, str]) -> str:
    """Return a frame with its ``{{parts}}``."""
    return re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], frame)


def head(title: str, style: str, allowed: str) -> str:
    """Return what a page begins with, up to its body.

    Args:
        title: escaped.
        style: of the page.
        allowed: what its policy lets it do; nothing is loaded whatever that is.
    """
    told = {"title": title, "style": style, "policy": _POLICY + allowed}
    return filled(part("head.html"), told).rstrip()

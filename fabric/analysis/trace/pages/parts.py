"""Parts of HTML pages: styles, scripts, frames, and packed data.

Figures are JSON, and columns of whole numbers are compressed together. The JSON is first, after its
length in four bytes. Each column follows as all lowest bytes, then all next bytes: that compresses
a third better, and browsers can decode it without libraries.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from fabric.messages.text import JsonObject

_FOLDER: Final = Path(__file__).parent

_POLICY: Final = "default-src 'none'; "

Columns = Mapping[str, np.ndarray]
"""Columns of non-negative integers by name."""

_LEVEL: Final = 6
"""Level 9 takes six times as long and saves 2 percent."""


def part(name: str, folder: Path = _FOLDER) -> str:
    """Return the text of a file in ``folder``, by default the folder of pages."""
    return (folder / name).read_text(encoding="utf-8")


def filled(frame: str, parts: Mapping[str, str]) -> str:
    """Return ``frame`` with ``parts`` in place of their names, such as ``{{head}}``."""
    return re.sub(r"{{(\w+)}}", lambda name: parts[name[1]], frame)


def head(title: str, style: str, allowed: str) -> str:
    """Return the start of a page, up to its body.

    ``title`` is escaped, and ``allowed`` is added to a policy that loads nothing.
    """
    parts = {"title": title, "style": style, "policy": _POLICY + allowed}
    return filled(part("head.html"), parts).rstrip()


def packed(figures: JsonObject, columns: Columns) -> str:
    """Return figures and columns as base64, which HTML does not need to escape."""
    planes = {name: _planes(values) for name, values in columns.items()}
    about = {name: {"count": len(columns[name]), "bytes": len(p)} for name, p in planes.items()}
    # ASCII: surrogates, as in a path that is not UTF-8, are written as escapes.
    head = json.dumps(figures | {"columns": about}, separators=(",", ":")).encode("ascii")
    parts = [len(head).to_bytes(4, "little"), head, *map(bytes, planes.values())]
    return base64.b64encode(zlib.compress(b"".join(parts), _LEVEL)).decode("ascii")


def compressed(columns: Columns) -> int:
    """Return the number of characters that the columns take in a page."""
    raw = b"".join(bytes(_planes(values)) for values in columns.values())
    return len(zlib.compress(raw, _LEVEL)) * 4 // 3


def _planes(values: np.ndarray) -> np.ndarray:
    most = int(values.max(initial=0))
    size = max(1, -(-most.bit_length() // 8))
    numbers = np.ascontiguousarray(values, "<i8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(numbers[:, :size].T)

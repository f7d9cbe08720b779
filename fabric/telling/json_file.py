"""Objects of JSON in the folder of a run, which may have come from anywhere: read within limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from fabric.telling.given_file import open_given
from fabric.telling.plain import JsonObject

__all__ = ["limited", "read_json"]

_MOST_BYTES: Final = 128_000_000


def read_json(path: Path) -> JsonObject:
    """Return the object in a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no object of JSON, or is larger or deeper than what a run writes.
    """
    try:
        found = json.loads(limited(path))
    except RecursionError:
        raise ValueError("its lists and objects are too deep") from None
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found


def limited(path: Path) -> bytes:
    """Return what is in a file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is larger than what a run writes.
    """
    with open_given(path) as opened:
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
    return content

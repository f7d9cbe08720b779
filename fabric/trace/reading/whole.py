"""Whether the files beside a trace's tables are as a run writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fabric.telling.plain import JsonObject

__all__ = ["is_number", "is_whole"]

_NUMBERS: Final = 1 << 63
"""None of the database's whole numbers is larger."""


def is_whole(meta: JsonObject) -> bool:
    """Whether the traced cycles and the off-chip memory of ``meta.json`` can be read."""
    window, memory = meta.get("window"), meta.get("off_chip", {})
    if not isinstance(memory, dict) or not is_number(memory.get("request_bytes", 0)):
        return False
    return window is None or (
        isinstance(window, list) and len(window) == 2 and all(map(is_number, window))
    )


def is_number(found: object) -> bool:
    """Whether ``found`` is a number of cycles or bytes that the database can hold."""
    return isinstance(found, int) and 0 <= found < _NUMBERS

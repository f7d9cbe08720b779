"""The words and colours for what becomes of the bandwidth of a memory that counts."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from fabric.telling.causes import Cause

__all__ = ["BusUse"]


class BusUse(StrEnum):
    """Under which a cycle of a data bus is counted; spelled as the fields of ``BusCycles``.

    Attributes:
        label: the word for it in tables, legends and tracks.
        colour: of what is drawn of it.
        meaning: for people.
    """

    label: str
    colour: str
    meaning: str

    DATA = "data", "data", "#12808f", "carried data"
    REFRESH = "refresh", "refresh", "#7d6b5d", "rows were being refreshed"
    TURNAROUND = (
        "turnaround", "turnaround", "#7c8a00", "turned between reading and writing",
    )  # fmt: skip
    WINDOW = (
        "window", "window full", "#e8641b",
        "requests waited outside of a full window, and none in it could go",
    )  # fmt: skip
    CONFLICT = (
        "conflict", "rows and commands", "#8a4fbf",
        "requests waited, all of them in the window, for rows and command slots",
    )  # fmt: skip
    IDLE = Cause.IDLE.value, Cause.IDLE.label, Cause.IDLE.colour, "no request waited for a command"

    def __new__(cls, spelling: str, label: str = "", colour: str = "", meaning: str = "") -> Self:
        """Make the member ``spelling``."""
        use = str.__new__(cls, spelling)
        use._value_ = spelling
        use.label, use.colour, use.meaning = label, colour, meaning
        return use

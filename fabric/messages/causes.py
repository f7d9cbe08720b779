"""Words and colours of causes, waits and uses of bandwidth, for all reports and exports."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, Self, TypeAlias

Peer: TypeAlias = Literal["producer", "consumer", "memory", ""]


class _Word(StrEnum):
    """A word with attributes.

    The parameters of ``__init__`` have defaults, so that type checkers accept ``Cause(spelling)``.
    """

    def __new__(cls, spelling: str, *_: object) -> Self:
        word = str.__new__(cls, spelling)
        word._value_ = spelling
        return word


class Cause(_Word):
    """The reason why a cycle of a unit passed, spelled as in JSON, in SQL and in columns.

    Attributes:
        meaning: the description of its column.
        peer: ``producer``, ``consumer`` or ``memory``, for which the unit waits.
        awaits: the event that ends the wait.
        label: the word in tables, legends and tracks.
        column: the name of its counter.
    """

    BUSY = "busy", "#3095d9", "charged for work"
    EMPTY = (
        "empty", "#c77f19", "waited for an element or the end of a stream",
        "producer", "an element",
    )  # fmt: skip
    FULL = "full", "#a94780", "waited for a reader to take an element", "consumer", "a slot"
    CREDIT = (
        "credit", "#6d31d6", "waited for credits on their way back",
        "consumer", "a credit",
    )  # fmt: skip
    HBM = "hbm", "#2d196e", "waited for the HBM", "memory", "the HBM", "HBM"
    CAPACITY = (
        "capacity", "#419d65", "waited for on-chip capacity", "memory", "on-chip capacity",
    )  # fmt: skip
    IDLE = (
        "idle", "#e4e8ec",
        "after the unit's last cycle, up to the end of the run",
    )  # fmt: skip

    def __init__(
        self,
        spelling: str,
        colour: str = "",
        meaning: str = "",
        peer: Peer = "",
        awaits: str = "",
        label: str = "",
    ) -> None:
        self.colour: Final = colour
        self.meaning: Final = meaning
        self.peer: Final = peer
        self.awaits: Final = awaits
        self.label: Final = label or spelling
        self.column: Final = f"{spelling}_cycles"


WAITS: Final = (Cause.EMPTY, Cause.FULL, Cause.HBM, Cause.CAPACITY)
"""Causes of the waits in a trace; a wait for a slot includes the wait for its credit."""

MEMORIES: Final = tuple(cause for cause in WAITS if cause.peer == "memory")
"""Causes of waits for a memory, not for another unit."""

COUNTED: Final = (
    Cause.BUSY, Cause.EMPTY, Cause.FULL, Cause.CREDIT, Cause.HBM, Cause.CAPACITY,
)  # fmt: skip
"""Causes that move a unit's clock."""

SHOWN: Final = (Cause.BUSY, *WAITS, Cause.IDLE)
"""Causes that pictures distinguish; there, ``FULL`` includes ``CREDIT``."""

STUCK: Final = "#b00020"
"""The colour of units that never continue, and of nothing else."""


class Operation(_Word):
    """The operation of a blocked unit, spelled as in JSON and in SQL.

    Attributes:
        cause: the cause of the wait; None if the cause varies, or if the unit does not wait.
        label: the word in the table of a deadlock.
    """

    RECEIVE = "receive", Cause.EMPTY, "RECV"
    SEND = "send", Cause.FULL, "SEND"
    REACH = "reach", None, "TURN"
    OFF_CHIP = "off-chip", Cause.HBM, "BURST"
    CAPACITY = "capacity", Cause.CAPACITY, "ALLOC"
    MOVING = "moving"
    CIRCLING = "circling"

    def __init__(self, spelling: str, cause: Cause | None = None, label: str = "") -> None:
        self.cause: Final = cause
        self.label: Final = label or spelling

    @property
    def awaits(self) -> str:
        """The awaited event; a turn if the operation states no cause."""
        return self.cause.awaits if self.cause else "its turn"


PARKED: Final = (
    Operation.RECEIVE, Operation.SEND, Operation.REACH, Operation.OFF_CHIP, Operation.CAPACITY,
)  # fmt: skip
"""Operations at which a unit can be parked; other operations occur in a livelock only."""

OPERATIONS: Final = {parked.cause: parked for parked in PARKED if parked.cause is not None}
"""The operation of a waiting unit, by the cause of the wait."""


class Step(_Word):
    """An operation of a traced unit, spelled as in SQL; ``cause`` is the cause of its wait."""

    RESERVE = "reserve", Cause.FULL
    SEND = "send", Cause.FULL
    SEE = "see", Cause.EMPTY
    TAKE = "take", Cause.EMPTY
    BURST = "burst", Cause.HBM
    ALLOCATE = "allocate", Cause.CAPACITY
    END = "end", Cause.EMPTY
    IDLE = "idle", Cause.EMPTY

    def __init__(self, _: str, cause: Cause = Cause.EMPTY) -> None:
        self.cause: Final = cause


class BusUse(_Word):
    """A use of a cycle of a data bus, spelled as the fields of ``BusCycles``."""

    DATA = "data", "data", "#12808f", "carried data"
    REFRESH = "refresh", "refresh", "#7d6b5d", "rows were being refreshed"
    TURNAROUND = (
        "turnaround", "turnaround", "#7c8a00", "turned between reading and writing",
    )  # fmt: skip
    WINDOW = (
        "window", "window full", "#e8641b",
        "requests waited outside of a full window, and no request in it was ready",
    )  # fmt: skip
    CONFLICT = (
        "conflict", "rows and commands", "#8a4fbf",
        "all waiting requests were in the window, and waited for rows and command slots",
    )  # fmt: skip
    IDLE = Cause.IDLE.value, Cause.IDLE.label, Cause.IDLE.colour, "no request waited for a command"

    def __init__(self, _: str, label: str = "", colour: str = "", meaning: str = "") -> None:
        self.label: Final = label
        self.colour: Final = colour
        self.meaning: Final = meaning

"""How units, channels and roots are called in tables and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.telling.causes import MEMORIES, Cause
from fabric.telling.place import Place

if TYPE_CHECKING:
    from fabric.trace.analysis.roots import Root
    from fabric.trace.reading.reader import RecordedRun

__all__ = ["Names", "percent"]


class Names:
    """The names of one trace.

    Attributes:
        units: by number.
        operators: the class of each unit's operator.
        wired: where each unit was wired.
        places: the same, ``file:line`` with the file's name only.
        channels: by number.
        ends: producer and consumer of each channel, by number.
    """

    def __init__(self, trace: RecordedRun) -> None:
        """Read them."""
        rows = trace.rows("SELECT name, operator, file, line FROM units ORDER BY unit")
        self.units: Final[list[str]] = [name for name, *_ in rows]
        self.wired: Final = [Place(file, line) for *_, file, line in rows]
        self.places: Final = [place.brief for place in self.wired]
        self.operators: Final[list[str]] = [operator for _, operator, *_ in rows]
        rows = trace.rows("SELECT name, producer, consumer FROM channels ORDER BY channel")
        self.channels: Final[list[str]] = [name for name, _, _ in rows]
        self.ends: Final[list[tuple[int, int]]] = [
            (producer, consumer) for _, producer, consumer in rows
        ]

    def peer(self, unit: int, channel: int) -> int:
        """Return the unit at the end of ``channel`` that ``unit`` is not at."""
        producer, consumer = self.ends[channel]
        return producer if consumer == unit else consumer

    def far_end(self, unit: int, channel: int) -> str:
        """Return ``from`` the producer, or ``to`` the consumer: whichever ``unit`` is not."""
        way = "from" if self.ends[channel][1] == unit else "to"
        return f"{way} {self.units[self.peer(unit, channel)]}"

    def root(self, root: Root) -> str:
        """Return what a root is called."""
        if root.kind == "hop":
            return "hops between units"
        if root.kind == "network":
            return "links of the network"
        if root.kind == "untraced":
            return "units that were not traced"
        if root.kind == "open":
            return "waits that had not ended"
        if root.kind == "unit":
            return self.units[root.unit]
        return f"{Cause(root.kind).awaits} for {self.units[root.unit]}"

    def bound(self, root: Root) -> str:
        """Return what a run is bound by, where the unit does not matter."""
        return Cause(root.kind).awaits if root.kind in MEMORIES else self.root(root)


def percent(part: int, whole: int) -> str:
    """Return a share with one decimal."""
    return f"{100 * part / whole:.1f}" if whole else "0.0"

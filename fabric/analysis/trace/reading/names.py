"""Names of units, channels and roots in tables and sentences."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Final

from fabric.analysis.trace.analysis.roots import Root
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.messages.causes import MEMORIES, Cause
from fabric.messages.place import Place
from fabric.messages.text import Family, visible

_ROOTS: Final = {
    "hop": "hops between units",
    "network": "links of the network",
    "untraced": "units that were not traced",
    "open": "waits that had not ended",
}


class Names:
    """The names of one trace.

    Attributes:
        functions: the operator of each unit, with the functions that it applies.
        places: ``file:line``, without the folder.
        streams: the labels of channels in pictures.
        families: families of unit numbers. Each has its own title.
        family: by unit, its family.
        first: by unit, the first unit of its family.
    """

    def __init__(self, trace: RecordedRun) -> None:
        rows = trace.rows("SELECT name, operator, file, line FROM units ORDER BY unit")
        self.units: list[str] = [name for name, *_ in rows]
        self.wired: Final = [Place(file, line) for *_, file, line in rows]
        self.places: Final = [place.brief for place in self.wired]
        self.operators: Final[list[str]] = [operator for _, operator, *_ in rows]
        self.functions: Final = [*map(visible, trace.head.functions)]
        rows = trace.rows("SELECT name, producer, consumer FROM channels ORDER BY channel")
        self.channels: Final[list[str]] = [name for name, _, _ in rows]
        self.ends: Final[list[tuple[int, int]]] = [row[1:] for row in rows]
        self.streams: Final = [*map(visible, trace.head.streams)]
        self.families: Final[list[Family[int]]] = [
            Family(title, tuple(units))
            for title, units in trace.rows(
                "SELECT family, list(unit ORDER BY unit) FROM units GROUP BY ALL ORDER BY min(unit)"
            )
        ]
        of_unit = {unit: family for family in self.families for unit in family.members}
        self.family: Final = [of_unit[unit] for unit in range(len(self.units))]
        self.first: Final = [family.members[0] for family in self.family]

    @cached_property
    def folded(self) -> Names:
        """The names with the title of its family for each unit."""
        folded = copy(self)
        folded.units = [family.title for family in self.family]
        return folded

    def peer(self, unit: int, channel: int) -> int:
        """Return the unit at the other end of ``channel``."""
        producer, consumer = self.ends[channel]
        return producer if consumer == unit else consumer

    def far_end(self, unit: int, channel: int) -> str:
        """Return ``from PRODUCER`` or ``to CONSUMER``: the other end of ``channel``."""
        way = "from" if self.ends[channel][1] == unit else "to"
        return f"{way} {self.units[self.peer(unit, channel)]}"

    def root(self, root: Root) -> str:
        if root.kind in _ROOTS:
            return _ROOTS[root.kind]
        if root.kind == "unit":
            return self.units[root.unit]
        return f"{Cause(root.kind).awaits} for {self.units[root.unit]}"

    def bound(self, root: Root) -> str:
        """Return the name of a root; if it is a memory, without the unit that it serves."""
        return Cause(root.kind).awaits if root.kind in MEMORIES else self.root(root)


def percent(part: int, whole: int) -> str:
    """Return a share with one decimal."""
    return f"{100 * part / whole:.1f}" if whole else "0.0"

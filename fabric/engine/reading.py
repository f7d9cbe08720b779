"""Readings of a unit's clock in a run that is watched: a cycle, and after what it was read."""

from __future__ import annotations

import operator
from typing import Final

from typing_extensions import override

__all__ = ["START", "Reading", "as_cycle"]


class Reading(int):
    """A cycle that is known as a unit's clock, or some cycles after it.

    Attributes:
        order: number of the reading among the unit's operations; -1 for the start of the run.
        later_cycles: from the clock to the cycle.
    """

    order: int
    later_cycles: int

    @classmethod
    def at(cls, cycle: int, order: int, later_cycles: int = 0) -> Reading:
        """Return ``cycle``, so many cycles after the reading ``order``."""
        reading = cls(cycle)
        reading.order = order
        reading.later_cycles = later_cycles
        return reading

    @override
    def __add__(self, cycles: int) -> Reading:
        more = int(cycles)
        return Reading.at(int(self) + more, self.order, self.later_cycles + more)

    @override
    def __sub__(self, cycles: int) -> Reading:
        return self + -cycles

    __radd__ = __add__


START: Final = Reading.at(0, -1)
"""Of no clock: cycle 0."""


def as_cycle(cycle: object) -> int:
    """Return an integer of any kind as one of Python's; a reading stays what it is.

    Raises:
        TypeError: it is no integer.
    """
    return cycle if isinstance(cycle, Reading) else operator.index(cycle)  # type: ignore[arg-type]

"""Readings of a unit's clock in a run that is watched: a cycle, and after what it was read."""

from __future__ import annotations

from typing_extensions import override

__all__ = ["Reading"]


class Reading(int):
    """A cycle that is known as a unit's clock, or some cycles after it.

    Attributes:
        order: number of the reading among the unit's operations.
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

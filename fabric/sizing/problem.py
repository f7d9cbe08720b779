"""What is to be found: a depth for each channel, of least cost, with which records keep limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from fabric.retiming.record import Record

__all__ = ["Depths", "Limit", "Problem", "Slot", "Variable", "with_depth"]

Depths: TypeAlias = tuple[int, ...]
"""One for each variable of a problem, in its order."""


class Slot(NamedTuple):
    """A channel, as far as its cost is concerned.

    Attributes:
        option: what ``--depth`` calls it, ``consumer.input``.
        element_bytes: of one slot.
    """

    option: str
    element_bytes: int


@dataclass(frozen=True)
class Variable:
    """One depth to be found, of one channel or of several that share it.

    Attributes:
        name: the channel's option, or the pattern of those that share it.
        channels: with that depth.
        least: it may have, at least 1; that it is pinned at where ``most`` is the same.
        most: it may have: more than that no record can use.
        is_pinned: somebody has said what it is.
    """

    name: str
    channels: tuple[Slot, ...]
    least: int
    most: int
    is_pinned: bool = False


class Limit(NamedTuple):
    """A record and how long it may take.

    Attributes:
        record: of one run; all records of a problem name their channels alike.
        cycles: it may take; ``retimer.NO_LIMIT`` where it only has to end.
    """

    record: Record
    cycles: int


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be found.

    Attributes:
        variables: in the order of ``Depths``.
        limits: all of them have to be kept.
        cost: of a channel of a number of slots, of so many bytes each; grows with the depth.
    """

    variables: tuple[Variable, ...] = field(repr=False)
    limits: tuple[Limit, ...] = field(repr=False)
    cost: Callable[[int, int], int]

    def cost_of(self, depths: Sequence[int]) -> int:
        """Return the cost of all channels together."""
        return sum(map(self.cost_at, range(len(depths)), depths))

    def cost_at(self, number: int, depth: int) -> int:
        """Return the cost of the channels of variable ``number``."""
        channels = self.variables[number].channels
        return sum(self.cost(depth, channel.element_bytes) for channel in channels)

    @property
    def least(self) -> Depths:
        """The depths below which none may be."""
        return tuple(variable.least for variable in self.variables)

    @property
    def most(self) -> Depths:
        """The depths beyond which none needs to be."""
        return tuple(variable.most for variable in self.variables)

    def options(self, depths: Sequence[int]) -> Mapping[str, int]:
        """Return the depth of every channel, by its option."""
        return {
            channel.option: depth
            for variable, depth in zip(self.variables, depths, strict=True)
            for channel in variable.channels
        }


def with_depth(depths: Depths, number: int, depth: int) -> Depths:
    """Return ``depths`` with another one for variable ``number``."""
    return (*depths[:number], depth, *depths[number + 1 :])

"""The problem of least-cost depths under cycle limits, and an oracle that times given depths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from fabric.timing.engine.tables import Counters
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import Retimer

Depths: TypeAlias = tuple[int, ...]
"""A depth for each variable of a problem, in order."""

UNBOUNDED: Final = 1 << 40
"""A depth that no run reaches."""

Cut = frozenset[int]
"""Numbers of variables: at least one has to be deeper. Empty if no depths help."""


class Slot(NamedTuple):
    """A channel and its element size; ``option`` names the channel: ``consumer.input``."""

    option: str
    element_bytes: int


@dataclass(frozen=True)
class Variable:
    """An unknown depth, of one channel or of several that share it."""

    name: str  # the channel's option, or the pattern of the channels that share the depth
    channels: tuple[Slot, ...]
    least: int  # at least 1; equals ``most`` if pinned
    most: int  # the greatest depth that a record can use
    is_pinned: bool = False


class Limit(NamedTuple):
    """A record and its limit of cycles; ``retimer.NO_LIMIT`` if the run only has to end."""

    record: Record
    cycles: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Unknown depths and their cost; all limits must be kept."""

    variables: tuple[Variable, ...] = field(repr=False)  # in the order of ``Depths``
    limits: tuple[Limit, ...] = field(repr=False)
    cost: Callable[[int, int], int]  # of a channel, from its depth and the bytes of an element

    def cost_of(self, depths: Sequence[int]) -> int:
        return sum(map(self.cost_at, range(len(depths)), depths))

    def cost_at(self, number: int, depth: int) -> int:
        channels = self.variables[number].channels
        return sum(self.cost(depth, channel.element_bytes) for channel in channels)

    @cached_property
    def least(self) -> Depths:
        return tuple(variable.least for variable in self.variables)

    @cached_property
    def most(self) -> Depths:
        return tuple(variable.most for variable in self.variables)

    def options(self, depths: Sequence[int]) -> Mapping[str, int]:
        """Return the depth of every channel, by its option."""
        return {
            channel.option: depth
            for variable, depth in zip(self.variables, depths, strict=True)
            for channel in variable.channels
        }


def with_depth(depths: Depths, number: int, depth: int) -> Depths:
    return (*depths[:number], depth, *depths[number + 1 :])


class Oracle:
    """Times the records of a problem, each vector of depths once.

    Depths change only the timing of a record, so shallower depths fail if deeper ones do. If depths
    violate a cut, so do all depths that are at most as deep in the cut's variables.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem: Final = problem
        self.evaluations = 0
        self._known: Final[dict[bytes, Cut | None]] = {}
        self._retimers: Final = [
            (Retimer(record), limit, variable_of(problem, record))
            for record, limit in problem.limits
        ]

    def cut(self, depths: Depths) -> Cut | None:
        """Return a cut that ``depths`` violate; None if all limits are kept."""
        vector = np.array(depths, np.int64)
        # Digests, because thousands of vectors of thousands of channels would fill the memory.
        digest = blake2b(vector.tobytes(), digest_size=16).digest()
        if digest not in self._known:
            self._known[digest] = self._cut(vector)
        return self._known[digest]

    def keeps(self, depths: Depths) -> bool:
        return self.cut(depths) is None

    def cycles(self, depths: Depths) -> tuple[int | None, ...]:
        """Return the cycles of each record; None for a deadlock."""
        vector = np.array(depths, np.int64)
        return tuple(
            retimer.time(vector[variable_of]).cycles for retimer, _, variable_of in self._retimers
        )

    def _cut(self, vector: Counters) -> Cut | None:
        self.evaluations += 1
        for retimer, limit, variable_of in self._retimers:
            retimed = retimer.time(vector[variable_of], limit)
            if retimed.cycles is None:
                blamed = list(retimer.blamed(retimed))
                return frozenset(variable_of[blamed].tolist())
        return None


def variable_of(problem: Problem, record: Record) -> Counters:
    """Return the number of the variable of each channel of ``record``."""
    number = {
        channel.option: at
        for at, variable in enumerate(problem.variables)
        for channel in variable.channels
    }
    return np.array([number[channel.option] for channel in record.channels], np.int64)


@dataclass(frozen=True)
class Found:
    """Depths that keep all limits, their cost and its lower bound, and the evaluations so far."""

    depths: Depths = field(repr=False)
    cost: int
    lower_bound: int
    evaluations: int


class InfeasibleError(Exception):
    """Not even the greatest depths keep all limits."""

"""What is to be found: depths of least cost that keep limits; and what a method has found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import counted
from fabric.timing.engine.machine_code import Counters
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import Retimer

__all__ = [
    "Cut",
    "Depths",
    "Found",
    "InfeasibleError",
    "Limit",
    "Oracle",
    "Problem",
    "Slot",
    "Variable",
    "infeasible",
    "variable_of",
    "with_depth",
]

Depths: TypeAlias = tuple[int, ...]
"""One for each variable of a problem, in its order."""

Cut = frozenset[int]
"""Variables of which at least one has to be deeper; none where no depths help."""


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


class Oracle:
    """Times the records of a problem again, each vector of depths once.

    In the records all that the depths decide is when, so where some depths fail, shallower ones
    do; and where they fail by a cut, so do all that are as shallow in the variables of the cut.

    Attributes:
        problem: which.
        evaluations: vectors that were tried.
    """

    def __init__(self, problem: Problem) -> None:
        """Get ready to time its records."""
        self.problem: Final = problem
        self.evaluations = 0
        self._known: Final[dict[bytes, Cut | None]] = {}
        self._retimers: Final = [
            (Retimer(record), limit, variable_of(problem, record))
            for record, limit in problem.limits
        ]

    def cut(self, depths: Depths) -> Cut | None:
        """Return why ``depths`` fail; None where all limits are kept."""
        vector = np.array(depths, np.int64)
        # Of thousands of vectors of thousands of channels, which would fill the memory.
        digest = blake2b(vector.tobytes(), digest_size=16).digest()
        if digest not in self._known:
            self._known[digest] = self._cut(vector)
        return self._known[digest]

    def keeps(self, depths: Depths) -> bool:
        """Whether all limits are kept."""
        return self.cut(depths) is None

    def cycles(self, depths: Depths) -> tuple[int | None, ...]:
        """Return how long each record takes; None where its units block each other."""
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
    """Depths that keep all limits of a problem.

    Attributes:
        depths: which.
        cost: of them.
        lower_bound: no depths that keep the limits cost less.
        evaluations: vectors of depths that the oracle had tried by then.
    """

    depths: Depths = field(repr=False)
    cost: int
    lower_bound: int
    evaluations: int

    @property
    def optimal(self) -> bool:
        """Whether it is known that no depths that keep the limits cost less."""
        return self.cost <= self.lower_bound


class InfeasibleError(ConfigurationError):
    """No depths keep all limits of a problem.

    Attributes:
        cycles: of each record with all depths at their most, which is the nearest limit that can
            be kept; None where its units block each other even so.
        held: numbers of variables whose most is not enough, if that is the reason.
    """

    def __init__(self, message: str, cycles: Sequence[int | None], held: Sequence[int]) -> None:
        """Keep the sentence, and what is in it."""
        super().__init__(message)
        self.cycles = tuple(cycles)
        self.held = tuple(held)


def infeasible(oracle: Oracle) -> InfeasibleError:
    """Return what there is to say of a problem that even the most depths do not solve."""
    problem = oracle.problem
    cycles = oracle.cycles(problem.most)
    held = sorted(oracle.cut(problem.most) or ())
    failures = ", ".join(_failures(problem, cycles))
    message = f"no depths keep the limits: with all at their most, {failures}"
    if held:
        depths = [f"{problem.variables[each].name} at {problem.most[each]}" for each in held]
        message += f"; one of these is too shallow and may not be deeper: {', '.join(depths)}"
    return InfeasibleError(message, cycles, held)


def _failures(problem: Problem, cycles: Sequence[int | None]) -> list[str]:
    """Say of each record that misses its limit what it does instead."""
    found = []
    for (record, limit), taken in zip(problem.limits, cycles, strict=True):
        if taken is None:
            found.append(f"{record.program} does not end")
        elif taken > limit:
            found.append(
                f"{record.program} takes {counted(taken, 'cycle')}: expected at most {limit:,}"
            )
    return found

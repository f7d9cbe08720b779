"""The problem of sizing: depths of least cost that keep limits, and an oracle that times them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from typing_extensions import override

from fabric.explore.sizing.running import Case, Ran
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import counted
from fabric.timing.engine.tables import Counters
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import NO_LIMIT, Retimer

Depths: TypeAlias = tuple[int, ...]
"""A depth for each variable of a problem, in order."""

Cut = frozenset[int]
"""Variables, at least one of which has to be deeper; empty if no depths help."""

_EXPECTED = "deadlock-free, same-cycles, slowdown=X with X at least 1, or cycles=N"


class Slot(NamedTuple):
    """A channel and the size of its elements; ``option`` is ``consumer.input``."""

    option: str
    element_bytes: int


@dataclass(frozen=True)
class Variable:
    """An unknown depth, of one channel or of several that share it.

    Attributes:
        name: the channel's option, or the pattern of the channels that share it.
        least: least depth, at least 1; equals ``most`` if pinned.
        most: greatest depth that a record can use.
    """

    name: str
    channels: tuple[Slot, ...]
    least: int
    most: int
    is_pinned: bool = False


class Limit(NamedTuple):
    """A record and its limit of cycles; ``retimer.NO_LIMIT`` if it only has to end."""

    record: Record
    cycles: int


@dataclass(frozen=True, eq=False)
class Problem:
    """A sizing problem; all limits must be kept.

    Attributes:
        variables: in the order of ``Depths``.
        cost: cost of a channel from its depth and its element's bytes; grows with the depth.
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

    @cached_property
    def least(self) -> Depths:
        """The least depth of each variable."""
        return tuple(variable.least for variable in self.variables)

    @cached_property
    def most(self) -> Depths:
        """The greatest depth of each variable."""
        return tuple(variable.most for variable in self.variables)

    def options(self, depths: Sequence[int]) -> Mapping[str, int]:
        """Return the depth of every channel, by its option."""
        return {
            channel.option: depth
            for variable, depth in zip(self.variables, depths, strict=True)
            for channel in variable.channels
        }


def with_depth(depths: Depths, number: int, depth: int) -> Depths:
    """Return ``depths`` with another depth of variable ``number``."""
    return (*depths[:number], depth, *depths[number + 1 :])


class Oracle:
    """Times the records of a problem, each vector of depths once.

    Depths change only the timing of a record, so shallower depths fail if deeper ones do. If depths
    fail because of a cut, all depths that are at most equal in the cut's variables fail.
    """

    def __init__(self, problem: Problem) -> None:
        """Prepare to time the records."""
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
        """Return whether all limits are kept."""
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


class InfeasibleError(ConfigurationError):
    """No depths keep all limits.

    Attributes:
        cycles: of each record at the greatest depths; None for a deadlock.
        held: variables of a cut at the greatest depths, at least one of which is too shallow.
    """

    def __init__(self, message: str, cycles: Sequence[int | None], held: Sequence[int]) -> None:
        """Store the message and its values."""
        super().__init__(message)
        self.cycles = tuple(cycles)
        self.held = tuple(held)


def infeasible(oracle: Oracle) -> InfeasibleError:
    """Return the error of a problem that the greatest depths do not solve."""
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
    failures = []
    for (record, limit), taken in zip(problem.limits, cycles, strict=True):
        if taken is None:
            failures.append(f"{record.program} does not end")
        elif taken > limit:
            failures.append(
                f"{record.program} takes {counted(taken, 'cycle')}: expected at most {limit:,}"
            )
    return failures


@dataclass(frozen=True)
class Goal:
    """A goal: the run ends, or ends within a number of cycles.

    Attributes:
        bound: the factor of ``slowdown``, or the number of cycles of ``cycles``.
    """

    kind: Literal["deadlock-free", "same-cycles", "slowdown", "cycles"]
    bound: Fraction = Fraction(1)

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read a goal as it is written on the command line."""
        if text == "deadlock-free":
            return cls("deadlock-free")
        if text == "same-cycles":
            return cls("same-cycles")
        kind, _, number = text.partition("=")
        try:
            bound = Fraction(number)
        except (ValueError, ZeroDivisionError):
            bound = Fraction(0)
        if kind == "slowdown" and bound >= 1:
            return cls("slowdown", bound)
        if kind == "cycles" and bound >= 1 and bound.denominator == 1:
            return cls("cycles", bound)
        raise ConfigurationError(f"--goal {text}: expected {_EXPECTED}")

    def limit_cycles(self, unbounded_cycles: int) -> int:
        """Return the limit of a run from its cycles with unbounded channels."""
        if self.kind == "deadlock-free":
            return NO_LIMIT
        cycles = self.bound if self.kind == "cycles" else unbounded_cycles * self.bound
        return min(int(cycles), NO_LIMIT)

    @override
    def __str__(self) -> str:
        if self.kind in ("deadlock-free", "same-cycles"):
            return self.kind
        number = self.bound.numerator if self.bound.denominator == 1 else float(self.bound)
        return f"{self.kind}={number}"


@dataclass(frozen=True, eq=False)
class Asked:
    """The task of sizing: depths that keep ``goal`` for all ``cases``."""

    cases: tuple[Case, ...]
    goal: Goal
    variables: tuple[Variable, ...] = field(repr=False)
    cost: Callable[[int, int], int]

    @property
    def limits(self) -> tuple[int, ...]:
        """Limit of cycles for each input."""
        return tuple(self.goal.limit_cycles(case.unbounded.cycles) for case in self.cases)

    @property
    def unbounded(self) -> tuple[Record, ...]:
        """The records of the runs without limits."""
        return tuple(case.unbounded.record for case in self.cases)

    def problem(self, records: Sequence[Record]) -> Problem:
        """Return the problem with a record for each input."""
        limits = tuple(map(Limit, records, self.limits))
        return Problem(self.variables, limits, self.cost)

    def run(self, depths: Depths) -> tuple[Ran | None, ...]:
        """Run all inputs with ``depths``."""
        options = self.problem(self.unbounded).options(depths)
        return tuple(case.run(options) for case in self.cases)

    def known(self, depths: Depths) -> tuple[Ran | None, ...] | None:
        """Return runs of all inputs with ``depths`` where there were; else None."""
        options = self.problem(self.unbounded).options(depths)
        if not all(case.has_run(options) for case in self.cases):
            return None
        return self.run(depths)

    def keeps(self, ran: Sequence[Ran | None]) -> bool:
        """Whether all inputs keep the goal in runs of them."""
        return all(
            each is not None and each.cycles <= limit
            for each, limit in zip(ran, self.limits, strict=True)
        )

    @property
    def runs(self) -> int:
        """How many there were, of all inputs."""
        return sum(case.runs for case in self.cases)

    @property
    def now(self) -> Depths:
        """The depths of the program as it is wired, as far as they may be."""
        depths = self.cases[0].depths
        return tuple(
            min(max(*(depths[slot.option] for slot in each.channels), each.least), each.most)
            for each in self.variables
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the records do not tell all, in sentences."""
        sentences = (each for record in self.unbounded for each in record.arbitrated)
        return tuple(dict.fromkeys(sentences))

    @property
    def is_timeless(self) -> bool:
        """Whether the runs only have to end."""
        return all(limit == NO_LIMIT for limit in self.limits)

    @property
    def can_prove(self) -> bool:
        """Whether the records tell whether the goal is kept, with no doubt."""
        if self.is_timeless:
            return all(record.orders_are_fixed for record in self.unbounded)
        return all(record.determinate for record in self.unbounded)

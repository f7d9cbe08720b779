"""The goal of sizing, and the task of sizing: the goal, the inputs and the channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from typing_extensions import override

from fabric.analysis.depths.problem import Depths, Limit, Problem, Variable
from fabric.explore.sizing.running import Case, Ran
from fabric.messages.errors import ConfigurationError
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import NO_LIMIT

Cost: TypeAlias = Callable[[int, int], int]
"""The cost of a channel by its slots and the bytes of an element."""

_EXPECTED = "deadlock-free, same-cycles, slowdown=X with X at least 1, or cycles=N"


@dataclass(frozen=True)
class Goal:
    """A goal: the run ends, or ends within a number of cycles.

    Attributes:
        bound: the factor X of ``slowdown=X``, or the cycles N of ``cycles=N``.
    """

    kind: Literal["deadlock-free", "same-cycles", "slowdown", "cycles"]
    bound: Fraction = Fraction(1)

    @classmethod
    def parse(cls, text: str) -> Goal:
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
        """Return the limit on a run's cycles, from its cycles with unbounded channels."""
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
class Task:
    """The task of sizing: depths that keep ``goal`` for all ``cases``."""

    cases: tuple[Case, ...]
    goal: Goal
    variables: tuple[Variable, ...] = field(repr=False)
    cost: Cost

    @property
    def limits(self) -> tuple[int, ...]:
        return tuple(self.goal.limit_cycles(case.unbounded.cycles) for case in self.cases)

    @property
    def unbounded(self) -> tuple[Record, ...]:
        """The records of the runs with unbounded channels."""
        return tuple(case.unbounded.record for case in self.cases)

    def problem(self, records: Sequence[Record]) -> Problem:
        limits = tuple(map(Limit, records, self.limits))
        return Problem(self.variables, limits, self.cost)

    def run(self, depths: Depths) -> tuple[Ran | None, ...]:
        options = self.problem(self.unbounded).options(depths)
        return tuple(case.run(options) for case in self.cases)

    def known_cycles(self, depths: Depths) -> tuple[int | None, ...] | None:
        """Return the cycles of all inputs with ``depths``; None if one has not run."""
        options = self.problem(self.unbounded).options(depths)
        return self.cycles(depths) if all(case.has_run(options) for case in self.cases) else None

    def cycles(self, depths: Depths) -> tuple[int | None, ...]:
        return tuple(None if ran is None else ran.cycles for ran in self.run(depths))

    def keeps(self, ran: Sequence[Ran | None]) -> bool:
        return all(
            each is not None and each.cycles <= limit
            for each, limit in zip(ran, self.limits, strict=True)
        )

    @property
    def runs(self) -> int:
        """Number of runs, of all inputs together."""
        return sum(case.runs for case in self.cases)

    @property
    def wired_depths(self) -> Depths:
        """The depths of the wired program, clipped to the range of each variable."""
        depths = self.cases[0].depths
        return tuple(
            min(max(*(depths[slot.option] for slot in each.channels), each.least), each.most)
            for each in self.variables
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for each order of events that the records do not determine."""
        sentences = (each for record in self.unbounded for each in record.arbitrated)
        return tuple(dict.fromkeys(sentences))

    @property
    def can_prove(self) -> bool:
        """Whether the records prove that depths keep the goal."""
        if all(limit == NO_LIMIT for limit in self.limits):  # the runs only have to end
            return all(record.orders_are_fixed for record in self.unbounded)
        return all(record.determinate for record in self.unbounded)

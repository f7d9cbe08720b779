"""A question to sizing: which channels, which goal, and the runs that were made for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fabric.retiming.record import Record
from fabric.retiming.retimer import NO_LIMIT
from fabric.sizing.case import Case
from fabric.sizing.goal import Goal
from fabric.sizing.problem import Depths, Limit, Problem, Variable
from fabric.sizing.running import Ran

__all__ = ["Asked"]


@dataclass(frozen=True, eq=False)
class Asked:
    """Depths to be found for some inputs.

    Attributes:
        cases: the inputs.
        goal: what the depths keep for each of them.
        variables: depths to be found.
        cost: of a channel of so many slots of so many bytes.
    """

    cases: tuple[Case, ...]
    goal: Goal
    variables: tuple[Variable, ...] = field(repr=False)
    cost: Callable[[int, int], int]

    @property
    def limits(self) -> tuple[int, ...]:
        """How long each input may take."""
        return tuple(self.goal.limit_cycles(case.unbounded.cycles) for case in self.cases)

    @property
    def unbounded(self) -> tuple[Record, ...]:
        """The records of the runs without limits."""
        return tuple(case.unbounded.record for case in self.cases)

    def problem(self, records: Sequence[Record]) -> Problem:
        """Return what is to be found in ``records``, one of each input."""
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

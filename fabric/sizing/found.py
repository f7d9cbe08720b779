"""What a method has found: depths that keep all limits, and what is known of cheaper ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fabric.sizing.oracle import Oracle
from fabric.sizing.problem import Depths, Problem
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import counted

__all__ = ["Found", "InfeasibleError", "infeasible"]


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

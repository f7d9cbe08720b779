"""Whether depths for some inputs back to back are those for ever more of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import NamedTuple

from typing_extensions import override

from fabric.telling.wording import counted

__all__ = ["Answer", "Settled", "settled"]


class Answer(NamedTuple):
    """What sizing has found for so many inputs back to back.

    Attributes:
        depths: of channels, by option.
        cycles: of a run of all of these inputs with them, for each program that they serve; None
            where it deadlocks.
    """

    depths: Mapping[str, int]
    cycles: tuple[int | None, ...]


@dataclass(frozen=True)
class Settled:
    """Whether an answer is that for ever more inputs, as far as can be seen.

    Attributes:
        repeats: inputs that the last answer is for.
        since: from so many inputs on depths are the last ones, and each input more takes as many
            cycles; None where they have not done so twice in a row.
        period_cycles: that the last input took more, for each program; None with one input, or
            where a run deadlocks.
        depths_stay: the last two answers have the same depths.
    """

    repeats: int
    since: int | None
    period_cycles: tuple[int, ...] | None
    depths_stay: bool

    @override
    def __str__(self) -> str:
        if self.since is not None:
            periods = " and ".join(counted(cycles, "cycle") for cycles in self.period_cycles or ())
            return f"settled from {counted(self.since, 'input')} on: {periods} for each one more"
        if self.repeats < _LEAST:
            return (
                f"not known to have settled by {counted(self.repeats, 'input')}: "
                f"{_LEAST} would tell"
            )
        still = "the depths" if not self.depths_stay else "the cycles for one input more"
        return f"not settled by {counted(self.repeats, 'input')}: {still} still change"


_LEAST = 3
"""Inputs with which two periods can be compared."""


def settled(answers: Sequence[Answer]) -> Settled:
    """Return from how many inputs on nothing changes.

    Args:
        answers: for 1, 2, 3 inputs and so on.
    """
    count, last = len(answers), answers[-1]
    periods = list(starmap(_period, pairwise(answers)))
    since = count
    while since > 1:
        before = answers[since - 2]
        if before.depths != last.depths or periods[since - 2] != periods[-1]:
            break
        since -= 1
    period = periods[-1] if periods else None
    return Settled(
        repeats=count,
        since=since if period is not None and count - since >= _LEAST - 1 else None,
        period_cycles=period,
        depths_stay=count > 1 and answers[-2].depths == last.depths,
    )


def _period(one: Answer, other: Answer) -> tuple[int, ...] | None:
    """Return the cycles that ``other``, with one input more, takes longer than ``one``."""
    found = []
    for before, after in zip(one.cycles, other.cycles, strict=True):
        if before is None or after is None:
            return None
        found.append(after - before)
    return tuple(found)

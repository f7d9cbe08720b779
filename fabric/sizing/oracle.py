"""Whether depths keep the limits of a problem; and if not, what would have to be deeper."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import numpy as np

from fabric.engine.machine_code import Counters
from fabric.retiming.record import Record
from fabric.retiming.retimer import Retimer
from fabric.sizing.problem import Depths, Problem

__all__ = ["Cut", "Oracle", "variable_of"]

Cut = frozenset[int]
"""Variables of which at least one has to be deeper; none where no depths help."""


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

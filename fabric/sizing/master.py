"""The cheapest depths that escape all cuts known so far: an integer program for HiGHS."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from fabric.sizing.cuts import Escapes
from fabric.sizing.problem import Depths, Problem
from fabric.telling.errors import ConfigurationError

__all__ = ["Master"]

_NODES: Final = 10_000
"""Of the tree that is searched for one answer. Not seconds: an answer does not depend on the
machine."""

_ROUNDING: Final = 1e-6
"""What HiGHS may be wrong by, in greatest common divisors of the costs."""


class Master:
    """Knows costs and cuts, and no records.

    There is a binary for each depth of a variable that some cut names: whether it is that deep.
    """

    def __init__(self, problem: Problem, lower: Depths) -> None:
        """Know no cuts.

        Raises:
            ConfigurationError: the extra is not installed.
        """
        if importlib.util.find_spec("scipy") is None:
            raise ConfigurationError(
                "exact sizes need scipy, which is not installed: expected the extra sizing, as "
                "in pip install 'step-fabric[sizing]'"
            )
        self._problem: Final = problem
        self._lower: Final = lower
        self._cuts: Final[dict[frozenset[tuple[int, int]], None]] = {}

    def __len__(self) -> int:
        """How many cuts are known."""
        return len(self._cuts)

    def add(self, escapes: Escapes) -> None:
        """Know one more cut, or the same as before."""
        self._cuts[frozenset(escapes.items())] = None

    def solve(self) -> tuple[Depths | None, int]:
        """Return the cheapest depths that escape all cuts, and what any such depths cost at least.

        None where too many would have to be looked at to find any.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        columns = sorted({each for cut in self._cuts for each in cut})
        least_cost = self._problem.cost_of(self._lower)
        if not columns:
            return self._lower, least_cost
        prices = list(self._prices(columns))
        unit = math.gcd(*prices) or 1
        rows, least = self._rows(columns)
        data = [factor for row in rows for factor in row.values()]
        indices = [column for row in rows for column in row]
        ends = np.cumsum([0, *map(len, rows)])
        matrix = csr_array((data, indices, ends), shape=(len(rows), len(columns)))
        solved = milp(
            [price // unit for price in prices],
            integrality=np.ones(len(columns)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, least, np.inf),
            options={"mip_rel_gap": 0, "node_limit": _NODES},
        )
        bound = least_cost
        if solved.mip_dual_bound is not None:
            bound += unit * max(0, math.ceil(solved.mip_dual_bound - _ROUNDING))
        if solved.x is None:
            return None, bound
        depths = list(self._lower)
        for (number, depth), is_so in zip(columns, solved.x.tolist(), strict=True):
            if is_so > 0.5:
                depths[number] = depth
        return tuple(depths), bound

    def _prices(self, columns: list[tuple[int, int]]) -> Iterator[int]:
        """Yield what it costs to go to the depth of each column from that of the one before."""
        before = -1, 0
        for number, depth in columns:
            shallower = before[1] if before[0] == number else self._lower[number]
            cost_at = self._problem.cost_at
            yield cost_at(number, depth) - cost_at(number, shallower)
            before = number, depth

    def _rows(self, columns: list[tuple[int, int]]) -> tuple[list[dict[int, int]], list[int]]:
        """Return factors by column, and what their sums are at least."""
        place = {column: at for at, column in enumerate(columns)}
        # What is so deep is as deep as the column before.
        deeper = [
            {place[before]: 1, place[column]: -1}
            for before, column in pairwise(columns)
            if before[0] == column[0]
        ]
        cuts = [dict.fromkeys(sorted(place[each] for each in cut), 1) for cut in self._cuts]
        return deeper + cuts, [0] * len(deeper) + [1] * len(cuts)

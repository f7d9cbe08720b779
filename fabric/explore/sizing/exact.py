"""Depths of least cost, by cuts: logic-based Benders decomposition with HiGHS.

The master searches the cheapest depths that escape all known cuts. The oracle times the records and
returns cuts for depths that miss a limit. The least cost under some cuts is a lower bound under
all.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Container, Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from fabric.explore.sizing.problem import (
    Cut,
    Depths,
    Found,
    Oracle,
    Problem,
    infeasible,
    with_depth,
)
from fabric.explore.sizing.search import deepest_failing, raised, trimmed
from fabric.messages.errors import ConfigurationError

_EVALUATIONS: Final = 100_000

_ROUNDS: Final = 200
"""Of the master: with many interchangeable channels there are very many cuts."""

_EVENTS: Final = 4_000_000_000
"""Of records, per answer: a minute's work."""


def exact(oracle: Oracle, lower: Depths, start: Depths, *, evaluations: int | None = None) -> Found:
    """Return depths of least cost, or the best found and their gap.

    ``lower``: lower bounds of depths; see ``search.lower_bounds``. ``start``: depths that keep the
    limits; see ``search.search``. ``evaluations``: vectors of depths to try; by default about a
    minute's work. The result does not depend on the machine.
    """
    problem = oracle.problem
    master = Master(problem, lower)
    best, cost, bound = start, problem.cost_of(start), problem.cost_of(lower)
    last = oracle.evaluations + (_affordable(oracle) if evaluations is None else evaluations)

    def learn(cuts: Iterator[Escapes]) -> bool:
        """Tell the master of as many cuts as there is time for; False where there was none."""
        known = len(master)
        while oracle.evaluations < last and (cut := next(cuts, None)) is not None:
            master.add(cut)
        return len(master) > known

    if cost > bound:
        learn(cuts_around(oracle, lower, best))
    for _ in range(_ROUNDS):
        if cost <= bound:
            break
        depths, at_least = master.solve()
        bound = max(bound, at_least)
        if depths is None or cost <= bound or oracle.evaluations >= last:
            break
        learned = learn(cuts_of(oracle, depths))
        if oracle.evaluations < last:
            better = trimmed(oracle, raised(oracle, depths), lower)
            if problem.cost_of(better) < cost:
                best, cost = better, problem.cost_of(better)
        if not learned:
            # Not the cheapest that escape all cuts, which would be the bound: too many to look at.
            break
    return Found(best, cost, bound, oracle.evaluations)


def _affordable(oracle: Oracle) -> int:
    events = sum(len(record.events) for record, _ in oracle.problem.limits)
    return min(_EVALUATIONS, _EVENTS // max(1, events))


_NODES: Final = 10_000
"""Of the search tree per answer; unlike seconds, the same on every machine."""

_ROUNDING: Final = 1e-6
"""Error of HiGHS, in greatest common divisors of the costs."""


class Master:
    """The integer program of costs and cuts, without records.

    It has a binary for each depth of a variable in a cut: whether the variable is that deep.
    """

    def __init__(self, problem: Problem, lower: Depths) -> None:
        """Know no cuts."""
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
        """Return the cheapest depths that escape all cuts, and a lower bound of their cost.

        None if the search takes too many nodes.
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
        """Yield the cost of each column over the column before."""
        before = -1, 0
        for number, depth in columns:
            shallower = before[1] if before[0] == number else self._lower[number]
            cost_at = self._problem.cost_at
            yield cost_at(number, depth) - cost_at(number, shallower)
            before = number, depth

    def _rows(self, columns: list[tuple[int, int]]) -> tuple[list[dict[int, int]], list[int]]:
        """Return factors by column, and the least sums."""
        place = {column: at for at, column in enumerate(columns)}
        # What is so deep is as deep as the column before.
        deeper = [
            {place[before]: 1, place[column]: -1}
            for before, column in pairwise(columns)
            if before[0] == column[0]
        ]
        cuts = [dict.fromkeys(sorted(place[each] for each in cut), 1) for cut in self._cuts]
        return deeper + cuts, [0] * len(deeper) + [1] * len(cuts)


Escapes: TypeAlias = Mapping[int, int]
"""Variables and a depth of each: whatever keeps the limits is as deep as that in one of them."""


def cuts_of(oracle: Oracle, depths: Depths) -> Iterator[Escapes]:
    """Yield reasons why ``depths`` fail, each with the channels of earlier ones deepened."""
    while (cut := oracle.cut(depths)) is not None:
        escapes = _lifted(oracle, depths, cut)
        yield escapes
        depths = _deepened(oracle, depths, escapes)


def cuts_around(oracle: Oracle, lower: Depths, depths: Depths) -> Iterator[Escapes]:
    """Yield one reason for each of ``depths`` that cannot be lowered.

    ``lower``: depths at this bound have no other reason. ``depths``: they keep the limits.
    """
    for number, depth in enumerate(depths):
        if depth > lower[number]:
            less = with_depth(depths, number, depth - 1)
            cut = oracle.cut(less)
            if cut is not None:
                yield _lifted(oracle, less, cut)


def _lifted(oracle: Oracle, depths: Depths, cut: Cut) -> Escapes:
    """Return the cut for the deepest depths that still fail by ``cut``.

    Cheap ways out are closed first: the others cost more.
    """
    problem = oracle.problem
    most = problem.most

    def price(number: int) -> tuple[int, int]:
        depth = depths[number]
        return problem.cost_at(number, depth + 1) - problem.cost_at(number, depth), number

    deepest = _deepened(oracle, depths, frozenset(range(len(depths))) - cut)
    for number in sorted(cut, key=price):
        if deepest[number] == most[number]:
            continue
        without = _deepened(oracle, deepest, (number,))
        still = oracle.cut(without)
        if still is None:
            depth = deepest_failing(oracle, deepest, number, most[number])
            deepest = with_depth(deepest, number, depth)
        else:
            deepest = _deepened(oracle, without, cut - still)
    escapes = {each: deepest[each] + 1 for each in sorted(cut) if deepest[each] < most[each]}
    if not escapes:
        raise infeasible(oracle)
    return escapes


def _deepened(oracle: Oracle, depths: Depths, numbers: Container[int]) -> Depths:
    """Return ``depths`` with ``numbers`` at their most."""
    return tuple(
        most if number in numbers else depth
        for number, (depth, most) in enumerate(zip(depths, oracle.problem.most, strict=True))
    )

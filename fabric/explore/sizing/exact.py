"""Depths of least cost, by cuts: logic-based Benders decomposition with HiGHS.

The master finds the cheapest depths that satisfy all cuts so far. The oracle times the records
with these depths. If they miss a limit, it returns cuts that they violate. The least cost under the
cuts so far is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from fabric.analysis.depths.problem import (
    Cut,
    Depths,
    Found,
    InfeasibleError,
    Oracle,
    Problem,
    with_depth,
)
from fabric.analysis.depths.search import deepest_failing, raised, trimmed
from fabric.messages.extras import check_extra

_EVALUATIONS: Final = 100_000

_ROUNDS: Final = 200
"""Most solutions of the master: interchangeable channels lead to very many cuts."""

_PARTS: Final = 1_000_000
"""The search stops if the cost is above the bound by at most a millionth of the bound."""

_EVENTS: Final = 4_000_000_000
"""Most timed events of records for one answer, about a minute."""


def exact(oracle: Oracle, lower: Depths, start: Depths, *, evaluations: int | None = None) -> Found:
    """Return the cheapest depths found, and a lower bound of the cost.

    The search stops if both are equal up to a millionth, or after ``evaluations`` timed vectors of
    depths, by default about a minute's work. ``lower`` is from ``search.lower_bounds``. ``start``,
    from ``search.search``, keeps the limits.
    """
    problem = oracle.problem
    master = Master(problem, lower)
    best, cost, bound = start, problem.cost_of(start), problem.cost_of(lower)
    last = oracle.evaluations + (_affordable(oracle) if evaluations is None else evaluations)

    def learn(cuts: Iterator[Escapes]) -> bool:
        before = len(master)
        while oracle.evaluations < last and (cut := next(cuts, None)) is not None:
            master.add(cut)
        return len(master) > before

    learn(cuts_around(oracle, lower, best))
    for _ in range(_ROUNDS):
        if cost - bound <= bound // _PARTS:
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
        if not learned:  # evaluations ran out, or the node limit left cheaper depths unexplored
            break
    return Found(best, cost, bound, oracle.evaluations)


def _affordable(oracle: Oracle) -> int:
    events = sum(len(record.events) for record, _ in oracle.problem.limits)
    return min(_EVALUATIONS, _EVENTS // max(1, events))


_NODES: Final = 10_000
"""Most nodes of the search tree; unlike a time limit, it is the same on every machine."""

_ROUNDING: Final = 1e-6
"""Largest error of a bound by HiGHS, in multiples of the costs' greatest common divisor."""


class Master:
    """The integer program of costs and cuts.

    A binary variable states whether the depth of a channel, or of a group, reaches some value.
    """

    def __init__(self, problem: Problem, lower: Depths) -> None:
        check_extra("--method exact", "sizing", "scipy")
        self._problem: Final = problem
        self._lower: Final = lower
        self._cuts: Final[dict[frozenset[tuple[int, int]], None]] = {}

    def __len__(self) -> int:
        return len(self._cuts)

    def add(self, escapes: Escapes) -> None:
        self._cuts[frozenset(escapes.items())] = None  # equal cuts count once

    def solve(self) -> tuple[Depths | None, int]:
        """Return the cheapest depths that satisfy all cuts, and a lower bound of their cost.

        The depths are None if the search takes too many nodes.
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
        for (number, depth), binary in zip(columns, solved.x.tolist(), strict=True):
            if binary > 0.5:
                depths[number] = depth
        return tuple(depths), bound

    def _prices(self, columns: list[tuple[int, int]]) -> Iterator[int]:
        # The cost of each column: from the variable's depth in the column before to its depth here.
        before = -1, 0
        for number, depth in columns:
            shallower = before[1] if before[0] == number else self._lower[number]
            cost_at = self._problem.cost_at
            yield cost_at(number, depth) - cost_at(number, shallower)
            before = number, depth

    def _rows(self, columns: list[tuple[int, int]]) -> tuple[list[dict[int, int]], list[int]]:
        # Each row has factors by column; the second list has the least sum of each row.
        place = {column: at for at, column in enumerate(columns)}
        # A variable that reaches a depth reaches the smaller depth of the column before, too.
        deeper = [
            {place[before]: 1, place[column]: -1}
            for before, column in pairwise(columns)
            if before[0] == column[0]
        ]
        cuts = [dict.fromkeys(sorted(place[each] for each in cut), 1) for cut in self._cuts]
        return deeper + cuts, [0] * len(deeper) + [1] * len(cuts)


Escapes: TypeAlias = Mapping[int, int]
"""A cut, as depths by variable: depths that keep the limits reach at least one of them."""


def cuts_of(oracle: Oracle, depths: Depths) -> Iterator[Escapes]:
    """Yield cuts that ``depths`` violate; channels of earlier cuts are deepened for later ones."""
    while (cut := oracle.cut(depths)) is not None:
        escapes = _lifted(oracle, depths, cut)
        yield escapes
        depths = _deepened(oracle, depths, escapes)


def cuts_around(oracle: Oracle, lower: Depths, depths: Depths) -> Iterator[Escapes]:
    """Yield a cut for each variable that cannot have one slot less than in ``depths``.

    ``depths`` keep the limits. Variables at their lower bound need no cut.
    """
    for number, depth in enumerate(depths):
        if depth > lower[number]:
            less = with_depth(depths, number, depth - 1)
            cut = oracle.cut(less)
            if cut is not None:
                yield _lifted(oracle, less, cut)


def _lifted(oracle: Oracle, depths: Depths, cut: Cut) -> Escapes:
    # The cut of the deepest depths that still fail because of ``cut``. The cheapest variables are
    # deepened first, so that the expensive ones stay in the cut.
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
        raise InfeasibleError
    return escapes


def _deepened(oracle: Oracle, depths: Depths, numbers: Container[int]) -> Depths:
    return tuple(
        most if number in numbers else depth
        for number, (depth, most) in enumerate(zip(depths, oracle.problem.most, strict=True))
    )

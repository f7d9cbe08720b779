"""Search for depths that keep cycle limits: lowering any single depth breaks a limit."""

from __future__ import annotations

from collections import Counter

from fabric.analysis.depths.problem import Depths, Found, InfeasibleError, Oracle, with_depth


def lower_bounds(oracle: Oracle) -> Depths:
    """Return for each variable the least depth that keeps the limits if all others are deepest."""
    problem = oracle.problem
    if not oracle.keeps(problem.most):
        raise InfeasibleError
    bounds = list(problem.least)
    for number in _suspects(oracle):
        enough = problem.most[number]
        alone = with_depth(problem.most, number, problem.least[number])
        if not oracle.keeps(alone):
            bounds[number] = deepest_failing(oracle, alone, number, enough) + 1
    return tuple(bounds)


def lowest(oracle: Oracle, depths: Depths, number: int, floor: int) -> int:
    """Return the least depth of one variable that keeps the limits, at least ``floor``."""
    high, step = depths[number], 1
    while high > floor:
        low = max(floor, high - step)
        if not oracle.keeps(with_depth(depths, number, low)):
            return _last_failing(oracle, depths, number, low, high) + 1
        high = low
        step *= 2
    return high


def deepest_failing(oracle: Oracle, depths: Depths, number: int, enough: int) -> int:
    """Return the greatest failing depth of one variable below ``enough``."""
    low, step = depths[number], 1
    while low + step < enough:
        if oracle.keeps(with_depth(depths, number, low + step)):
            return _last_failing(oracle, depths, number, low, low + step)
        low += step
        step *= 2
    return _last_failing(oracle, depths, number, low, enough)


def _last_failing(oracle: Oracle, depths: Depths, number: int, low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if oracle.keeps(with_depth(depths, number, middle)):
            high = middle
        else:
            low = middle
    return low


def _suspects(oracle: Oracle) -> list[int]:
    # Variables that may have to be deeper than their least depth: with the suspects deepest, all
    # others keep the limits at their least depth. A cut yields several suspects per evaluation.
    problem = oracle.problem
    depths = list(problem.least)
    suspects: list[int] = []
    while (cut := oracle.cut(tuple(depths))) is not None:
        fresh = sorted(n for n in cut if depths[n] < problem.most[n])
        for number in fresh:
            depths[number] = problem.most[number]
        suspects += fresh
    return suspects


def search(oracle: Oracle, lower: Depths) -> Found:
    """Return depths of nearly least cost, from the ``lower_bounds``.

    Lowering any single depth breaks a limit.
    """
    problem = oracle.problem
    depths = trimmed(oracle, raised(oracle, lower), lower)
    bound = problem.cost_of(lower)
    return Found(depths, problem.cost_of(depths), bound, oracle.evaluations)


def raised(oracle: Oracle, depths: Depths) -> Depths:
    """Return depths that keep the limits, by deepening the cheapest variable of each cut.

    The step of a variable is one at first and doubles each time; ``trimmed`` lowers the excess.
    """
    problem = oracle.problem
    most, cost_at = problem.most, problem.cost_at
    deeper = list(depths)
    steps: Counter[int] = Counter()

    def price(number: int) -> tuple[int, int]:
        return cost_at(number, deeper[number] + 1) - cost_at(number, deeper[number]), number

    while (cut := oracle.cut(tuple(deeper))) is not None:
        candidates = [number for number in cut if deeper[number] < most[number]]
        if not candidates:
            raise InfeasibleError
        number = min(candidates, key=price)
        deeper[number] = min(most[number], deeper[number] + (1 << steps[number]))
        steps[number] += 1
    return tuple(deeper)


def trimmed(oracle: Oracle, depths: Depths, lower: Depths) -> Depths:
    """Lower ``depths``, which keep the limits, until none can be lowered by one.

    Each depth is lowered once, the most expensive first. Later steps never allow a lower depth.
    """
    problem = oracle.problem
    above = [number for number, depth in enumerate(depths) if depth > lower[number]]
    for number in sorted(above, key=lambda n: (-problem.cost_at(n, depths[n]), n)):
        depths = with_depth(depths, number, lowest(oracle, depths, number, lower[number]))
    return depths

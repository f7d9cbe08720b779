"""Search of depths within bounds, and the depths that delay no event: the most slots in use.

A slot is in use from the sender's reservation, before the element is visible, until its credit has
returned. With this number of slots all timestamps equal an unbounded run's; with one less, some
timestamp is later. Depths that only keep the last cycle may be far smaller.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np

from fabric.explore.sizing.problem import (
    Depths,
    Found,
    Oracle,
    Problem,
    infeasible,
    variable_of,
    with_depth,
)
from fabric.messages.errors import ConfigurationError
from fabric.timing.engine.tables import Counters
from fabric.timing.retiming.retimer import Retimer


def high_water(problem: Problem) -> Depths:
    """Return the least depths with the same timestamps as the greatest depths."""
    return sized_at_most(problem, slots_in_use)


def slots_in_use(retimer: Retimer) -> Counters:
    """Return the most slots in use of each channel in the last timing, at least 1.

    An element that its reader did not take keeps its slot until the reader has ended.
    """
    bounds = retimer.base.tolist()
    slots = np.ones(len(bounds) - 1, np.int64)
    for channel, (start, stop) in enumerate(itertools.pairwise(bounds)):
        if stop - start > 1:
            # Elements that were not taken may become visible in another order than they were
            # sent, but credits are used in the order of sending.
            usable = np.maximum.accumulate(retimer.usable[start:stop])
            back = np.searchsorted(usable, retimer.issued[start:stop], "right")
            slots[channel] = (np.arange(1, stop - start + 1) - back).max()
    return np.maximum(slots, 1)


def sized_at_most(problem: Problem, slots: Callable[[Retimer], Counters]) -> Depths:
    """Return for each variable the most ``slots`` of its channels in a timed record.

    The records are timed with the greatest depths; results are clipped to each variable's range.
    """
    least, most = np.array(problem.least, np.int64), np.array(problem.most, np.int64)
    depths = least.copy()
    for record, _ in problem.limits:
        retimer = Retimer(record)
        variables = variable_of(problem, record)
        retimed = retimer.time(most[variables])
        if retimed.cycles is None:
            waiting = retimed.blocked[0]
            raise ConfigurationError(
                f"{record.program}: {record.units[waiting.unit]} waits for ever on "
                f"[{record.channels[waiting.channel].name}] with every channel at its most: "
                "expected a most of all channels with which it completes"
            )
        np.maximum.at(depths, variables, slots(retimer))
    return tuple(np.minimum(depths, most).tolist())


def lower_bounds(oracle: Oracle) -> Depths:
    """Return for each variable the least depth that keeps the limits if all others are deepest."""
    problem = oracle.problem
    if not oracle.keeps(problem.most):
        raise infeasible(oracle)
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
    # Variables that may have to be deeper than their least depth. The least depth of every other
    # variable keeps the limits if these are deepest. A cut yields several in one evaluation.
    problem = oracle.problem
    depths = list(problem.least)
    suspects: list[int] = []
    while (cut := oracle.cut(tuple(depths))) is not None:
        fresh = sorted(each for each in cut if depths[each] < problem.most[each])
        for number in fresh:
            depths[number] = problem.most[number]
        suspects += fresh
    return suspects


def search(oracle: Oracle, lower: Depths) -> Found:
    """Return depths near the least cost, none of which can be lowered alone.

    ``lower`` are lower bounds, from ``lower_bounds``.
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
        candidates = [each for each in cut if deeper[each] < most[each]]
        if not candidates:
            raise infeasible(oracle)
        number = min(candidates, key=price)
        deeper[number] = min(most[number], deeper[number] + (1 << steps[number]))
        steps[number] += 1
    return tuple(deeper)


def trimmed(oracle: Oracle, depths: Depths, lower: Depths) -> Depths:
    """Lower ``depths``, which keep the limits, until none can be lowered by one.

    Each is lowered once, the most expensive first: lowering other depths never helps it.
    """
    problem = oracle.problem
    above = [number for number, depth in enumerate(depths) if depth > lower[number]]
    for number in sorted(above, key=lambda each: (-problem.cost_at(each, depths[each]), each)):
        depths = with_depth(depths, number, lowest(oracle, depths, number, lower[number]))
    return depths

"""Depths by steps within bounds, and depths that delay no event: the most slots in use.

A slot is in use from when it is taken, before the element is visible, until its credit is back.
With that many slots every stamp is that of a run without bounds, and with one less some stamp is
later. Depths that only keep the last cycle may be far smaller.
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
    """Return the least depths with the same stamps as all variables at their most."""
    return sized_at_most(problem, slots_in_use)


def slots_in_use(retimer: Retimer) -> Counters:
    """Return the most slots in use of each channel in the last timing, at least 1.

    An element that its reader did not take has its slot until the reader has ended.
    """
    bounds = retimer.base.tolist()
    found = np.ones(len(bounds) - 1, np.int64)
    for channel, (start, stop) in enumerate(itertools.pairwise(bounds)):
        if stop - start > 1:
            # What is left over may be visible in another order than it was sent, but credits are
            # spent in that order.
            usable = np.maximum.accumulate(retimer.usable[start:stop])
            back = np.searchsorted(usable, retimer.issued[start:stop], "right")
            found[channel] = (np.arange(1, stop - start + 1) - back).max()
    return np.maximum(found, 1)


def sized_at_most(problem: Problem, slots: Callable[[Retimer], Counters]) -> Depths:
    """Return for each variable the most ``slots`` of its channels in a timed record.

    The records are timed with every variable at its most; results are clipped to its range.
    """
    least, most = np.array(problem.least, np.int64), np.array(problem.most, np.int64)
    found = least.copy()
    for record, _ in problem.limits:
        retimer = Retimer(record)
        its = variable_of(problem, record)
        retimed = retimer.time(most[its])
        if retimed.cycles is None:
            waiting = retimed.blocked[0]
            raise ConfigurationError(
                f"{record.program}: {record.units[waiting.unit]} waits for ever on "
                f"[{record.channels[waiting.channel].name}] with every channel at its most: "
                "expected a most of all channels with which it completes"
            )
        np.maximum.at(found, its, slots(retimer))
    return tuple(np.minimum(found, most).tolist())


def lower_bounds(oracle: Oracle) -> Depths:
    """Return for each variable the least depth that keeps the limits with all others at most."""
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
    """Return how far one variable can be lowered alone, down to ``floor``."""
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
    """Return the last failing depth of one variable: ``low`` fails, ``high`` does not."""
    while high - low > 1:
        middle = (low + high) // 2
        if oracle.keeps(with_depth(depths, number, middle)):
            high = middle
        else:
            low = middle
    return low


def _suspects(oracle: Oracle) -> list[int]:
    """Return variables that may have to be deeper than their least.

    The others keep the limits at their least, with the rest at most. They are found by cuts, many
    in one evaluation.
    """
    problem = oracle.problem
    depths = list(problem.least)
    suspects: list[int] = []
    while (cut := oracle.cut(tuple(depths))) is not None:
        found = sorted(each for each in cut if depths[each] < problem.most[each])
        for number in found:
            depths[number] = problem.most[number]
        suspects += found
    return suspects


def search(oracle: Oracle, lower: Depths) -> Found:
    """Return depths near the least cost of which none can be lowered alone.

    ``lower`` are lower bounds, see ``lower_bounds``.
    """
    problem = oracle.problem
    depths = trimmed(oracle, raised(oracle, lower), lower)
    bound = problem.cost_of(lower)
    return Found(depths, problem.cost_of(depths), bound, oracle.evaluations)


def raised(oracle: Oracle, depths: Depths) -> Depths:
    """Return depths that keep the limits, by deepening the cheapest variable of each cut.

    The step is one at first and doubles each time; excess is lowered later.
    """
    problem = oracle.problem
    most, cost_at = problem.most, problem.cost_at
    found = list(depths)
    steps: Counter[int] = Counter()

    def price(number: int) -> tuple[int, int]:
        return cost_at(number, found[number] + 1) - cost_at(number, found[number]), number

    while (cut := oracle.cut(tuple(found))) is not None:
        candidates = [each for each in cut if found[each] < most[each]]
        if not candidates:
            raise infeasible(oracle)
        number = min(candidates, key=price)
        found[number] = min(most[number], found[number] + (1 << steps[number]))
        steps[number] += 1
    return tuple(found)


def trimmed(oracle: Oracle, depths: Depths, lower: Depths) -> Depths:
    """Return ``depths``, which keep the limits, lowered until none can be lowered by one.

    Each is lowered once, the dearest first: lower depths of others never help.
    """
    problem = oracle.problem
    above = [number for number, depth in enumerate(depths) if depth > lower[number]]
    for number in sorted(above, key=lambda each: (-problem.cost_at(each, depths[each]), each)):
        depths = with_depth(depths, number, lowest(oracle, depths, number, lower[number]))
    return depths

"""Depths that delay no event: the most slots in use.

A slot is in use from the sender's reservation, before the element is visible, until its credit has
returned. With this number of slots all timestamps equal an unbounded run's; with one less, some
timestamp is later. Depths that keep only the cycle of the end may be far smaller.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from fabric.analysis.depths.problem import Depths, Problem, variable_of
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
                f"[{record.channels[waiting.channel].name}] with every channel at its greatest "
                "depth: expected greatest depths with which it completes"
            )
        np.maximum.at(depths, variables, slots(retimer))
    return tuple(np.minimum(depths, most).tolist())

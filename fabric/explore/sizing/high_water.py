"""The depths that delay nothing: the most slots of each channel that are in use at once.

A slot is in use from when it is taken, before the element is visible, until its credit is back.
With so many slots every stamp is that of a run without bounds, and with one less some stamp is
later; depths that only keep the last cycle may be far smaller.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from fabric.explore.sizing.problem import Depths, Problem, variable_of
from fabric.messages.telling.errors import ConfigurationError
from fabric.timing.engine.machine_code import Counters
from fabric.timing.retiming.retimer import Retimer

__all__ = ["high_water", "sized_at_most", "slots_in_use"]


def high_water(problem: Problem) -> Depths:
    """Return the least depths with which every stamp is as with each variable at its most.

    Raises:
        ConfigurationError: at the most of all variables, a record does not complete.
    """
    return sized_at_most(problem, slots_in_use)


def slots_in_use(retimer: Retimer) -> Counters:
    """Return for each channel how many slots were in use at once, in the last timing of a record.

    At least 1. An element that its reader left over has its slot until that reader had ended.
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
    """Return for each variable the most slots that one of its channels is given in a record.

    Args:
        problem: whose records are timed with every variable at its most.
        slots: given a record that was timed, how many each of its channels shall have; what is
            below the least of a variable, or above its most, is brought there.

    Raises:
        ConfigurationError: at the most of all variables, a record does not complete.
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

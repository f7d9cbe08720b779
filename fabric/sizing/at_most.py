"""Depths that follow from how the records of a problem go when every channel is at its most."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fabric.engine.machine_code import Counters
from fabric.retiming.retimer import Retimer
from fabric.sizing.oracle import variable_of
from fabric.sizing.problem import Depths, Problem
from fabric.telling.errors import ConfigurationError

__all__ = ["sized_at_most"]


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

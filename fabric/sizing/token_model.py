"""How StreamTensor sizes channels: its model of tokens, and its linear program (section 2).

A kernel gives a token every so many cycles, its interval, and the first one so many after it has
started, its delay. Where kernel i feeds kernel j, j starts so many cycles after i, at least the
delay of i; the fewer, the fewer tokens wait between them. arXiv:2509.13694v2.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from fabric.engine.machine_code import Counters
from fabric.telling.errors import ConfigurationError

__all__ = ["Precedence", "credit_slots", "max_tokens", "start_delays"]


class Precedence(NamedTuple):
    """A kernel that feeds another one.

    Attributes:
        source: its number.
        target: the other one's.
        delay_cycles: from the start of the source until the target has a token from it.
    """

    source: int
    target: int
    delay_cycles: int


def max_tokens(
    tokens: int,
    started_cycles: int,
    delay_cycles: int,
    source_interval_cycles: Fraction,
    target_interval_cycles: Fraction,
) -> int:
    """Return the most tokens that are ever between two kernels.

    Args:
        tokens: that go from one to the other.
        started_cycles: from the start of the source to the start of the target.
        delay_cycles: from the start of the source to its first token.
        source_interval_cycles: between tokens of the source, more than 0.
        target_interval_cycles: between tokens that the target takes, more than 0.
    """
    if source_interval_cycles < target_interval_cycles:
        last_cycle = delay_cycles + (tokens - 1) * source_interval_cycles
        taken = floor((last_cycle - started_cycles) / target_interval_cycles)
        return min(tokens, tokens - taken)
    return min(tokens, ceil((started_cycles - delay_cycles) / source_interval_cycles))


def credit_slots(loop_cycles: int, interval_cycles: Fraction) -> int:
    """Return how many slots are not there for tokens at any time: on their way, or coming back.

    The paper has no such term: its channels are without latency.

    Args:
        loop_cycles: from when a slot is taken to when its token is visible, and from when that is
            dequeued to when the slot can be taken again.
        interval_cycles: between tokens that are sent, more than 0.
    """
    return ceil(loop_cycles / interval_cycles)


def start_delays(kernels: int, precedences: Sequence[Precedence]) -> Counters:
    """Return for each pair how many cycles after its source the target starts.

    On every path from one kernel to another they are together no less than the delays of any
    path between these two; and of all such starts they are those with the least sum.

    The paper has one constraint a path. Here every kernel has a start, no earlier than that of
    a source and the delay, from which those constraints follow. They alone allow delays that no
    starts have, where two kernels both feed two others; these are not taken.

    Args:
        kernels: how many there are.
        precedences: without circles.

    Raises:
        ConfigurationError: the extra ``sizing`` is not installed.
    """
    if not precedences:
        return np.zeros(0, np.int64)
    try:
        from scipy.optimize import linprog
        from scipy.sparse import coo_array
    except ImportError as error:
        raise ConfigurationError(
            "paper-lp needs scipy, which is not installed: expected the extra sizing, as in "
            "pip install 'step-fabric[sizing]'"
        ) from error
    source, target, delay_cycles = np.array(precedences, np.int64).T
    rows = np.arange(len(precedences))
    ones = np.ones(len(precedences))
    # Of a start s: s[source] - s[target] <= -delay.
    places = np.concatenate([rows, rows]), np.concatenate([source, target])
    before = coo_array((np.concatenate([ones, -ones]), places), (len(precedences), kernels))
    weights = np.bincount(target, minlength=kernels) - np.bincount(source, minlength=kernels)
    found = linprog(weights, A_ub=before.tocsr(), b_ub=-delay_cycles)
    assert found.x is not None, found.message
    # Every vertex of such constraints has integer starts.
    starts = np.rint(found.x).astype(np.int64)
    delays: Counters = starts[target] - starts[source]
    return delays

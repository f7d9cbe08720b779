"""The depths that StreamTensor would choose, with the slots for our channels' latency.

Its model has acyclic graphs of kernels that take and give one token a firing, each at its own
interval. Other graphs are fitted to it: intervals and delays are measured at each channel, and a
channel that closes a circle has the slots of an unbounded run. These depths are not proved; they
are to be timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.explore.sizing.problem import Depths, Problem
from fabric.explore.sizing.search import sized_at_most, slots_in_use
from fabric.messages.errors import ConfigurationError
from fabric.timing.engine import log as e
from fabric.timing.engine.tables import Counters
from fabric.timing.retiming.retimer import Retimer


class Precedence(NamedTuple):
    """A kernel that feeds another one.

    Attributes:
        delay_cycles: from the start of the source to the target's first token.
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

    The target starts ``started_cycles`` after the source, whose first token takes ``delay_cycles``.
    Intervals are more than 0.
    """
    if source_interval_cycles < target_interval_cycles:
        last_cycle = delay_cycles + (tokens - 1) * source_interval_cycles
        taken = floor((last_cycle - started_cycles) / target_interval_cycles)
        return min(tokens, tokens - taken)
    return min(tokens, ceil((started_cycles - delay_cycles) / source_interval_cycles))


def credit_slots(loop_cycles: int, interval_cycles: Fraction) -> int:
    """Return the slots that are unavailable for tokens: in flight, or returning as credits.

    ``loop_cycles`` is the total of both ways. The paper has no such term: its channels are without
    latency.
    """
    return ceil(loop_cycles / interval_cycles)


def start_delays(kernels: int, precedences: Sequence[Precedence]) -> Counters:
    """Return for each pair the cycles from the start of its source to that of its target.

    On every path between two kernels their sum is at least the delays of any path between them; of
    all such starts, the sum is least.

    The paper has one constraint a path. Here every kernel has a start, no earlier than that of a
    source and the delay, which implies those constraints. The paper's alone allow delays without
    starts, if two kernels both feed two others; these are excluded.
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


class Measured(NamedTuple):
    """A channel in a run without bounds; intervals and tokens are at least 1.

    Attributes:
        tokens: that were sent.
        delay_cycles: from the start of the source until the first token is visible.
        source_interval_cycles: of the source's own time.
        target_interval_cycles: of the target's own time.
        loop_cycles: longest time from taking a slot to the visible element, plus the credit's.
        awaited: the target takes a token before it sends one.
    """

    number: int
    source: int
    target: int
    tokens: int
    delay_cycles: int
    source_interval_cycles: Fraction
    target_interval_cycles: Fraction
    loop_cycles: int
    awaited: bool


def measured(retimer: Retimer) -> list[Measured]:
    """Return the measurements of each used channel in the last timing of a record.

    A unit starts with the first element of each input that it takes before it sends, or with the
    run. Its own time excludes waits for channels. If every firing takes one element of each input
    and gives one to each output, these are the paper's measures.
    """
    record = retimer.record
    kinds, on = record.events[:, 0] & e.KIND, record.events[:, 0] >> e.SHIFT
    count, units = len(record.channels), len(record.units)
    never = len(record.events)
    put, taken = record.places(e.SEND, e.PUT), record.places(e.TAKE)
    looked = _first(on, np.isin(kinds, (e.SEE, e.TAKE)), count)
    sends = _first(record.unit_of, np.isin(kinds, (e.SEND, e.PUT)), units)
    starts = np.zeros(units, np.int64)
    awaited = np.zeros(count, np.bool_)
    for number, channel in enumerate(record.channels):
        place = looked[number]
        if place < min(sends[channel.consumer], never):
            awaited[number] = True
            cycle = retimer.clocks[place]
            starts[channel.consumer] = max(starts[channel.consumer], cycle)
    own = _own_cycles(retimer, kinds)
    dequeued = np.bincount(on[kinds == e.TAKE], minlength=count)
    found = []
    for number, channel in enumerate(record.channels):
        first, tokens = int(retimer.base[number]), channel.elements
        if not tokens:
            continue
        its = slice(first, first + tokens)
        hold_cycles = int((retimer.visible[its] - retimer.issued[its]).max())
        found.append(
            Measured(
                number,
                channel.producer,
                channel.consumer,
                tokens,
                int(retimer.visible[first] - starts[channel.producer]),
                _interval_cycles(own[put[its]]),
                _interval_cycles(own[taken[first : first + dequeued[number]]]),
                hold_cycles + channel.backward_cycles,
                bool(awaited[number]),
            )
        )
    return found


def _first(of: Counters, which: NDArray[np.bool_], count: int) -> Counters:
    """Return the first event of each of ``of``; a number behind all if absent."""
    found = np.full(count, len(of))
    its = np.flatnonzero(which)
    np.minimum.at(found, of[its], its)
    return found


def _own_cycles(retimer: Retimer, kinds: Counters) -> Counters:
    """Return by event the time of units without waits for channels."""
    events, clocks = retimer.record.events, retimer.clocks
    works = kinds <= e.BURST
    own = np.where(works, events[:, 1], 0)
    busy = np.flatnonzero(kinds == e.UNTIL)
    own[busy] = clocks[busy] - clocks[busy - 1]
    return np.cumsum(own)


def _interval_cycles(own: Counters) -> Fraction:
    if len(own) < 2:
        return Fraction(1)
    return max(Fraction(1), Fraction(int(own[-1] - own[0]), len(own) - 1))


def paper_lp(problem: Problem, *, conservative: bool) -> Depths:
    """Return the depths of the paper's formulas and its linear program, plus the credit loop.

    ``conservative``: use the slowest interval everywhere, which gives less depth and may cost
    cycles.
    """
    return sized_at_most(problem, partial(_slots, conservative=conservative))


def _slots(retimer: Retimer, *, conservative: bool) -> Counters:
    slots = np.ones(len(retimer.record.channels), np.int64)
    every = measured(retimer)
    closing = _closing(every)
    if closing:
        numbers = [each.number for each in closing]
        slots[numbers] = slots_in_use(retimer)[numbers]
    edges = [each for each in every if each not in closing]
    if conservative and edges:
        edges = _equalised(edges)
    precedences = [Precedence(each.source, each.target, each.delay_cycles) for each in edges]
    started = start_delays(len(retimer.record.units), precedences)
    for each, started_cycles in zip(edges, started.tolist(), strict=True):
        source, target = each.source_interval_cycles, each.target_interval_cycles
        waiting = max_tokens(each.tokens, started_cycles, each.delay_cycles, source, target)
        slots[each.number] = min(each.tokens, waiting + credit_slots(each.loop_cycles, source))
    return slots


def _closing(edges: Sequence[Measured]) -> set[Measured]:
    """Return the edges that lead back to their origin, to a unit that sends without them.

    Other edges form no circle: along one, each unit would have sent before the next.
    """
    import networkx as nx

    graph = nx.DiGraph((each.source, each.target) for each in edges)
    circle_of = {
        unit: number
        for number, units in enumerate(nx.strongly_connected_components(graph))
        for unit in units
    }
    return {
        each
        for each in edges
        if not each.awaited and circle_of[each.source] == circle_of[each.target]
    }


def _equalised(edges: Sequence[Measured]) -> list[Measured]:
    slowest = max(
        cycles
        for each in edges
        for cycles in (each.source_interval_cycles, each.target_interval_cycles)
    )
    return [
        each._replace(source_interval_cycles=slowest, target_interval_cycles=slowest)
        for each in edges
    ]

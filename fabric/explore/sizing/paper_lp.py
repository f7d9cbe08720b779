"""The depths that StreamTensor would choose, with what our channels need besides.

Its model is of graphs without circles, of kernels that take and give one token a firing, each in
its own interval. What is no such graph is fitted to it: intervals and delays are measured at each
channel, and a channel that closes a circle is left out of the linear program and has the slots
that a run without bounds uses. Nothing is proved by these depths; they are to be timed.
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
from fabric.messages.telling.errors import ConfigurationError
from fabric.timing.engine.machine_code import Counters
from fabric.timing.retiming import events as e
from fabric.timing.retiming.retimer import Retimer


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


class Measured(NamedTuple):
    """A channel in a run without bounds.

    Attributes:
        number: in edge order.
        source: the unit that sends.
        target: the unit that receives.
        tokens: that were sent, at least 1.
        delay_cycles: from the start of the source until the first of them is visible.
        source_interval_cycles: of the source's own time from one to the next, at least 1.
        target_interval_cycles: of the target's own time from one to the next, at least 1.
        loop_cycles: the most that a slot was taken before its element was visible, and those
            that a credit takes to come back.
        awaited: whether the target takes one before it sends anything.
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
    """Return what the last timing of a record shows of each channel that carried something.

    A unit starts when it has had the first element of each input that it takes before it sends
    anything; one that takes none starts with the run. Its own time is when it waits for no
    channel. Where every firing takes one element of each input and gives one to each output,
    intervals are the same on all sides of a unit, and all this is what the paper measures.
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
    """Return by what they are ``of`` the first of some events; behind all where there is none."""
    found = np.full(count, len(of))
    its = np.flatnonzero(which)
    np.minimum.at(found, of[its], its)
    return found


def _own_cycles(retimer: Retimer, kinds: Counters) -> Counters:
    """Return by event how long units were not waiting for a channel up to then."""
    events, clocks = retimer.record.events, retimer.clocks
    works = (kinds <= e.LAST_WORKED) | (kinds == e.WORK) | (kinds == e.WAIT)
    own = np.where(works, events[:, 1], 0)
    busy = np.flatnonzero(kinds == e.UNTIL)
    own[busy] = clocks[busy] - clocks[busy - 1]
    return np.cumsum(own)


def _interval_cycles(own: Counters) -> Fraction:
    if len(own) < 2:
        return Fraction(1)
    return max(Fraction(1), Fraction(int(own[-1] - own[0]), len(own) - 1))


def paper_lp(problem: Problem, *, conservative: bool) -> Depths:
    """Return the depths of the paper's formulas and its linear program, and of the credit loop.

    Args:
        problem: its records are measured with each variable at its most.
        conservative: all intervals are taken to be the slowest, which gives less depth and may
            cost cycles; else each is its own, as the paper has it normally.

    Raises:
        ConfigurationError: a record does not complete at the most of all variables, or the extra
            ``sizing`` is not installed.
    """
    return sized_at_most(problem, partial(_slots, conservative=conservative))


def _slots(retimer: Retimer, *, conservative: bool) -> Counters:
    """Return the slots of each channel."""
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
    """Return those that lead back to where they come from, to a unit that sends without them.

    The others are no circle: along one, each unit would have sent before the next.
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
    """Return the same with every interval as the slowest."""
    slowest = max(
        cycles
        for each in edges
        for cycles in (each.source_interval_cycles, each.target_interval_cycles)
    )
    return [
        each._replace(source_interval_cycles=slowest, target_interval_cycles=slowest)
        for each in edges
    ]

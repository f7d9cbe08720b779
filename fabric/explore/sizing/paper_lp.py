"""The depths that StreamTensor would choose, with slots for our channels' latency.

Its model has acyclic graphs of kernels that take and send one token a firing, each at its own
interval. Other graphs are approximated: intervals and delays are measured at each channel, and a
channel that closes a cycle has the slots of an unbounded run. These depths may miss a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fabric.analysis.depths.problem import Depths, Problem
from fabric.explore.sizing.high_water import sized_at_most, slots_in_use
from fabric.messages.extras import check_extra
from fabric.timing.engine import log as e
from fabric.timing.engine.tables import Counters
from fabric.timing.retiming.retimer import Retimer


class Precedence(NamedTuple):
    """A kernel that feeds another; ``delay_cycles``: from its start to its first token."""

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
    """Return the most tokens in the channel between two kernels.

    The target starts ``started_cycles`` after the source. The source's first token arrives after
    ``delay_cycles``. Intervals are above 0.
    """
    if source_interval_cycles < target_interval_cycles:
        last_cycle = delay_cycles + (tokens - 1) * source_interval_cycles
        taken = floor((last_cycle - started_cycles) / target_interval_cycles)
        return min(tokens, tokens - taken)
    return min(tokens, ceil((started_cycles - delay_cycles) / source_interval_cycles))


def start_delays(kernels: int, precedences: Sequence[Precedence]) -> Counters:
    """Return for each pair the cycles from the source's start to the target's start.

    The sum over all pairs is minimal, such that every kernel starts no earlier than each of its
    sources starts plus the delay.

    The paper instead has a constraint for each path between two kernels. It follows from ours. If
    two kernels both feed two others, the paper's constraints allow delays that no starts have, too.
    """
    if not precedences:
        return np.zeros(0, np.int64)
    check_extra("--method paper-lp", "sizing", "scipy")
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    source, target, delay_cycles = np.array(precedences, np.int64).T
    rows = np.arange(len(precedences))
    ones = np.ones(len(precedences))
    # With starts s: s[source] - s[target] <= -delay.
    places = np.concatenate([rows, rows]), np.concatenate([source, target])
    before = coo_array((np.concatenate([ones, -ones]), places), (len(precedences), kernels))
    weights = np.bincount(target, minlength=kernels) - np.bincount(source, minlength=kernels)
    solution = linprog(weights, A_ub=before.tocsr(), b_ub=-delay_cycles)
    assert solution.x is not None, solution.message
    # Every vertex of difference constraints is integral.
    starts = np.rint(solution.x).astype(np.int64)
    delays: Counters = starts[target] - starts[source]
    return delays


class Measured(NamedTuple):
    """A channel in a run without bounds; intervals and tokens are at least 1.

    Attributes:
        tokens: number of sent tokens.
        delay_cycles: from the start of the source until the first token is visible.
        source_interval_cycles: between tokens, in the source's own time.
        target_interval_cycles: between tokens, in the target's own time.
        loop_cycles: longest time from the use of a slot to the visible element, plus the credit's
            latency.
        awaited: whether the target takes a token before it sends its first one.
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

    A unit that takes before it sends starts with the first element of the last of these inputs.
    Others start with the run. A unit's own time excludes waits for channels. If a firing takes an
    element from each input and sends one to each output, these measures equal the paper's.
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
    channels = []
    for number, channel in enumerate(record.channels):
        first, tokens = int(retimer.base[number]), channel.elements
        if not tokens:
            continue
        own_rows = slice(first, first + tokens)
        hold_cycles = int((retimer.visible[own_rows] - retimer.issued[own_rows]).max())
        channels.append(
            Measured(
                number,
                channel.producer,
                channel.consumer,
                tokens,
                int(retimer.visible[first] - starts[channel.producer]),
                _interval_cycles(own[put[own_rows]]),
                _interval_cycles(own[taken[first : first + dequeued[number]]]),
                hold_cycles + channel.backward_cycles,
                bool(awaited[number]),
            )
        )
    return channels


def _first(owners: Counters, which: NDArray[np.bool_], count: int) -> Counters:
    # The first selected event of each owner; the number of events if it has none.
    first = np.full(count, len(owners))
    selected = np.flatnonzero(which)
    np.minimum.at(first, owners[selected], selected)
    return first


def _own_cycles(retimer: Retimer, kinds: Counters) -> Counters:
    # The time of units at each event, without waits for channels.
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
        # The paper's channels have no latency, and so no elements and credits in flight.
        in_flight = ceil(each.loop_cycles / source)
        slots[each.number] = min(each.tokens, waiting + in_flight)
    return slots


def _closing(edges: Sequence[Measured]) -> set[Measured]:
    # Edges within a cycle whose target sends before it takes from them. The remaining edges
    # are acyclic: in a cycle, each unit would have sent before the next one.
    import networkx as nx

    graph = nx.DiGraph((each.source, each.target) for each in edges)
    component_of = {
        unit: number
        for number, units in enumerate(nx.strongly_connected_components(graph))
        for unit in units
    }
    return {
        each
        for each in edges
        if not each.awaited and component_of[each.source] == component_of[each.target]
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

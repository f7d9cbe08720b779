"""The depths that StreamTensor would choose, with what our channels need besides.

Its model is of graphs without circles, of kernels that take and give one token a firing, each in
its own interval. What is no such graph is fitted to it: intervals and delays are measured at each
channel, and a channel that closes a circle is left out of the linear program and has the slots
that a run without bounds uses. Nothing is proved by these depths; they are to be timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from fabric.engine.machine_code import Counters
from fabric.retiming.retimer import Retimer
from fabric.sizing.at_most import sized_at_most
from fabric.sizing.high_water import slots_in_use
from fabric.sizing.problem import Depths, Problem
from fabric.sizing.token_measures import Measured, measured
from fabric.sizing.token_model import Precedence, credit_slots, max_tokens, start_delays

__all__ = ["paper_lp"]


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

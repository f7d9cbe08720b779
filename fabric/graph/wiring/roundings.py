"""How often numbers are rounded on their way from the loads: what a result can be off by."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from fabric.graph.values.block_scaled import BLOCK, block_format
from fabric.graph.values.fit import unit_of
from fabric.graph.values.stream_type import BufferType, TileType, TupleType, ValueType
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.mistakes import off_chip_tensor_of, rounded_in
from fabric.graph.wiring.operator import Node

__all__ = ["EXACT", "Roundings", "least_unit", "roundings_of", "worse"]

_SUMS: Final = 2.0**-20
"""Units below this are of types that sums are kept in, which round at each summand."""

_LONG: Final = 16
"""So many units the sum of some thousand products is off by, at most."""


class Roundings(NamedTuple):
    """Roundings one after the other, on the way that has most.

    Attributes:
        unit: of the narrowest type on the way: from 1 to the next number; 0 where nothing rounds.
        times: so many roundings of that unit add as much; those of wider types hardly count.
        step: of the block-scaled types that numbers are rounded to on the way, from an element to
            the next one, as a part of it; of several the root of the sum of the squares. 0 without.
        ties: the share of numbers that are so close to the middle of two elements that what was
            rounded before decides which of them they become.
    """

    unit: float
    times: float
    step: float = 0.0
    ties: float = 0.0

    @property
    def variance(self) -> float:
        """The square of what they come to: roundings are independent, so their squares add."""
        return self.times * self.unit**2

    def then(self, unit: float, more: int) -> Roundings:
        """Return these and ``more`` of ``unit``."""
        if not unit or not more:
            return self
        widest = max(unit, self.unit)
        times = (self.variance + more * unit**2) / widest**2
        return self._replace(unit=widest, times=times)

    def to_blocks(self, step: float) -> Roundings:
        """Return these and a rounding to a block-scaled type.

        Whoever computes what is expected rounds to that type, too. The two differ only where
        numbers are at a tie, and what is exact has none that would be decided in two ways.
        """
        # A number that differs is in every sum over its block, and is so much of it at the root of
        # the mean square.
        before = math.sqrt(self.variance) + self.step * min(1.0, math.sqrt(BLOCK) * self.ties)
        if not before:
            return self
        ties = min(1.0, self.ties + before / (step / 2))
        return self._replace(step=math.hypot(self.step, step), ties=ties)


EXACT: Final = Roundings(0.0, 0.0)


def least_unit(unit: float) -> float:
    """Return what counts as the unit of a type, whose own is ``unit``: of a sum where it is one."""
    return unit * _LONG if unit < _SUMS else unit


def roundings_of(plan: Plan) -> dict[Node, Roundings]:
    """Return what the numbers that each node of ``plan`` sends or stores have gone through.

    What is written to off-chip memory and read again there has come the whole way. Of a circle
    each operator counts once: how often data go round it is not known.
    """
    known: dict[Node, Roundings] = {}
    before = _before(plan)
    entered: set[Node] = set()
    for last in plan.nodes:
        waiting = [last]
        while waiting:
            node = waiting[-1]
            missing = [each for each in before[node] if each not in entered]
            if node not in entered and missing:
                entered.add(node)
                waiting += missing
                continue
            entered.add(node)
            waiting.pop()
            if node not in known:
                come = [known[each] for each in before[node] if each in known]
                known[node] = _through(node, max(come, key=worse, default=EXACT))
    return known


def worse(roundings: Roundings) -> tuple[float, float, float]:
    """Return a key by which one way is worse than another."""
    return roundings.step, roundings.ties, roundings.variance


def _through(node: Node, come: Roundings) -> Roundings:
    if not node.outputs or node.operator.off_chip == "write":
        return come
    dtypes = [each for output in node.outputs for each in _dtypes(output.value)]
    count = rounded_in(node.operator)
    come = come.then(least_unit(max(map(unit_of, dtypes), default=0.0)), count)
    steps = [form.step for each in dtypes if (form := block_format(each)) is not None]
    # What is read from memory in a block-scaled type has its form from whoever wrote it.
    is_read = node.operator.off_chip is not None
    return come.to_blocks(max(steps)) if steps and count and not is_read else come


def _dtypes(value: ValueType) -> Iterator[np.dtype]:
    match value:
        case TileType():
            yield value.dtype
        case TupleType():
            for item in value.items:
                yield from _dtypes(item)
        case BufferType():
            yield value.tile.dtype


def _before(plan: Plan) -> dict[Node, list[Node]]:
    """Return the nodes whose numbers each node reads, in edge order, those in memory last."""
    before: dict[Node, list[Node]] = defaultdict(list)
    writers: dict[int, list[Node]] = defaultdict(list)
    readers: list[tuple[Node, int]] = []
    for edge in plan.edges:
        # What is no float number is not rounded: choices, counts, addresses.
        if any(unit_of(each) or block_format(each) for each in _dtypes(edge.type.value)):
            before[edge.consumer].append(edge.producer)
    for node in plan.nodes:
        if node.operator.off_chip is None:
            continue
        tensor = off_chip_tensor_of(node)
        if tensor is None or tensor.source is None:
            continue
        if node.operator.off_chip == "write":
            writers[id(tensor.source)].append(node)
        else:
            readers.append((node, id(tensor.source)))
    for node, source in readers:
        before[node] += writers[source]
    return before

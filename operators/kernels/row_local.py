"""Calls that work on each tile alone: single numbers, and rows where a tile holds them whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Stream, TileType
from operators.functions.steps import Chain, Placed, Step, renumbered, shapes
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.rearranging import placed
from operators.kernels.tensors import Computed
from operators.map import Map
from operators.streams.dimensions import redimensioned

__all__ = [
    "RowLocal",
    "row_local",
    "same_operand",
]


class RowLocal(Kernel):
    """A Map of a chain of steps over the tiles of operands that come in one order.

    Attributes:
        chain: the steps.
    """

    family: ClassVar = "elementwise"

    def __init__(
        self, name: str, chain: Chain, operands: Sequence[Operand], result: Computed
    ) -> None:
        """Apply ``chain`` to tiles of operands; what it gives are the tiles of ``result``."""
        self.name = name
        self.chain = chain
        self.operands = tuple(operands)
        self.results = (result,)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (result,) = self.results
        assert isinstance(result, Computed)
        dims = 1, *result.layout.trips
        streams = [redimensioned(each, dims) for each in inputs if isinstance(each, Stream)]
        return (Map(self.chain, name=self.name)(*streams),)


def row_local(
    name: str, operands: Sequence[Operand], steps: Sequence[Step], result: Computed
) -> RowLocal:
    """Return the kernel of ``steps`` that read operands, numbered from 0, and steps before them.

    Args:
        name: of its operator.
        operands: whose tiles broadcast to those of the result, or to what the steps make of them.
        steps: the last one gives the result.
        result: has as many tiles as each operand.
    """
    different: list[Operand] = []
    values: list[int] = []
    for operand in operands:
        own = replace(operand, rearranges=True)
        same = (i for i, other in enumerate(different) if same_operand(own, other))
        values.append(next(same, len(different)))
        if values[-1] == len(different):
            different.append(own)
    chained: list[Step] = []
    shown = list(range(len(different)))
    for value, operand in enumerate(different):
        step = _placed(value, operand)
        if step is not None:
            chained.append(step)
            shown[value] = len(different) + len(chained) - 1
    first = len(different) + len(chained)
    numbers = [*(shown[value] for value in values), *range(first, first + len(steps))]
    chained += [renumbered(step, numbers) for step in steps]
    rows, cols = result.layout.rows, result.layout.cols
    tiles = [each.pulled().layout for each in different]
    found = shapes([(each.rows, each.cols) for each in tiles], chained)
    if found[-1] != (rows, cols):
        # All operands are repeated: what comes is one row or one column.
        held = np.arange(math.prod(found[-1])).reshape(found[-1])
        places = tuple(np.broadcast_to(held, (rows, cols)).reshape(-1).tolist())
        chained.append(Placed((len(found) - 1,), result.dtype, rows, cols, places))
    return RowLocal(name, Chain(len(different), tuple(chained)), different, result)


def _placed(value: int, operand: Operand) -> Placed | None:
    """Return the step that puts an operand's elements in their places; None where they are."""
    pulled = operand.pulled()
    tile = TileType(pulled.layout.rows, pulled.layout.cols, operand.view.dtype)
    return placed(value, tile, pulled.places, broadcasts=operand.broadcasts)


def same_operand(one: Operand, other: Operand) -> bool:
    """Whether two kernels, or one twice, read the same tiles in the same order."""
    return (
        one.view.source is other.view.source
        and one.view.steps == other.view.steps
        and one.layout == other.layout
    )

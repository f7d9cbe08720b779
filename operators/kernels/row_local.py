"""Calls that need one tile at a time: on numbers, on whole rows, and moves of elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric import Stream, TileType
from operators.functions.steps import Chain, Placed, Step, renumbered, shapes
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.tensors import Computed
from operators.map import Map
from operators.shape import redimensioned
from operators.streams.reading import tile_of


class RowLocal(Kernel):
    """A Map of a chain of steps over tiles; all operands have one order."""

    family: ClassVar = "elementwise"

    def __init__(
        self, name: str, chain: Chain, operands: Sequence[Operand], result: Computed
    ) -> None:
        super().__init__(name, operands, result)
        self.chain = chain

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        (result,) = self.results
        assert isinstance(result, Computed)
        dims = 1, *result.layout.trips
        streams = [redimensioned(stream, dims) for stream in inputs if isinstance(stream, Stream)]
        return (Map(self.chain, name=self.name)(*streams),)


def row_local(
    name: str, operands: Sequence[Operand], steps: Sequence[Step], result: Computed
) -> RowLocal:
    """Return the kernel of ``steps``, which read operands and earlier steps by their numbers.

    The tiles of operands broadcast to the tiles of the result, or to a step's result. Operands and
    result have equal numbers of tiles.
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
    pulls = [each.pulled() for each in different]
    tiles = [(pull.layout.rows, pull.layout.cols) for pull in pulls]
    arrays = list(range(len(different)))
    for value, (operand, pulled) in enumerate(zip(different, pulls, strict=True)):
        tile = TileType(*tiles[value], operand.view.dtype)
        step = placed(value, tile, pulled.places, broadcasts=operand.broadcasts)
        if step is not None:
            chained.append(step)
            arrays[value] = len(different) + len(chained) - 1
    first = len(different) + len(chained)
    numbers = [*(arrays[value] for value in values), *range(first, first + len(steps))]
    chained += [renumbered(step, numbers) for step in steps]
    rows, cols = result.layout.rows, result.layout.cols
    sizes = shapes(tiles, chained)
    if sizes[-1] != (rows, cols):
        # All operands are broadcast, so the steps return one row or one column.
        elements = np.arange(math.prod(sizes[-1])).reshape(sizes[-1])
        places = tuple(np.broadcast_to(elements, (rows, cols)).reshape(-1).tolist())
        chained.append(Placed((len(sizes) - 1,), result.dtype, rows, cols, places))
    return RowLocal(name, Chain(len(different), tuple(chained)), different, result)


def same_operand(one: Operand, other: Operand) -> bool:
    """Whether two operands are the same tiles in the same order."""
    return (
        one.view.source is other.view.source
        and one.view.steps == other.view.steps
        and one.layout == other.layout
    )


def rearranged(stream: Stream, places: NDArray[np.int64], *, broadcasts: tuple[int, ...]) -> Stream:
    """Return tiles with the elements of ``stream`` at ``places``, [rows, cols].

    ``places`` are row-major numbers in a tile. With 0 in ``broadcasts``, one row may replace equal
    rows; with 1, one column may replace equal columns.
    """
    step = placed(0, tile_of(stream), places, broadcasts=broadcasts)
    return stream if step is None else Map(Chain(1, (step,)))(stream)


def placed(
    value: int, tile: TileType, places: NDArray[np.int64], *, broadcasts: tuple[int, ...]
) -> Placed | None:
    """Return the step that moves the elements of tile ``value`` to ``places``; None if not needed.

    ``places`` and ``broadcasts`` are as in ``rearranged``.
    """
    for axis in broadcasts:
        first = places.take([0], axis)
        if (places == first).all():
            places = first
    rows, cols = places.shape
    flat = places.reshape(-1)
    in_order = np.array_equal(flat, np.arange(tile.rows * tile.cols))
    if in_order and (rows, cols) == (tile.rows, tile.cols):
        return None
    at = None if in_order else tuple(flat.tolist())
    return Placed((value,), tile.dtype, rows, cols, at)

"""Matrix products: a Map over pairs of tiles, or sums of them over tiles of the inner dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Stream
from operators.accum import Accum
from operators.expand import Repeat
from operators.functions.matmul import LeadingCols, Matmul, MatmulSum, ScaledAdd
from operators.functions.retile import RetileCol
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.nest import Nest
from operators.kernels.tensors import Computed, View
from operators.map import Map
from operators.of_the_fabric import Broadcast
from operators.reassemble import Reassemble
from operators.selectors import Selectors
from operators.streams.dimensions import redimensioned

__all__ = ["Product"]


class Product(Kernel):
    """``left @ right``, or ``left @ right.T``, with something added before it is rounded.

    What passes off-chip memory, where the operands come from there, of R tiles of rows, C tiles of
    columns and B batches: in ``row`` order the left operand once and the right one R times; in
    ``weight`` order both once, all rows and a tile of tn x K being kept; in ``output`` order the
    left one C times (once where K is not tiled) and the right one R times. What a kernel gives is
    kept on chip instead of being read again. Where there is no room to keep what comes from memory,
    that is read again.

    Where the nest has several units, each has its columns of the weights, which it loads itself;
    their tiles come together in turn.

    Attributes:
        nest: the loops.
        transposed: the right operand is stored by rows of its columns.
        added: factors of the product and of what is added to it.
        keeps: columns of the result, where the right operand has been padded with others.
    """

    family: ClassVar = "product"

    def __init__(
        self,
        name: str,
        nest: Nest,
        left: View,
        right: View,
        dtype: np.dtype,
        *,
        transposed: bool = True,
        added: View | None = None,
        factors: tuple[float, float] = (1.0, 1.0),
        keeps: int | None = None,
    ) -> None:
        """Multiply as ``nest`` says.

        Args:
            name: of its operators.
            nest: the loops.
            left: ``[*B, *M, K]``.
            right: ``[*B, N, K]``, or ``[*B, K, N]`` where not ``transposed``; ``[N, K]`` of several
                units.
            dtype: of the result.
            transposed: the right operand is stored by rows of its columns.
            added: of a shape that broadcasts to the result's.
            factors: of the product, and of what is added.
            keeps: of the N columns; the others are padding, which the result lacks.
        """
        self.name, self.nest, self.transposed = name, nest, transposed
        self.factors, self.keeps = factors, keeps
        once = nest.order == "weight"
        reading = nest.reading_right(right.shape[:-2], transposed=transposed)
        rights, addends = [right], [] if added is None else [added.expanded(nest.result.shape)]
        if nest.units > 1:
            rights = _dealt(right, nest, 0)
            addends = [one for each in addends for one in _dealt(each, nest, nest.last)]
        self.operands = (
            Operand(left, nest.reading_left, resident=nest.order != "output"),
            *(Operand(each, reading, resident=once) for each in rights),
            *(Operand(each, nest.of_unit, broadcasts=(0, 1)) for each in addends),
        )
        result = nest.result if keeps is None else nest.whole_rows(keeps)
        self.results = (Computed(name, result.shape, dtype, result),)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        streams = [each for each in inputs if isinstance(each, Stream)]
        units = self.nest.units
        left, rights, addends = streams[0], streams[1 : units + 1], streams[units + 1 :]
        lefts = [left] if units == 1 else Broadcast(units)(left)
        given = [
            self._unit(self.name if units == 1 else f"{self.name}_{unit}", *each)
            for unit, each in enumerate(zip(lefts, rights, addends or (None,) * units, strict=True))
        ]
        product = given[0] if units == 1 else self._in_turn(given)
        return (product if self.keeps is None else self._cut(product, self.keeps),)

    def _unit(self, name: str, left: Stream, right: Stream, addend: Stream | None) -> Stream:
        """Wire one unit and what it adds."""
        nest = self.nest
        left, right = self._repeated(left), self._repeated(right)
        product: Stream
        if nest.groups:
            summed = MatmulSum(transposed=self.transposed, unrounded=addend is not None)
            product = Accum(summed, nest.groups, name=name)(left, right)
        else:
            matmul = Matmul(transposed=self.transposed, unrounded=addend is not None)
            product = Map(matmul, name=name)(left, right)
        if addend is None:
            return product
        return Map(ScaledAdd(*self.factors), name=f"{name}_add")(product, addend)

    def _in_turn(self, given: Sequence[Stream]) -> Stream:
        """Put the tiles of all units in one stream, one of each in turn."""
        units, count = len(given), self.nest.of_unit.count
        turns = np.tile(np.arange(units), count)
        parts = [redimensioned(each, (count,)) for each in given]
        order = Selectors(turns[:, np.newaxis], units, name=f"{self.name}_turns")()
        joined = Reassemble(name=f"{self.name}_join")(parts, order)
        return redimensioned(joined, (1, *self.nest.result.trips))

    def _repeated(self, stream: Stream) -> Stream:
        """Repeat each tile for the innermost loops that its reading leaves out."""
        trips = self.nest.trips
        missing = math.prod(trips[stream.rank :])
        if missing > 1:
            stream = Repeat(missing)(stream)
        return redimensioned(stream, (1, *trips))

    def _cut(self, product: Stream, cols: int) -> Stream:
        """Join tiles to whole rows, without the columns that are padding."""
        nest = self.nest
        rows_first = replace(nest, order="row").result
        if not nest.result.same_order(rows_first):
            from operators.convert import Convert

            product = Convert(rows_first)(product.laid_out(nest.result))
        product = Accum(RetileCol(), name=f"{self.name}_join")(
            redimensioned(product, (1, *rows_first.trips))
        )
        return Map(LeadingCols(cols), name=f"{self.name}_cut")(product)


def _dealt(view: View, nest: Nest, axis: int) -> list[View]:
    """Return the part of each unit: tiles of columns, which lie along ``axis``, in turn."""
    lead, size, behind = view.shape[:axis], view.shape[axis], view.shape[axis + 1 :]
    turns = size // (nest.cols * nest.units)
    dealt = view.reshaped((*lead, turns, nest.units, nest.cols, *behind))
    return [
        dealt.sliced(axis + 1, unit, 1).reshaped((*lead, size // nest.units, *behind))
        for unit in range(nest.units)
    ]

"""Matrix products: a Map over pairs of tiles, or sums of them over tiles of the inner dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Layout, Stream
from operators.accum import Accum
from operators.expand import Repeat
from operators.functions.matmul import Matmul, MatmulSum
from operators.functions.retile import RetileCol
from operators.functions.scaled import LeadingCols, ScaledAdd
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.nest import Nest
from operators.kernels.tensors import Computed, View
from operators.map import Map
from operators.streams.dimensions import redimensioned

__all__ = ["Product"]


class Product(Kernel):
    """``left @ right``, or ``left @ right.T``, with something added before it is rounded.

    What passes off-chip memory, where the operands come from there, of R tiles of rows, C tiles of
    columns and B batches: in ``row`` order the left operand once and the right one R times; in
    ``weight`` order the left one C times and the right one once, a tile of tn x K being kept; in
    ``output`` order the left one C times (once where K is not tiled) and the right one R times.
    What a kernel gives is kept on chip instead of being read again.

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
            right: ``[*B, N, K]``, or ``[*B, K, N]`` where not ``transposed``.
            dtype: of the result.
            transposed: the right operand is stored by rows of its columns.
            added: of a shape that broadcasts to the result's.
            factors: of the product, and of what is added.
            keeps: of the N columns; the others are padding, which the result lacks.
        """
        self.name, self.nest, self.transposed = name, nest, transposed
        self.factors, self.keeps = factors, keeps
        once, result = nest.order == "weight", nest.result
        reading = nest.reading_right(right.shape[:-2], transposed=transposed)
        self.operands = (
            Operand(left, nest.reading_left, resident=nest.order == "row"),
            Operand(right, reading, resident=once),
            *(() if added is None else (_added(added, result),)),
        )
        if keeps is not None:
            result = nest.whole_rows(keeps)
        self.results = (Computed(name, result.shape, dtype, result),)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        streams = [each for each in inputs if isinstance(each, Stream)]
        left, right = map(self._repeated, streams[:2])
        nest, adds = self.nest, len(streams) > 2
        product: Stream
        if nest.groups:
            summed = MatmulSum(transposed=self.transposed, unrounded=adds)
            product = Accum(summed, nest.groups, name=self.name)(left, right)
        else:
            matmul = Matmul(transposed=self.transposed, unrounded=adds)
            product = Map(matmul, name=self.name)(left, right)
        if adds:
            product = Map(ScaledAdd(*self.factors), name=f"{self.name}_add")(product, streams[2])
        return (product if self.keeps is None else self._cut(product, self.keeps),)

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


def _added(view: View, result: Layout) -> Operand:
    return Operand(view.expanded(result.shape), result, broadcasts=True)

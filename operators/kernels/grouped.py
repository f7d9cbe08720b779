"""Products of each expert's rows with the expert's own matrix, and calls on the rows' numbers.

All loads of one matrix are wired before the loads of the next matrix, since the off-chip memory
serves loads in this order.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, sections 5.2 (dynamic tiling) and 5.3
(configuration time-multiplexing).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from fabric import Stream
from operators.accum import Accum
from operators.addresses import ExpertAddresses
from operators.expand import Repeat
from operators.functions.matmul import Matmul, MatmulSum
from operators.functions.steps import Chain
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.routed import Routed, RoutedStreams, Spread, as_packed, as_rows, form_of
from operators.kernels.tensors import Opaque
from operators.map import Map
from operators.off_chip_load import LinearOffChipLoad, RandomOffChipLoad
from operators.shape import Flatten
from operators.tiles.tensor import Tensor


class GroupedProduct(Kernel):
    """``x @ w[e]`` for the rows x of each expert e and for one or several w.

    A tile of whole rows is kept while w is read in tiles of columns; the result has tiles of
    columns. A tile of n columns is multiplied by n rows of w, and the products are summed to whole
    rows. Weights are read once for each tile of rows. The weights of an expert without rows are not
    read.

    Attributes:
        tile: columns of a tile of w if rows are whole, otherwise rows of a tile of w; a divisor.
        transposed: weights are stored as [..., N, K].
    """

    family: ClassVar = "grouped product"

    def __init__(
        self,
        name: str,
        rows: Operand,
        weights: Sequence[Sequence[Tensor]],
        tile: int,
        results: Sequence[Opaque],
        *,
        transposed: bool = False,
    ) -> None:
        super().__init__(name, (rows,), *results)
        self.transposed, self.weights, self.tile = transposed, weights, tile

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        routed = RoutedStreams.of(self.operands[0], inputs[0])
        inner, cols = self.weights[0][0].shape[1:]
        if self.transposed:
            inner, cols = cols, inner
        summed = routed.form.spread is Spread.TILED
        tiles = (inner if summed else cols) // self.tile
        tile = (self.tile, cols) if summed else (inner, self.tile)
        if self.transposed:
            tile = tile[::-1]
        rows = routed.data  # [n, J]
        if not summed:
            rows = tuple(
                Repeat(tiles, name=f"{self.name}_repeat_r{region}")(each)
                for region, each in enumerate(rows)
            )
        readings = routed.origins
        if routed.share > 1:
            readings = tuple(ExpertAddresses(tiles)(each) for each in readings)  # [n, J, 1]
        products: list[Streams] = []
        for number, (weights, result) in enumerate(zip(self.weights, self.results, strict=True)):
            name = f"{self.name}_w{number}" if len(self.weights) > 1 else self.name
            loads = [
                _loaded(f"{name}_load_r{region}", weight, tile, tiles, reading, routed.share)
                for region, (weight, reading) in enumerate(zip(weights, readings, strict=True))
            ]  # [n, J]
            data: list[Stream] = []  # [n] of whole sums, or [n, J] of tiles of columns
            for region, factors in enumerate(zip(rows, loads, strict=True)):
                unit = f"{name}_r{region}"
                if summed:
                    data.append(Accum(MatmulSum(self.transposed), name=unit)(*factors))
                else:
                    data.append(Map(Matmul(self.transposed), name=unit)(*factors))
            products.append(routed.with_data(form_of(result), data).flat())
        return products


def _loaded(
    name: str, weight: Tensor, tile: tuple[int, int], tiles: int, reading: Stream, share: int
) -> Stream:
    if share > 1:
        loaded = RandomOffChipLoad(weight, tile, name=name)(reading)
    else:
        loaded = LinearOffChipLoad(weight, tile, (tiles, 1), (1, 1), name=name)(reading)
    return Flatten(0, 1)(loaded)


class RaggedMap(Kernel):
    """A Map over routed rows in one common form."""

    family: ClassVar = "elementwise"

    def __init__(
        self, name: str, chain: Chain, operands: Sequence[Operand], result: Opaque
    ) -> None:
        super().__init__(name, operands, result)
        self.chain = chain

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        form = form_of(self.results[0])
        operands = []
        for number, (operand, streams) in enumerate(zip(self.operands, inputs, strict=True)):
            each = RoutedStreams.of(operand, streams)
            name = f"{self.name}_of{number}"
            if form.spread is Spread.ROWS:
                each = as_rows(name, each)
            elif form.spread is Spread.PACKED:
                each = as_packed(name, each)
            operands.append(each)
        first = operands[0]
        data = []
        kind = "e" if form.packing is None else "r"
        for number, streams in enumerate(zip(*(each.data for each in operands), strict=True)):
            alike = [
                stream if stream.shape == streams[0].shape else stream.assume(*streams[0].shape)
                for stream in streams[1:]
            ]
            data.append(Map(self.chain, name=f"{self.name}_{kind}{number}")(streams[0], *alike))
        return (first.with_data(form, data).flat(),)


def common_form(forms: Sequence[Routed], *, whole_rows: bool) -> Routed:
    """Return the form in which operands are joined: tiles only if they have one packing."""
    first = forms[0]
    if any(form.packing is not first.packing for form in forms):
        return Routed(first.routing, Spread.ROWS)
    if first.spread is Spread.ROWS or all(form.spread is Spread.PACKED for form in forms):
        return first
    if whole_rows or any(form.spread is not Spread.TILED for form in forms):
        return Routed(first.routing, Spread.PACKED, first.packing)
    return first

"""Packing: rows of experts become tiles, and experts share regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from fabric import Stream
from operators.accum import Accum
from operators.eager_merge import EagerMerge
from operators.flatten import Flatten
from operators.functions.retile import RetileRow
from operators.kernels.kernel import Kernel, Operand, Streams
from operators.kernels.routed import Routed, RoutedStreams, as_rows
from operators.kernels.tensors import Opaque
from operators.reshape import Reshape

__all__ = ["Pack"]


class Pack(Kernel):
    """Pack the rows of every expert to tiles, and merge the tiles of experts that share a region.

    Tiles have ``tile_rows`` rows, the last one padded with zeros, or as many as the expert got.

    Attributes:
        tile_rows: of a tile; None for all.
    """

    family: ClassVar = "routing"

    def __init__(self, name: str, rows: Operand, tile_rows: int | None, result: Opaque) -> None:
        """Pack ``rows``."""
        self.name = name
        self.tile_rows = tile_rows
        self.operands = (rows,)
        self.results = (result,)

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        source, result = self.operands[0].view.source, self.results[0]
        assert isinstance(source, Opaque)
        assert isinstance(result, Opaque)
        assert isinstance(source.form, Routed)
        assert isinstance(result.form, Routed)
        assert isinstance(inputs[0], tuple)
        assert result.form.packing is not None
        rows = as_rows(self.name, RoutedStreams.of(source.form, inputs[0]))
        packed = [self._packed(expert, each) for expert, each in enumerate(rows.data)]
        regions = result.form.packing.regions
        share = len(packed) // regions
        origins = tuple(packed)
        if share > 1:
            # First come, first served.
            merged = [
                EagerMerge(name=f"{self.name}_merge_r{region}")(packed[first : first + share])
                for region, first in enumerate(range(0, len(packed), share))
            ]
            packed = [tiles for tiles, _ in merged]
            origins = tuple(origin for _, origin in merged)
        streams = RoutedStreams(result.form, tuple(packed), origins=origins, rows=rows.rows)
        return (streams.flat(),)

    def _packed(self, expert: int, rows: Stream) -> Stream:
        """[D_i] of 1xC -> [n_i] of NxC, or [1 or 0] of D_i x C."""
        name = f"{self.name}_e{expert}"
        if self.tile_rows is None:
            chunks = Flatten(0, 1)(Reshape(1, outermost=True)(rows)[0])  # [1 or 0, D_i]
        else:
            chunks = Reshape(self.tile_rows, pad=0.0, outermost=True)(rows)[0]
            chunks = Flatten(1, 2)(chunks)  # [n_i, N]
        return Accum(RetileRow(), name=name)(chunks)

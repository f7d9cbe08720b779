"""What reads and writes pieces off chip, as the paper's hardware does: with a tag for each.

Source: the hardware description of the SwiGLU layer, anonymous7484/step-artifact-eval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from fabric import Stream, StreamType, Tile
from fabric.extend import Costs, OffChipTensor, Ports, Wiring, row_bytes
from operators.linear_off_chip_load import LinearOffChipLoad
from operators.pieces.units import Pieces
from operators.tiles.grid import Grid
from operators.tiles.row_major import positions, row_major_strides
from operators.tiles.tensor import Tensor
from operators.tiles.view import walk

__all__ = ["LoadPieces", "StorePieces"]


@dataclass(frozen=True)
class LoadPieces(Pieces):
    """Reads the tiles of a load piece by piece; a stop closes the dimensions that end there.

    Attributes:
        load: whose tiles they are.
        by_columns: those of a tile come column by column.
    """

    conducted: ClassVar[bool] = True
    kind: ClassVar = "memory"
    off_chip: ClassVar[Literal["read", "write"] | None] = "read"

    load: LinearOffChipLoad
    by_columns: bool = False

    @property
    @override
    def roundings(self) -> int:
        return self.load.roundings

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        (pieces,) = outputs
        return Costs(load_bytes=pieces.count * pieces.value.size_bytes)

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> OffChipTensor:
        (pieces,) = outputs
        rows, cols = self.piece.rows, self.piece.cols
        assert isinstance(rows, int)
        assert isinstance(cols, int)
        piece = 1, rows * cols  # one behind the other
        shape = pieces.count, rows * cols
        return OffChipTensor(shape, self.piece.dtype, source=self, tile=piece)

    @override
    async def run(self, ports: Ports) -> None:
        (shape,) = self.shapes
        sizes = tuple(int(str(size)) for size in shape)
        tile, unit, sink = self.tile(), ports.unit, ports.sink
        size = tile.rows * row_bytes(tile.cols, tile.dtype)
        ports.announce(1, size, range(math.prod(sizes)))
        grid = Grid("LoadPieces", Tensor.of(self.load.tensor), (tile.rows, tile.cols))
        pieces, numbers = grid.tiles(ports), self._numbers(tile.rows, sizes[-2:])
        for place, (_, stop, _) in enumerate(positions(sizes)):
            await sink.reserve()
            await ports.burst(1, size, place)
            if ports.functional:
                tile = self.tile(pieces[next(numbers)].data)
            sink.put((tile, min(stop, len(sizes) - 1)))
            unit.charge(1)

    def _numbers(self, size: int, inner: tuple[int, ...]) -> Iterator[int]:
        """Yield the numbers of the pieces in their order, row-major in the tensor."""
        load = self.load
        width = Tensor.of(load.tensor).shape[-1] // size
        high, wide = load.tile[0] // size, load.tile[1] // size
        whole = Grid("LoadPieces", Tensor.of(load.tensor), load.tile).shape
        shape = whole if load.shape is None else load.shape
        strides = row_major_strides(shape) if load.strides is None else load.strides
        for number, _, _ in walk(shape, strides, load.offset):
            assert number is not None
            row, col = divmod(number, width // wide)
            for place in np.ndindex(*inner):
                down, right = reversed(place) if self.by_columns else place
                yield (row * high + down) * width + col * wide + right


@dataclass(frozen=True)
class StorePieces(Pieces):
    """Writes pieces; takes the next one when those before have been handed over.

    Attributes:
        output: its name.
        by_columns: those of a tile come column by column.
        shape: of the tensor that is stored; that of the tiles where None.
    """

    conducted: ClassVar[bool] = True
    kind: ClassVar = "memory"
    off_chip: ClassVar[Literal["read", "write"] | None] = "write"

    output: str
    by_columns: bool
    shape: tuple[int, ...] | None

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        wiring.store(self.output)
        return ()

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        (pieces,) = inputs
        return Costs(store_bytes=pieces.count * pieces.value.size_bytes)

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> OffChipTensor:
        (pieces,) = inputs
        rows, cols = self.piece.rows, self.piece.cols
        assert isinstance(rows, int)
        assert isinstance(cols, int)
        piece = 1, rows * cols
        shape = pieces.count, rows * cols
        return OffChipTensor(shape, self.piece.dtype, output=self.output, tile=piece)

    @override
    async def run(self, ports: Ports) -> None:
        unit, number = ports.unit, 0
        stored: list[np.ndarray] = []
        top = len(ports.input_types[0].shape) - 1
        while (element := await ports.source.receive()) is not None:
            tile, stop = element
            assert isinstance(tile, Tile)
            size = tile.rows * row_bytes(tile.cols, tile.dtype)
            if tile.data is not None:
                stored.append(tile.data)
            if stop >= top:
                unit.off_chip_bytes += size  # the run ends when the last piece has been taken
                continue
            unit.charge(1)
            await ports.burst(1, size, number)
            number += 1
        if ports.functional:
            ports.stored[self.output] = self._tensor(ports.input_types[0], stored)

    def _tensor(self, source: StreamType, stored: list[np.ndarray]) -> np.ndarray:
        """Return what is stored, tiles side by side as a ``LinearOffChipStore`` puts them."""
        sizes = [int(str(size)) for size in source.shape]
        outer, width = math.prod(sizes[:-3]), sizes[-3]
        rows, cols = stored[0].shape
        pieces = np.stack(stored).reshape(outer, width, *sizes[-2:], rows, cols)
        if self.by_columns:
            pieces = pieces.swapaxes(2, 3)
        high, wide = pieces.shape[2:4]
        matrix = pieces.transpose(0, 2, 4, 1, 3, 5).reshape(outer * high * rows, -1)
        assert matrix.shape[1] == width * wide * cols
        return matrix if self.shape is None else matrix.reshape(self.shape)

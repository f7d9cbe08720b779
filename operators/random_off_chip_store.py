"""RandomOffChipStore: write tiles to the places in a tensor that a stream of addresses names.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from fabric import ShapeError, Stream, StreamType, Tile, TileType
from fabric.extend import (
    BoolType,
    Bounds,
    Costs,
    OffChipTensor,
    Operator,
    Ports,
    Rates,
    Wiring,
    Work,
    check_same_shape,
    dtype_name,
    row_bytes,
)
from operators.streams.lockstep import Lockstep
from operators.tiles.grid import Grid
from operators.tiles.integers import check_integers
from operators.tiles.scratch import Scratch
from operators.tiles.tensor import Elements, Tensor

__all__ = ["RandomOffChipStore"]


@dataclass(frozen=True)
class RandomOffChipStore(Operator):
    """Write one tile for every address: address n is tile n, in row-major order of the tiles.

    In functional mode the output is the tensor with the tiles written into it. If the tensor is a
    view of another one (``Tensor.viewed``), the output is that other tensor. Stores with the same
    name and the same tensor write to the same output. If two of them write to the same place, the
    later acknowledgement wins; in the same cycle the operator wired later wins.

    Shapes:
        addresses: [D_a, ..., D_0] of 1x1 tiles; data: the same of tiles; output, which may stay
        unread: the same of Bool, an acknowledgement for each.

    Timing:
        As LinearOffChipStore. The slots of address and tile are freed when the acknowledgement is
        sent.

    Memory:
        On chip, one tile while it is under way; the authors' accounting counts ``buffered`` tiles.
        Off chip, every tile.

    Attributes:
        output: the name of the output.
        tensor: the tensor before the first write; a Scratch is written in place and is no output.
        tile: rows and columns of a tile; they divide the tensor's last two dimensions.
        buffered: how many tiles the authors' accounting reserves.

    Example:
        >>> with Program("example", mode="functional") as program:
        ...     rows = Flatten(0, 1)(LinearOffChipLoad(np.ones((2, 32)), tile=(1, 32))())
        ...     places = Metadata(np.array([3, 1]))()
        ...     RandomOffChipStore("y", np.zeros((4, 32)), tile=(1, 32))(places, rows)
        >>> program.expect(y=lambda: np.array([0, 1, 0, 1])[:, None] * np.ones((4, 32)))
        >>> print(simulate(program).verified)
        True

    Family:
        Off-chip memory (Table 3).
    """

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    carries_numbers: ClassVar[bool] = True
    kind: ClassVar = "memory"
    off_chip: ClassVar[Literal["read", "write"] | None] = "write"
    secondary_outputs: ClassVar = (0,)

    output: str
    tensor: Tensor | np.ndarray
    tile: tuple[int, int]
    buffered: Annotated[int, Bounds(0)] = 1

    def __call__(self, addresses: Stream, data: Stream) -> Stream:
        """Store ``data`` and return the stream of acknowledgements."""
        (acknowledgements,) = self.wire(addresses, data)
        return acknowledgements

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        addresses, data = inputs
        check_integers("RandomOffChipStore", addresses)
        check_same_shape("RandomOffChipStore", addresses, data)
        grid, value = self._grid, data.value
        if not isinstance(value, TileType) or (value.rows, value.cols) != grid.tile:
            rows, cols = grid.tile
            raise ShapeError(f"RandomOffChipStore stores {data}: expected tiles of {rows}x{cols}")
        is_scratch = isinstance(grid.tensor, Scratch)
        stated = grid.element_type(wiring.hardware) if is_scratch else grid.tensor.dtype
        if stated is not None and stated != value.dtype:
            raise ShapeError(
                f"RandomOffChipStore stores {data} in a tensor of {dtype_name(stated)}: "
                "expected one element type"
            )
        grid.check(value.dtype)
        if not is_scratch:
            wiring.store(self.output, self.tensor, value)
        return (StreamType(addresses.shape, BoolType()),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        _, data = inputs
        tile_bytes = data.value.size_bytes
        traffic = data.count * tile_bytes
        return Costs(
            store_bytes=traffic,
            on_chip_bytes=2 * tile_bytes,
            artifact_store_bytes=traffic,
            artifact_on_chip_bytes=self.buffered * tile_bytes,
        )

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> OffChipTensor:
        tile = inputs[1].value
        assert isinstance(tile, TileType)
        tensor = Tensor.of(self.tensor)
        is_scratch = isinstance(tensor, Scratch)
        return OffChipTensor(
            tensor.base.shape,
            tile.dtype,
            source=tensor.base if is_scratch else None,
            output=None if is_scratch else self.output,
            tile=self.tile,
            width=tensor.shape[-1],
        )

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        return replace(rates.bursts(inputs[-1]), passes=True)

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink, grid = ports.unit, ports.sink, self._grid
        # Held to the end: loads of the same tensor find its data made.
        elements = grid.tensor.elements()
        matrix = self._stored(ports, grid, elements) if ports.functional else None
        written = (
            (grid.tensor.base, self.output) if isinstance(grid.tensor, Scratch) else self.output
        )
        inputs = Lockstep[Tile](ports, sink, held=True)
        async for (address, tile), stop in inputs:
            place = grid.checked(address, ports)
            size_bytes = tile.size_bytes
            await ports.on_chip.allocate(unit, size_bytes, "a tile")
            await ports.burst(tile.rows, row_bytes(tile.cols, tile.dtype), place)
            ports.on_chip.release(unit, size_bytes, unit.now)
            if matrix is not None and ports.stored.stays(written, place, unit):
                matrix[grid.slices(place)] = tile.data
            await sink.send((True, stop))
            inputs.take()
            ports.turn()

    def _stored(self, ports: Ports, grid: Grid, elements: Elements) -> Any:
        """Return the matrix that all stores of this name write to."""
        value = ports.input_types[1].value
        assert isinstance(value, TileType)
        if isinstance(grid.tensor, Scratch):
            return grid.tensor.in_run(ports, value.dtype)
        before = grid.matrix(ports, elements, value.dtype)
        if self.output not in ports.stored:
            ports.stored[self.output] = before.reshape(grid.tensor.base.shape).copy()
        return ports.stored[self.output].reshape(before.shape)

    @property
    def _grid(self) -> Grid:
        return Grid("RandomOffChipStore", Tensor.of(self.tensor), self.tile)

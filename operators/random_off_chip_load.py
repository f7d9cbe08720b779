"""RandomOffChipLoad: read the tiles of a tensor that a stream of addresses names.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from fabric import Stream, StreamType, Tile, TileType
from fabric.extend import Ports, Rates, Wiring, Work
from operators.streams.values import Values
from operators.tiles.grid import Grid
from operators.tiles.integers import check_integers
from operators.tiles.load import Load, hand_out
from operators.tiles.tensor import Tensor

__all__ = ["RandomOffChipLoad"]


@dataclass(frozen=True)
class RandomOffChipLoad(Load):
    """Read one tile for every address: address n is tile n, in row-major order of the tiles.

    Shapes:
        addresses: [D_a, ..., D_0] of 1x1 tiles; output: [D_a, ..., D_0] of tiles.

    Timing:
        As LinearOffChipLoad. The slot of an address is freed before its tile is read.

    Memory:
        On chip, one tile while it is under way. Off chip, each tile that is read.

    Attributes:
        tensor: the tensor that is read.
        tile: rows and columns of a tile; they divide the tensor's last two dimensions.

    Example:
        >>> x = np.arange(256.0).reshape(8, 32)
        >>> with Program("example", mode="functional") as program:
        ...     rows = RandomOffChipLoad(x, tile=(1, 32))(Metadata(np.array([[6], [0], [6]]))())
        ...     LinearOffChipStore("y")(rows)
        >>> program.expect(y=lambda: x[[6, 0, 6]])
        >>> print(rows.type)
        [1, 3, 1] of 1x32 bfloat16
        >>> print(simulate(program).verified)
        True

    Family:
        Off-chip memory (Table 3).
    """

    conducted: ClassVar[bool] = True
    turns: ClassVar[bool] = True
    no_order: ClassVar[str] = "addresses decide which tiles it reads"

    def __call__(self, addresses: Stream) -> Stream:
        """Return the stream of tiles."""
        (tiles,) = self.wire(addresses)
        return tiles

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        (addresses,) = inputs
        check_integers("RandomOffChipLoad", addresses)
        dtype = self._grid.element_type(wiring.hardware)
        return (StreamType(addresses.shape, TileType(*self.tile, dtype)),)

    @override
    def work(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...], rates: Rates
    ) -> Work:
        return replace(rates.bursts(outputs[0], in_memory=True), passes=True)

    @override
    async def run(self, ports: Ports) -> None:
        grid = self._grid
        tiles = grid.tiles(ports)
        async for address, stop in Values[Tile](ports.source, ports.sink):
            await hand_out(ports, tiles, grid.checked(address, ports), stop)
            ports.turn()

    @property
    @override
    def carries_numbers(self) -> bool:  # type: ignore[override]
        """Whether all tiles are alike: one with an integer in it is what its address says."""
        return not self._grid.has_integers

    @property
    def _grid(self) -> Grid:
        return Grid("RandomOffChipLoad", Tensor.of(self.tensor), self.tile)

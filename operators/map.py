"""Map: apply a function to every element of one stream, or of several of one shape.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.2, Table 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override

from fabric import (
    BareStop,
    ComputeOperator,
    Costs,
    Ports,
    Stream,
    StreamType,
    TileType,
    Wiring,
    check_same_shape,
)
from operators.functions.base import Function, tile_types
from operators.pairing import peek_all, take_all

__all__ = ["Map"]


@dataclass(frozen=True)
class Map(ComputeOperator):
    """Apply ``function`` to every element.

    Shapes:
        inputs: [D_a, ..., D_0] of tiles, all the same; output: the same.

    Timing:
        Per element, the longest of loading the inputs that are in memory (added up), computing,
        and storing the output where ``to_memory``. Inputs are released when the output is sent.

    Attributes:
        function: from tiles to a tile.
        to_memory: the output is written to a memory unit, and its readers load it from there.
    """

    function: Function
    to_memory: bool = False

    def __call__(self, *inputs: Stream) -> Stream:
        """Return the stream of results."""
        (result,) = self.wire(*inputs)
        return result

    @property
    @override
    def has_arithmetic(self) -> bool:
        return self.function.fixed_cycles is None

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        name = f"Map({type(self.function).__name__})"
        tiles = self._tiles(name, inputs)
        for other in inputs[1:]:
            check_same_shape(name, inputs[0], other)
        return (StreamType(inputs[0].shape, self.function.infer(*tiles)),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        tiles = self._tiles("Map", inputs)
        return Costs(
            on_chip_bytes=self.function.operand_bytes(*tiles),
            flops=inputs[0].count * self.function.flops(*tiles),
        )

    def _tiles(self, name: str, inputs: Sequence[Stream | StreamType]) -> tuple[TileType, ...]:
        values = tuple(each.value for each in inputs)
        return tile_types(name, values, len(values), mixed_types=self.function.mixed_types)

    @override
    async def run(self, ports: Ports) -> None:
        function, sink, unit = self.function, ports.sink, ports.compute_unit
        while (found := await peek_all(ports)) is not None:
            elements, stop = found
            tiles = [value for value, _ in elements]
            if isinstance(tiles[0], BareStop):
                await sink.send_bare(stop, tiles[0].empty_dimension)
                take_all(ports)
                continue
            result = function.apply(*tiles).placed(in_memory=self.to_memory)
            load = sum(unit.transfer(tile.size_bytes) for tile in tiles if tile.in_memory)
            store = unit.transfer(result.size_bytes) if self.to_memory else 0
            unit.charge(max(load, function.cycles(unit, *tiles), store))
            await sink.send((result, stop))
            take_all(ports)

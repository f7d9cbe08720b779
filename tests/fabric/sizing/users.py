from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from fabric import Stream, StreamType, Tile, TileType
from fabric.extend import OffChipTensor, Operator, Ports, Wiring

TILE = TileType(2, 16, np.dtype("float32"))


@dataclass(frozen=True)
class Late(Operator):
    count: int
    wait: int
    times: int = 1

    def __call__(self) -> Stream:
        return self.wire()[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((self.times, self.count), TILE),)

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(self.times):
            for number in range(self.count):
                stop = int(number == self.count - 1)
                tile = Tile(2, 16, TILE.dtype, None)
                await ports.sink.send_at((tile, stop), ports.now + self.wait)
                ports.unit.charge(1)


@dataclass(frozen=True)
class Keep(Operator):
    kind: ClassVar = "memory"
    off_chip: ClassVar[Literal["read", "write"] | None] = "write"

    def __call__(self, source: Stream) -> None:
        self.wire(source)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return ()

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> OffChipTensor:
        rows, count = inputs[0].shape
        return OffChipTensor((2 * rows * count, 16), TILE.dtype)

    @override
    async def run(self, ports: Ports) -> None:
        row_bytes, number = 64, 0
        while await ports.source.receive() is not None:
            await ports.burst(2, row_bytes, 2 * number * row_bytes)
            number += 1

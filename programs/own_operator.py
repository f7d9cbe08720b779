"""An operator of one's own: every second element of a rank-0 stream, one cycle each.

Run: python -m fabric run programs/own_operator.py -p tiles=7
"""

from __future__ import annotations

import numpy as np

from fabric import Program, ShapeError, Stream, StreamType
from fabric.extend import Costs, Operator, Ports, Wiring, ceil_div
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Promote


class EverySecond(Operator):
    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        if inputs[0].rank:
            raise ShapeError(f"EverySecond is given {inputs[0]}: expected rank 0")
        return (StreamType((ceil_div(inputs[0].shape[0], 2),), inputs[0].value),)

    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)
            ports.unit.charge(2 if await ports.source.receive() else 1)


def build(tiles: int = 7) -> Program:
    x = np.arange(8.0 * tiles).reshape(tiles, 8) % 13
    with Program("own-operator", mode="functional") as program:
        rows = Flatten(0, 2)(LinearOffChipLoad(x, tile=(1, 8))())
        LinearOffChipStore("y")(Promote(0)(EverySecond()(rows)))
    program.expect(y=lambda: x[::2])
    return program

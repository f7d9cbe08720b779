"""An operator of your own: it sends every second element of a rank-0 stream. Each takes a cycle.

Run:      python -m fabric run programs/own_operator.py -p tiles=7
Hardware: python -m fabric rtl programs/own_operator.py -o build/own --run
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabric import Program, ShapeError, Stream, StreamType
from fabric.extend import Operator, Ports, Wiring, ceil_div
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Promote

if TYPE_CHECKING:
    from operators.rtl.blocks import Unit
    from operators.rtl.own import Binding, Place


class EverySecond(Operator):
    def __call__(self, source: Stream) -> Stream:
        return self.wire(source)[0]

    def infer(self, wiring: Wiring, source: Stream) -> tuple[StreamType, ...]:
        if source.rank:
            raise ShapeError(f"EverySecond is given {source}: expected rank 0")
        return (StreamType((ceil_div(source.shape[0], 2),), source.value),)

    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)
            ports.unit.charge(2 if await ports.source.receive() else 1)

    def hardware(self, place: Place) -> Binding:
        return "EverySecond", every_second, {}


def every_second() -> Unit:
    """Return the hardware of an EverySecond. Amaranth is optional, so it is imported here."""
    from amaranth import Mux, Signal

    from operators.rtl.blocks import Emitter, Unit

    u = Unit(1, 1)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs)
    is_second, is_resting, has_ended = Signal(), Signal(), Signal()
    # The first element leaves in the cycle in which it is taken, or with the next credit.
    is_first = head.valid & emitter.free & ~is_second & ~is_resting
    left = emitter.push(is_first, head.token)
    emitter.close()
    # After the first element has left, the unit takes the second one, and rests for a cycle.
    waits = is_second & emitter.free
    m.d.comb += head.take.eq(is_first | (waits & head.valid))
    m.d.sync += is_second.eq(Mux(is_second, ~(waits & head.valid), is_first))
    m.d.sync += is_resting.eq(waits & head.valid)
    # If the stream ends after a first element, the unit ends one cycle later.
    with m.If((is_first & left | waits & ~head.valid) & head.over):
        m.d.sync += has_ended.eq(1)
    is_done = emitter.free & ~is_second & ~is_resting & ~head.valid & head.end
    m.d.comb += u.done.eq(has_ended | is_done)
    return u


def build(tiles: int = 7) -> Program:
    x = np.arange(8.0 * tiles).reshape(tiles, 8) % 13
    with Program("own-operator", mode="functional") as program:
        rows = Flatten(0, 2)(LinearOffChipLoad(x, tile=(1, 8))())
        LinearOffChipStore("y")(Promote(0)(EverySecond()(rows)))
    program.expect(y=lambda: x[::2])
    return program

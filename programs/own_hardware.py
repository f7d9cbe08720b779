"""Hardware of one's own: of the operator in own_operator.py and of the function in own_function.py.

Run:      python -m fabric run programs/own_hardware.py -p tiles=7
Hardware: python -m fabric rtl programs/own_hardware.py -o build/own --run
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import own_function
import own_operator

from fabric import Program
from operators import Flatten, LinearOffChipLoad, LinearOffChipStore, Map, Promote

if TYPE_CHECKING:
    from operators.rtl import compute
    from operators.rtl.bindings import Binding, Place
    from operators.rtl.blocks import Unit


@dataclass(frozen=True)
class Clip(own_function.Clip):
    def hardware(self) -> compute.Function:  # sizes of the result, and operations
        from operators.rtl import compute

        return compute.Function(
            operands=1,
            sizes=lambda x: (x.rows, x.cols, x.valid_rows, x.cols),
            operations=lambda x: (x.rows * x.cols) << 1,
        )


class EverySecond(own_operator.EverySecond):
    def hardware(self, place: Place) -> Binding:
        return "EverySecond", every_second, {}


def every_second() -> Unit:
    """Return the hardware of an EverySecond; nobody needs Amaranth who does not ask for it."""
    from amaranth import Mux, Signal

    from operators.rtl.blocks import Emitter, Unit

    u = Unit(1, 1)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs)
    is_second, is_resting, has_ended = Signal(), Signal(), Signal()
    # The first leaves in the cycle in which it is taken, or with the next credit.
    is_first = head.valid & emitter.free & ~is_second & ~is_resting
    left = emitter.push(is_first, head.token)
    emitter.close()
    # The second is waited for from when the first has left, and the unit rests a cycle after it.
    waits = is_second & emitter.free
    m.d.comb += head.take.eq(is_first | (waits & head.valid))
    m.d.sync += is_second.eq(Mux(is_second, ~(waits & head.valid), is_first))
    m.d.sync += is_resting.eq(waits & head.valid)
    # Where there is none, the first takes a cycle from when that is known.
    with m.If((is_first & left | waits & ~head.valid) & head.over):
        m.d.sync += has_ended.eq(1)
    is_done = emitter.free & ~is_second & ~is_resting & ~head.valid & head.end
    m.d.comb += u.done.eq(has_ended | is_done)
    return u


def build(tiles: int = 7, limit: float = 0.5) -> Program:
    x = np.random.default_rng(0).standard_normal((tiles, 8))
    with Program("own-hardware", mode="functional") as program:
        rows = Flatten(0, 2)(LinearOffChipLoad(x, tile=(1, 8))())
        LinearOffChipStore("y")(Promote(0)(Map(Clip(limit))(EverySecond()(rows))))
    program.expect(y=lambda: np.clip(x[::2], -limit, limit))
    return program

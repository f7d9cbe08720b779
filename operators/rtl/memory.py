"""Modules of sources and of operators that move tiles from and to off-chip memory.

The memory itself is outside: a module asks for its next tile in one cycle (``request``) and is told
in a later one that it is there (``answer``).
"""

from __future__ import annotations

from typing import Any, Final

from amaranth import Mux, Signal

from operators.rtl.blocks import Emitter, Unit, counted
from operators.rtl.tokens import LEVEL_BITS, SIZE_BITS, changed, token

__all__ = ["DIMENSIONS", "load", "random_store", "source", "store"]

DIMENSIONS: Final = 6
"""Of the view of a tensor that one reading goes through, at most."""


def source() -> Unit:
    """Send what is given from outside, one element a cycle."""
    u = Unit(0, 1)
    m, out = u.m, u.outputs[0]
    charges = u.parameter("charges", 1)
    valid, last = Signal(name="given_valid"), Signal(name="given_last")
    given, takes = u.told()
    u.given += [valid, last]
    m.d.comb += [out.valid.eq(valid & out.ready), out.token.eq(given), takes.eq(out.valid)]
    m.d.comb += u.done.eq(~valid | (takes & last & ~(charges & ~given.bare)))
    return u


def load(inputs: int, *, numbers: bool = False) -> Unit:
    """Read tiles along a view, once for each element of the reference, or once where there is none.

    ``size_0`` is the innermost dimension of the view, which has ``rank``. With ``numbers`` each
    tile is a number, which comes with it.
    """
    u = Unit(inputs, 1, off_chip=True)
    m, emitter = u.m, Emitter(u.m, u.outputs)
    rank = u.parameter("rank", LEVEL_BITS)
    rows, cols = u.parameter("rows", SIZE_BITS), u.parameter("cols", SIZE_BITS)
    came = Signal()
    closing = counted(u, DIMENSIONS, rank, came)
    is_last = closing == rank

    is_waiting, outer, begun = Signal(), Signal(LEVEL_BITS), Signal()
    tile = token("tile")
    m.d.comb += [
        tile.level.eq(Mux(is_last, closing + outer, closing)),
        tile.rows.eq(rows),
        tile.cols.eq(cols),
        tile.valid_rows.eq(rows),
        tile.valid_cols.eq(cols),
        tile.in_memory.eq(1),
    ]
    m.d.comb += came.eq(is_waiting & u.answer)
    if numbers:
        number_read, takes = u.told()
        m.d.comb += [tile.control.eq(number_read.control), takes.eq(came)]
    left = emitter.push(came, tile)

    # Whether tiles of the current reading are left when this one is through.
    is_reading = Signal()
    still = Signal()
    m.d.comb += still.eq(is_reading & ~(came & is_last))
    goes_on = Signal()
    m.d.comb += goes_on.eq(emitter.free & left & (~is_waiting | came))
    if inputs:
        head = u.inputs[0]
        m.d.comb += head.take.eq(head.valid & goes_on & ~still)
        begins = head.take & ~head.token.bare
        with m.If(begins):
            m.d.sync += outer.eq(head.token.level)
        empty = changed(
            m,
            head.token,
            "empty",
            level=head.token.level + rank,
            empty=head.token.empty + rank,
        )
        emitter.push(head.take & head.token.bare, empty)
        is_over: Any = head.over
    else:
        begins = ~begun
        m.d.sync += begun.eq(1)
        is_over = 1
    emitter.close()
    m.d.comb += u.done.eq(goes_on & ~still & ~begins & is_over & emitter.empty)
    m.d.comb += u.request.eq(begins | (goes_on & still))
    m.d.sync += is_reading.eq(still | begins)
    with m.If(u.request):
        m.d.sync += is_waiting.eq(1)
    with m.Elif(came):
        m.d.sync += is_waiting.eq(0)
    return u


def store() -> Unit:
    """Write tiles, each of which keeps its slot until it is written."""
    u = Unit(1, 0, off_chip=True)
    m, head = u.m, u.inputs[0]
    is_waiting = Signal()
    m.d.comb += u.request.eq(head.valid & ~head.token.bare & ~is_waiting)
    m.d.comb += head.take.eq(head.valid & (head.token.bare | (is_waiting & u.answer)))
    with m.If(u.request):
        m.d.sync += is_waiting.eq(1)
    with m.Elif(u.answer):
        m.d.sync += is_waiting.eq(0)
    m.d.comb += u.done.eq(head.over)
    return u


def random_store(outputs: int) -> Unit:
    """Write a tile for each address; both keep their slots until the acknowledgement has left."""
    u = Unit(2, outputs, off_chip=True)
    m, (address, data), emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    is_waiting, is_written, both = Signal(), Signal(), Signal()
    bare = address.token.bare
    m.d.comb += both.eq(address.valid & data.valid)
    m.d.comb += u.fault.eq(both & (address.token.level != data.token.level))
    m.d.comb += u.request.eq(both & ~bare & ~is_waiting & ~is_written)
    came = is_waiting & u.answer
    acknowledged = token("acknowledged")
    m.d.comb += [acknowledged.level.eq(address.token.level), acknowledged.bare.eq(bare)]
    m.d.comb += acknowledged.empty.eq(address.token.empty)
    left = emitter.push(both & ~is_written & (bare | came), acknowledged)
    emitter.close()
    takes = Signal()
    m.d.comb += takes.eq(both & Mux(is_written, emitter.free, (bare | came) & left))
    m.d.comb += [address.take.eq(takes), data.take.eq(takes)]
    with m.If(u.request):
        m.d.sync += is_waiting.eq(1)
    with m.Elif(came):
        m.d.sync += is_waiting.eq(0)
    m.d.sync += is_written.eq(Mux(takes, 0, is_written | (both & (bare | came))))
    m.d.comb += u.done.eq(address.over & data.over)
    return u

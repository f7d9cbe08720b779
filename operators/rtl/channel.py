"""The credit channel: a FIFO at the reader, wires there and back, a counter of credits."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib.memory import Memory

from operators.rtl.tokens import BITS, Token, token

__all__ = ["channel"]


def channel(slots: int, hops: int) -> tuple[Any, list[Any]]:
    """Return a module and its ports.

    The depth, and the cycles there and back, are parameters: at most ``slots`` elements and
    ``hops`` cycles. An element that is sent in cycle s is shown from s + forward on; a slot that is
    taken in cycle d is free from d + backward on.
    """
    m = Module()
    depth = Signal(slots.bit_length(), name="p_depth")
    forward = Signal(hops.bit_length(), name="p_forward")
    backward = Signal(hops.bit_length(), name="p_backward")
    ready, send, sent = Signal(name="in_ready"), Signal(name="in_valid"), token("in_token")
    closing = Signal(name="in_end")
    valid, shown, take = Signal(name="out_valid"), token("out_token"), Signal(name="out_take")
    ended = Signal(name="out_end")

    # Credits that are spent, or on their way back.
    used = Signal(slots.bit_length() + 1)
    back = _delayed(m, take, hops, backward)
    m.d.comb += ready.eq(used < depth)
    m.d.sync += used.eq(used + send - back)

    m.submodules.memory = memory = Memory(shape=BITS, depth=slots, init=[])
    write, read = memory.write_port(), memory.read_port(domain="comb")
    arrives = _delayed(m, send, hops, forward)
    first, last = Signal(range(max(2, slots))), Signal(range(max(2, slots)))
    held = Signal(slots.bit_length() + 1)
    m.d.comb += [
        write.en.eq(arrives),
        write.addr.eq(last),
        write.data.eq(_delayed(m, sent, hops, forward)),
        read.addr.eq(first),
        shown.eq(read.data),
        valid.eq(held != 0),
    ]
    with m.If(arrives):
        m.d.sync += last.eq(Mux(last == slots - 1, 0, last + 1))
    with m.If(take):
        m.d.sync += first.eq(Mux(first == slots - 1, 0, first + 1))
    m.d.sync += held.eq(held + arrives - take)

    end = Signal()
    m.d.sync += end.eq(_delayed(m, closing, hops, forward))
    final = Signal(name="out_final")
    m.d.comb += [ended.eq(end), final.eq(end & (held == 1))]
    parameters = [depth, forward, backward]
    return m, [*parameters, ready, send, sent, closing, valid, shown, take, ended, final]


def _delayed(m: Any, signal: Any, hops: int, cycles: Any) -> Any:
    """Return ``signal`` as it was a cycle less than so many cycles ago: a register follows."""
    is_token = not isinstance(signal, Signal)
    stages = [signal]
    for _ in range(hops - 1):
        stages.append(Signal(Token) if is_token else Signal())
        m.d.sync += stages[-1].eq(stages[-2])
    if hops == 1:
        return signal
    result = Signal(Token) if is_token else Signal()
    with m.Switch(cycles):
        for number, stage in enumerate(stages):
            with m.Case(number + 1):
                m.d.comb += result.eq(stage)
    return result

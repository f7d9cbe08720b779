"""The credit channel: a FIFO at the reader, wires there and back, a counter of credits.

A token is what it carries besides the data of a tile: what the time of operators depends on.
"""

from __future__ import annotations

from typing import Any, Final

from amaranth import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory

__all__ = [
    "BITS",
    "CONTROL_BITS",
    "LEVEL_BITS",
    "SIZE_BITS",
    "changed",
    "channel",
    "packed",
    "second",
    "token",
]


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


LEVEL_BITS: Final = 5
SIZE_BITS: Final = 20
CONTROL_BITS: Final = 128

FIELDS: Final = {
    "level": LEVEL_BITS,
    "bare": 1,
    "empty": LEVEL_BITS,
    "rows": SIZE_BITS,
    "cols": SIZE_BITS,
    "valid_rows": SIZE_BITS,
    "valid_cols": SIZE_BITS,
    "in_memory": 1,
    "control": CONTROL_BITS,
}
"""Bits of each field, lowest first.

``level`` is that of the stop, ``bare`` says that there is no value and ``empty`` which dimension is
empty then; ``control`` is a selector, one bit for each of its consumers, or a number, or of a tuple
of two tiles the second one, or of a buffer how many tiles its outermost dimension has.
"""

Token: Final = data.StructLayout(FIELDS)
Second: Final = data.StructLayout(
    {name: FIELDS[name] for name in ("rows", "cols", "valid_rows", "valid_cols", "in_memory")}
)
"""The second tile of a tuple, in ``control``."""

BITS: Final = sum(FIELDS.values())

# Any: amaranth has no types; a token is a view of a signal.


def token(name: str) -> Any:
    """Return a signal that is a token."""
    return Signal(Token, name=name)


def second(of: Any) -> Any:
    """Return the second tile of a tuple."""
    return data.View(Second, of.control[: Second.size])


def packed(**fields: int) -> int:
    """Return the bits of a token; fields that are not said are 0.

    Raises:
        ValueError: one does not fit.
    """
    bits, at = 0, 0
    for name, width in FIELDS.items():
        value = fields.pop(name, 0)
        if not 0 <= value < 1 << width:
            raise ValueError(f"{name} is {value}: expected 0 to {(1 << width) - 1}")
        bits |= value << at
        at += width
    assert not fields, fields
    return bits


def changed(m: Module, source: Any, name: str, **fields: Any) -> Any:
    """Return ``source`` with other ``fields``."""
    result = token(name)
    m.d.comb += result.eq(source)
    for field, value in fields.items():
        m.d.comb += getattr(result, field).eq(value)
    return result

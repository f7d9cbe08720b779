"""Hardware that counts the cycles of an element: its loading, computing and storing."""

from __future__ import annotations

from collections.abc import Sequence

# Any: amaranth has no types.
from typing import Any, NamedTuple

from amaranth import Const, Signal
from amaranth.hdl import Value
from amaranth.hdl._ast import Operator

from operators.rtl.blocks import all_of, any_of, widths, wire


class Port(NamedTuple):
    """What moves or computes at ``per_cycle``.

    Attributes:
        amounts: one after the other, each with its condition. Without it an amount takes no time;
            otherwise it takes whole cycles.
    """

    name: str
    per_cycle: Any
    amounts: Sequence[tuple[Any, Any]]


def are_done(m: Any, going: Any, done: Any, ports: Sequence[Port]) -> Any:
    """Return whether all ports have finished an element; they work side by side.

    They begin in the first cycle with ``going``, and again after ``done``. With registers, products
    are known two cycles later, and ports begin then.
    """
    if not widths().registers:
        exact = [
            each._replace(amounts=[(use & (amount != 0), amount) for use, amount in each.amounts])
            for each in ports
        ]
        return all_of(_is_done(m, going, done, each) for each in exact)
    later = [
        each._replace(
            amounts=[
                (applies, registered(m, f"{each.name}_{at}", amount))
                for at, (applies, amount) in enumerate(each.amounts)
                if not is_zero(amount)
            ]
        )
        for each in ports
    ]
    costs = any_of(applies for each in later for applies, _ in each.amounts)
    known = wire(m, "known", ~costs | known_later(m, going, done))
    return known & all_of(_is_done(m, going & known, done, each) for each in later)


def known_later(m: Any, going: Any, done: Any) -> Any:
    """Return whether ``going`` has lasted for two cycles, since the last ``done``."""
    first, second = Signal(name="known_1"), Signal(name="known_2")
    m.d.sync += [first.eq(going & ~done), second.eq(going & ~done & first)]
    return second


def is_zero(value: Any) -> bool:
    """Whether an expression is 0 for all signals."""
    value = Value.cast(value)
    if isinstance(value, Const):
        return bool(value.value == 0)
    if isinstance(value, Operator) and value.operator in ("*", "+"):
        found = [is_zero(each) for each in value.operands]
        return any(found) if value.operator == "*" else all(found)
    return False


def registered(m: Any, name: str, value: Any) -> Any:
    """Return ``value`` two cycles later; its first products are in a register after one.

    All signals in ``value`` must be constant for two cycles.
    """
    first: list[Any] = []

    def halved(value: Any) -> Any:
        if not isinstance(value, Operator) or not _multiplies(value):
            return value
        if value.operator == "*" and not any(map(_multiplies, value.operands)):
            first.append(Signal(len(value), name=f"{name}_product_{len(first)}"))
            m.d.sync += first[-1].eq(value)
            return first[-1]
        return Operator(value.operator, [halved(each) for each in value.operands])

    value = Value.cast(value)
    result = Signal(len(value), name=name)
    m.d.sync += result.eq(halved(value))
    return result


def _multiplies(value: Any) -> bool:
    return isinstance(value, Operator) and (
        value.operator == "*" or any(map(_multiplies, value.operands))
    )


def _is_done(m: Any, going: Any, done: Any, port: Port) -> Any:
    """Return whether a port has moved its amounts."""
    name, per_cycle, amounts = port
    if not amounts:
        return Const(1)
    bits = 1 + max(len(per_cycle), *(len(amount) for _, amount in amounts), 0)
    at = Signal(range(len(amounts) + 1), name=f"{name}_number")
    # The amount that is moved after this cycle.
    moved = Signal(bits, name=f"{name}_moved")
    current = Signal(range(len(amounts) + 1), name=f"{name}_current")
    amount = Signal(bits, name=f"{name}_amount")
    m.d.comb += current.eq(len(amounts))
    for number, (applies, each) in reversed([*enumerate(amounts)]):
        with m.If((at <= number) & applies):
            m.d.comb += [current.eq(number), amount.eq(each)]
    finished = wire(m, f"{name}_done", current == len(amounts))
    m.d.sync += moved.eq(per_cycle)
    with m.If(done):
        m.d.sync += at.eq(0)
    with m.Elif(going & ~finished):
        with m.If(moved >= amount):
            m.d.sync += at.eq(current + 1)
        with m.Else():
            m.d.sync += moved.eq(moved + per_cycle)
    return finished

"""Hardware that counts the cycles in which an element is loaded, computed and stored."""

from __future__ import annotations

from collections.abc import Sequence

# Any: amaranth has no types.
from typing import Any, NamedTuple

from amaranth import Const, Signal
from amaranth.hdl import Value
from amaranth.hdl._ast import Operator

from operators.rtl.blocks import all_of, any_of, widths, wire


class Port(NamedTuple):
    """A resource that loads, stores or computes ``per_cycle`` bytes or operations.

    Attributes:
        amounts: pairs of a condition and an amount, which are done one after the other. An amount
            takes whole cycles if its condition holds, and no time otherwise.
    """

    name: str
    per_cycle: Any
    amounts: Sequence[tuple[Any, Any]]


def are_done(m: Any, going: Any, done: Any, ports: Sequence[Port]) -> Any:
    """Return whether all ports have finished an element. They work in parallel.

    They begin in the first cycle with ``going``, and again after ``done``. With registers, they
    begin two cycles later, since products take two cycles.
    """
    if not widths().registers:
        exact = [
            port._replace(amounts=[(use & (amount != 0), amount) for use, amount in port.amounts])
            for port in ports
        ]
        return all_of(_is_done(m, going, done, port) for port in exact)
    later = [
        port._replace(
            amounts=[
                (applies, registered(m, f"{port.name}_{at}", amount))
                for at, (applies, amount) in enumerate(port.amounts)
                if not is_zero(amount)
            ]
        )
        for port in ports
    ]
    costs = any_of(applies for port in later for applies, _ in port.amounts)
    known = wire(m, "known", ~costs | known_later(m, going, done))
    return known & all_of(_is_done(m, going & known, done, port) for port in later)


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
        are_zero = map(is_zero, value.operands)
        return any(are_zero) if value.operator == "*" else all(are_zero)
    return False


def registered(m: Any, name: str, value: Any) -> Any:
    """Return ``value`` two cycles later. Its innermost products are in registers after one cycle.

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
    name, per_cycle, amounts = port
    if not amounts:
        return Const(1)
    bits = 1 + max(len(per_cycle), *(len(amount) for _, amount in amounts), 0)
    at = Signal(range(len(amounts) + 1), name=f"{name}_number")
    # The bytes or operations that are done after this cycle.
    moved = Signal(bits, name=f"{name}_moved")
    current = Signal(range(len(amounts) + 1), name=f"{name}_current")
    amount = Signal(bits, name=f"{name}_amount")
    m.d.comb += current.eq(len(amounts))
    for number, (applies, value) in reversed([*enumerate(amounts)]):
        with m.If((at <= number) & applies):
            m.d.comb += [current.eq(number), amount.eq(value)]
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

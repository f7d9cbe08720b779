"""Modules of operators that join streams by numbers: tuples of two, and coordinates in common."""

from __future__ import annotations

# Any: amaranth has no types.
from typing import Any, Final

from amaranth import Cat, Mux, Signal

from operators.rtl.blocks import Emitter, Unit
from operators.rtl.tokens import changed, token

__all__ = ["intersect", "zip_numbers"]

_HALF: Final = 64
"""Bits of each number in a tuple of two, which share ``control``."""

_THIRD: Final = 42
"""Bits of each number of what an Intersect sends, which waits in one token."""


def zip_numbers() -> Unit:
    """Put the numbers of two streams into tuples."""
    u = Unit(2, 1)
    m, (a, b), emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    takes = Signal()
    m.d.comb += takes.eq(a.valid & b.valid & emitter.free)
    m.d.comb += [a.take.eq(takes), b.take.eq(takes)]
    both = Cat(a.token.control[:_HALF], b.token.control[:_HALF])
    emitter.push(takes, changed(m, a.token, "pair", control=both))
    emitter.close()
    differs = (a.token.level != b.token.level) | (a.token.bare != b.token.bare)
    m.d.comb += u.fault.eq(takes & differs)
    m.d.comb += u.done.eq(emitter.empty & a.over & b.over)
    return u


def intersect(read: tuple[int, ...], items: tuple[int, int]) -> Unit:  # noqa: PLR0915 - one unit
    """Compare the coordinates of two sides, one pair a cycle; send what they have in common.

    Outputs are those that are ``read``, of coordinates, left and right payloads. A side whose
    elements are 2 ``items`` has its payload beside its coordinate, and else is its own.
    """
    u = Unit(2, len(read))
    m, (left, right) = u.m, u.inputs

    def third(number: int) -> Any:
        def shown(what: Any) -> Any:
            part = what.control[number * _THIRD : (number + 1) * _THIRD]
            return changed(m, what, f"shown_{number}", control=part)

        return shown

    emitter = Emitter(m, u.outputs, shown=[third(number) for number in read])
    is_inside, waits = Signal(), Signal()
    closed = [Signal(name=f"closed_{side}") for side in range(2)]
    stops = [Signal(len(each.token.level), name=f"stop_{at}") for at, each in enumerate(u.inputs)]
    coordinates = [each.token.control[:_HALF] for each in u.inputs]
    payloads = [
        each.token.control[_HALF:] if count == 2 else each.token.control[:_HALF]
        for each, count in zip(u.inputs, items, strict=True)
    ]

    # Both sides have ended without a match: that is said before the next group is looked at.
    going, goes_on, inside = Signal(), Signal(), Signal()
    m.d.comb += going.eq(emitter.free & ~waits)
    ends_first = Signal()
    m.d.comb += ends_first.eq(going & is_inside & closed[0] & closed[1])
    ended = token("ended")
    m.d.comb += [ended.bare.eq(1), ended.level.eq(stops[0])]
    every = (1 << len(read)) - 1
    m.d.comb += goes_on.eq(going & emitter.push(ends_first, ended, every))
    m.d.comb += inside.eq(is_inside & ~ends_first)

    # What comes first of a group has to be there on both sides.
    are_there, outside, begins = left.valid & right.valid, Signal(), Signal()
    are_empty = [each.token.bare & (each.token.empty != 0) for each in u.inputs]
    m.d.comb += outside.eq(goes_on & ~inside & are_there & are_empty[0])
    m.d.comb += begins.eq(goes_on & ~inside & are_there & ~are_empty[0])
    within = goes_on & (inside | begins)
    was = [inside & each for each in closed]
    # A bare stop ends its side; the right one is looked at when the left one is known.
    is_known = was[0] | left.valid
    bare = [Signal(name=f"bare_{side}") for side in range(2)]
    m.d.comb += bare[0].eq(within & ~was[0] & left.valid & left.token.bare)
    m.d.comb += bare[1].eq(within & is_known & ~was[1] & right.valid & right.token.bare)
    now = [was[side] | bare[side] for side in range(2)]
    are_known = within & is_known & (was[1] | right.valid)
    ends, compares = Signal(), Signal()
    m.d.comb += ends.eq(are_known & now[0] & now[1])
    m.d.comb += compares.eq(are_known & ~(now[0] & now[1]))
    uses = [Signal(name=f"uses_{side}") for side in range(2)]
    for side, other in ((0, 1), (1, 0)):
        is_lower = coordinates[side] <= coordinates[other]
        m.d.comb += uses[side].eq(compares & ~now[side] & (now[other] | is_lower))
        m.d.comb += u.inputs[side].take.eq(outside | bare[side] | uses[side])
    matches, ends_both = Signal(), Signal()
    m.d.comb += matches.eq(uses[0] & uses[1])
    after = [
        now[side] | (uses[side] & (each.token.level != 0)) for side, each in enumerate(u.inputs)
    ]
    m.d.comb += ends_both.eq(ends | (matches & after[0] & after[1]))

    stop = Mux(bare[0] | uses[0], left.token.level, stops[0])
    other_stop = Mux(bare[1] | uses[1], right.token.level, stops[1])
    sent = token("sent")
    m.d.comb += sent.bare.eq(~matches)
    m.d.comb += sent.level.eq(Mux(outside, left.token.level, Mux(ends_both, stop, 0)))
    m.d.comb += sent.empty.eq(Mux(outside, left.token.empty, 0))
    numbers = [coordinates[0], *payloads]
    with m.If(matches):
        m.d.comb += sent.rows.eq(1), sent.cols.eq(1), sent.valid_rows.eq(1), sent.valid_cols.eq(1)
        m.d.comb += sent.control.eq(Cat(each[:_THIRD] for each in numbers))
    pushes = outside | ends | matches
    has_left = emitter.push(pushes, sent, every)
    emitter.close()

    # A comparison takes a cycle, from when its match has left.
    m.d.sync += waits.eq((matches & ~has_left) | (waits & ~emitter.free))
    stays = Signal()
    m.d.comb += stays.eq((inside | begins) & ~ends_both)
    m.d.sync += is_inside.eq(stays)
    for side in range(2):
        m.d.sync += closed[side].eq(after[side] & stays)
    m.d.sync += [stops[0].eq(stop), stops[1].eq(other_stop)]
    is_large: Any = 0
    for each in numbers:
        is_large = is_large | (each[_THIRD:] != 0)
    differs = (outside | begins) & (are_empty[0] != are_empty[1])
    m.d.comb += u.fault.eq(differs | (ends_both & (stop != other_stop)) | (matches & is_large))
    is_through = emitter.empty & ~stays & ~compares & ~waits
    m.d.comb += u.done.eq(is_through & left.over & right.over)
    return u

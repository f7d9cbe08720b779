"""Modules of operators that send several elements for one, one a cycle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Any: amaranth has no types.
from typing import Any, Final, NamedTuple

from amaranth import Const, Mux, Signal

from operators.rtl.blocks import Emitter, Unit
from operators.rtl.channel import SIZE_BITS, changed, token

__all__ = [
    "SPLITS",
    "Parts",
    "expert_addresses",
    "filter_last",
    "flat_map",
    "flat_map_told",
    "read_addresses",
    "split_tiles",
]


class _Part(NamedTuple):
    """What is sent, as a function of the element it is made of and its number.

    Attributes:
        count: how many parts there are.
        fields: of part ``at``, but for its level.
        level: of a part that is not the last one, or a function of its number that says that.
        adds: dimensions that the parts of an element make.
        skips: an element without parts leaves nothing where it closes no dimension.
    """

    count: Callable[..., Any]
    fields: Callable[..., dict[str, Any]]
    level: int | Callable[[Any], Any]
    adds: int
    skips: bool = False


def _sequence(u: Unit, part: _Part) -> Unit:
    m, inputs, emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    is_going, number = Signal(), Signal(SIZE_BITS)
    shown = []
    new = Signal()
    for port, each in enumerate(inputs):
        held, now = token(f"held_{port}"), token(f"now_{port}")
        m.d.comb += now.eq(Mux(is_going, held.as_value(), each.token.as_value()))
        with m.If(new):
            m.d.sync += held.eq(each.token)
        shown.append(now)
    valid: Any = 1
    ended: Any = 1
    for each in inputs:
        valid = valid & each.valid
        ended = ended & each.over
    takes = Signal()
    m.d.comb += takes.eq(valid & emitter.free & ~is_going)
    m.d.comb += [each.take.eq(takes) for each in inputs]
    stop, bare = shown[0].level, shown[0].bare
    count = Signal(SIZE_BITS)
    m.d.comb += [count.eq(part.count(*shown)), new.eq(takes & ~bare)]
    is_none = new & (count == 0)

    def of(name: str, at: Any) -> Any:
        made = token(name)
        inner = part.level if isinstance(part.level, int) else part.level(at)
        m.d.comb += made.level.eq(Mux(at + 1 == count, stop + part.adds, inner))
        for field, value in part.fields(at, *shown).items():
            m.d.comb += getattr(made, field).eq(value)
        return made

    first = changed(m, of("part_first", number), "first")
    with m.If(is_none | (takes & bare)):
        m.d.comb += first.eq(0)
        m.d.comb += [first.bare.eq(1), first.level.eq(stop + part.adds)]
    with m.If(takes & bare):
        m.d.comb += first.empty.eq(shown[0].empty + part.adds)
    pushes = Signal()
    leaves_nothing = is_none & (stop == 0) if part.skips else Const(0)
    m.d.comb += pushes.eq(emitter.free & (is_going | (takes & ~leaves_nothing)))
    left = emitter.push(pushes, first)
    is_part = (is_going & emitter.free) | (new & ~is_none)
    second, after = Signal(), Signal(SIZE_BITS)
    m.d.comb += second.eq(is_part & left & (number + 1 < count))
    emitter.push(second, of("part_second", number + 1))
    emitter.close()
    m.d.comb += after.eq(number + 1 + second)
    goes_on = Signal()
    m.d.comb += goes_on.eq(Mux(is_part, after < count, is_going))
    m.d.sync += is_going.eq(goes_on)
    with m.If(is_part):
        m.d.sync += number.eq(Mux(after < count, after, 0))
    level_differs: Any = 0
    for each in inputs[1:]:
        level_differs = level_differs | (each.token.level != inputs[0].token.level)
    m.d.comb += u.fault.eq(takes & level_differs)
    m.d.comb += u.done.eq(emitter.empty & ~goes_on & ended)
    return u


class Parts(NamedTuple):
    """What the parts of a tile are, of which outside says how many there are.

    Attributes:
        rows, cols: of each.
    """

    rows: int = 1
    cols: int = 1


def flat_map_told(parts: Parts) -> Unit:
    """Send as many parts of each tile as outside says."""
    u = Unit(1, 1)
    told, uses = u.told()
    size = {"rows": parts.rows, "cols": parts.cols}
    valid = {"valid_rows": parts.rows, "valid_cols": parts.cols}
    # It is asked for when the tile comes, and stands there until the next one does.
    kept = Signal(SIZE_BITS)
    head = u.inputs[0]
    begins = head.take & ~head.token.bare
    u.m.d.comb += uses.eq(begins)
    with u.m.If(begins):
        u.m.d.sync += kept.eq(told.control)

    def count(_: Any) -> Any:
        return Mux(begins, told.control[:SIZE_BITS], kept)

    return _sequence(u, _Part(count, lambda *_: {**size, **valid}, level=0, adds=0, skips=True))


SPLITS: Final = frozenset({"SplitRows", "SplitCols", "SplitTiles"})
"""Functions of FlatMap."""


def flat_map(function: str) -> Unit:
    """Send the rows or columns of each tile; with ``valid_only`` without padding."""
    u = Unit(1, 1)
    valid_only = u.parameter("valid_only", 1)

    def lines(tile: Any) -> Sequence[Any]:
        if function == "SplitCols":
            return tile.cols, tile.rows, tile.valid_cols, tile.valid_rows
        return tile.rows, tile.cols, tile.valid_rows, tile.valid_cols

    def count(tile: Any) -> Any:
        rows, _, valid_rows, _ = lines(tile)
        return Mux(valid_only, valid_rows, rows)

    def fields(at: Any, tile: Any) -> dict[str, Any]:
        _, cols, valid_rows, valid_cols = lines(tile)
        return {
            "rows": 1,
            "cols": cols,
            "valid_rows": at < valid_rows,
            "valid_cols": valid_cols,
            "in_memory": tile.in_memory,
        }

    return _sequence(u, _Part(count, fields, level=0, adds=0, skips=True))


def split_tiles() -> Unit:
    """Send the parts of each tile, of ``rows`` x ``cols``, of which there are ``across`` in a row.

    The parts of a row end a dimension.
    """
    u = Unit(1, 1)
    rows, cols = u.parameter("rows", SIZE_BITS), u.parameter("cols", SIZE_BITS)
    across = u.parameter("across", SIZE_BITS)

    def clipped(valid: Any, before: Any, size: Any) -> Any:
        left = Mux(valid > before, valid - before, 0)
        return Mux(left > size, size, left)

    def fields(at: Any, tile: Any) -> dict[str, Any]:
        row = at // across
        return {
            "rows": rows,
            "cols": cols,
            "valid_rows": clipped(tile.valid_rows, row * rows, rows),
            "valid_cols": clipped(tile.valid_cols, (at - row * across) * cols, cols),
            "in_memory": tile.in_memory,
        }

    def count(tile: Any) -> Any:
        return tile.rows // rows * across

    def level(at: Any) -> Any:
        return (at + 1) % across == 0

    return _sequence(u, _Part(count, fields, level=level, adds=1, skips=True))


_NUMBER: Final = {"rows": 1, "cols": 1, "valid_rows": 1, "valid_cols": 1}


def read_addresses() -> Unit:
    """Send the addresses of a request's tiles: input 0 are requests, input 1 their lengths."""
    u = Unit(2, 1)
    stride = u.parameter("stride", 32)
    return _sequence(
        u,
        _Part(
            lambda _, length: length.control,
            lambda at, request, _: {"control": request.control * stride + at, **_NUMBER},
            level=0,
            adds=1,
        ),
    )


def filter_last() -> Unit:
    """Send for each length one selector of stream 1 fewer, and then one of stream 0."""
    u = Unit(1, 1)
    return _sequence(
        u,
        _Part(
            lambda length: length.control,
            lambda at, length: {"control": Mux(at + 1 == length.control, 1, 2)},
            level=0,
            adds=1,
        ),
    )


def expert_addresses() -> Unit:
    """Send the addresses of the tiles of the expert that a selector names."""
    u = Unit(1, 1)
    tiles = u.parameter("tiles", SIZE_BITS)

    def first(selector: Any) -> Any:
        number: Any = 0
        for hit in range(len(selector.control)):
            number = Mux(selector.control[hit], hit, number)
        return number

    return _sequence(
        u,
        _Part(
            lambda _: tiles,
            lambda at, selector: {"control": first(selector) * tiles + at, **_NUMBER},
            level=1,
            adds=2,
        ),
    )

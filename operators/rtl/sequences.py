"""Modules of operators that change the shape of a stream, or send several elements per input."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Any: amaranth has no types.
from typing import Any, Final, NamedTuple

from amaranth import Const, Mux, Signal

from operators.rtl.blocks import TILE, Emitter, Unit, changed, counted, second, token, widths, wire
from operators.rtl.description import Parts
from operators.rtl.memory import DIMENSIONS


def flatten() -> Unit:
    """Merge dimensions ``inner`` to ``outer``; stops inside the merged dimension are dropped."""
    u = Unit(1, 1)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs)
    inner, outer = u.parameter("inner"), u.parameter("outer")

    def merged(number: Any) -> Any:
        low = Mux(number < inner, number, inner)
        return Mux(number > outer, number - (outer - inner), low)

    level = Signal(widths().level)
    empty = Signal(widths().level)
    m.d.comb += [level.eq(merged(head.token.level)), empty.eq(merged(head.token.empty))]
    m.d.comb += head.take.eq(head.valid & emitter.free)
    is_left = ~head.token.bare | (level > empty)
    emitter.push(head.take & is_left, changed(m, head.token, "flat", level=level, empty=empty))
    emitter.close()
    m.d.comb += u.done.eq(emitter.empty & head.over)
    return u


def promote() -> Unit:
    """Add a dimension of size 1 around the ``inside`` innermost dimensions.

    If it is the outermost, a possible last element is held until the next element or the end.
    """
    u = Unit(1, 1)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs)
    inside, outermost = u.parameter("inside"), u.parameter("outermost")
    is_held = Signal()
    held = token("held")
    level = head.token.level
    closes = level >= inside
    is_last = outermost & ~closes & (level + 1 == inside)
    waits = is_last & ~head.final
    new = changed(
        m,
        head.token,
        "promoted",
        level=Mux(closes, level + 1, Mux(is_last & head.final, inside, level)),
        empty=Mux(head.token.bare & (head.token.empty >= inside), head.token.empty + 1,
                  head.token.empty),
    )  # fmt: skip
    known = is_held & (head.valid | head.end)
    last = changed(m, held, "last", level=Mux(head.valid, held.level, inside))
    left = emitter.push(known & emitter.free, last)
    follows = _follows(m, emitter, known & head.valid & emitter.free & ~left)
    # Take an element if no other element is held or waits for a credit after this cycle.
    goes_on = wire(m, "goes_on", (emitter.free & (~is_held | known) & left) | follows)
    m.d.comb += head.take.eq(head.valid & goes_on)
    emitter.push(head.take & ~waits, new)
    emitter.close()
    with m.If(head.take & waits):
        m.d.sync += [is_held.eq(1), held.eq(new)]
    with m.Elif(known & emitter.free):
        m.d.sync += is_held.eq(0)
    m.d.comb += u.done.eq(emitter.empty & (~is_held | known) & head.over)
    return u


def _follows(m: Any, emitter: Emitter, is_seen: Any) -> Any:
    """Return whether the kept element leaves now, and the next one was seen in an earlier cycle."""
    if not widths().registers:
        return Const(0)
    seen = Signal(name="seen")
    m.d.sync += seen.eq(is_seen | (seen & ~emitter.leaves))
    return seen & emitter.leaves


def reshape(outputs: int) -> Unit:  # noqa: PLR0915 - one unit
    """Split the innermost dimension into chunks, pad the last chunk, and flag padding on output 1.

    With ``outermost`` the last chunk also closes the added dimension. So the last element of each
    chunk is held until the next element or the end.
    """
    u = Unit(1, outputs)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs)
    chunk = u.parameter("chunk")
    rows, cols = u.parameter("rows"), u.parameter("cols")
    every = Const((1 << outputs) - 1, outputs)
    count = Signal(len(chunk))
    missing = Signal(len(chunk))
    level = Signal(widths().level)
    outermost = u.parameter("outermost")
    is_filling = missing != 0
    is_held = Signal()
    held = token("held")
    known = is_held & (head.valid | head.end)
    waited = changed(m, held, "waited", level=Mux(head.valid, 1, 2))
    was_left = emitter.push(known & emitter.free, waited, every)
    follows = _follows(m, emitter, known & head.valid & emitter.free & ~was_left)
    is_next = emitter.free & ~is_filling & (~is_held | known) & was_left
    going = wire(m, "going", is_next | follows)
    ends = going & ~head.valid & head.end & (count != 0)
    bare, stop = head.token.bare, head.token.level
    m.d.comb += head.take.eq(head.valid & going)
    is_full = count + 1 == chunk
    fills_first = ends | (head.take & bare & (count != 0))

    # The first element of this cycle, and the number of padding elements after it.
    behind = Signal(len(chunk))
    closing = Signal(widths().level)
    m.d.comb += closing.eq(Mux(ends, outermost + 1, stop + 1))
    with m.If(is_filling):
        m.d.comb += [behind.eq(missing - 1), closing.eq(level)]
    with m.Elif(fills_first):
        m.d.comb += behind.eq(chunk - count - 1)
    with m.Elif(head.take & ~bare & ~is_full & (stop != 0)):
        m.d.comb += behind.eq(chunk - count - 1)

    def padding(name: str, last: Any) -> Any:
        pad = token(name)
        m.d.comb += [pad.rows.eq(rows), pad.cols.eq(cols), pad.valid_cols.eq(cols)]
        m.d.comb += pad.level.eq(Mux(last, closing, 0))
        return pad

    shown = changed(
        m,
        head.token,
        "chunked",
        level=Mux(bare | is_full, Mux(~bare & outermost & head.final, 2, stop + 1), 0),
        empty=Mux(bare, head.token.empty + 1, 0),
    )
    first = token("first")
    m.d.comb += first.eq(shown)
    with m.If(is_filling | fills_first):
        m.d.comb += first.eq(padding("pad_first", behind == 0))
    pushes = Signal()
    waits = head.take & ~bare & is_full & outermost & ~head.final
    m.d.comb += pushes.eq((emitter.free & is_filling) | ends | (head.take & ~waits))
    with m.If(waits):
        m.d.sync += [is_held.eq(1), held.eq(head.token), count.eq(0)]
    with m.Elif(known & emitter.free):
        m.d.sync += is_held.eq(0)
    left = emitter.push(pushes, first, every)
    second = Signal()
    if not widths().registers:
        m.d.comb += second.eq(pushes & left & (behind != 0))
        emitter.push(second, padding("pad_second", behind == 1), every)
    emitter.close()
    is_inside = wire(m, "is_inside", head.take & ~bare & ~is_full & (stop == 0))
    with m.If(pushes):
        m.d.sync += [missing.eq(behind - second), level.eq(closing)]
        m.d.sync += count.eq(Mux(is_inside, count + 1, 0))
    is_whole = ~is_inside & Mux(pushes, behind == second, going & (count == 0))
    m.d.comb += u.done.eq(emitter.empty & is_whole & head.over)
    return u


def reshape_outer(outputs: int) -> Unit:
    """Split dimension ``dimension`` into chunks that need no padding."""
    u = Unit(1, outputs)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs)
    chunk, dimension = u.parameter("chunk"), u.parameter("dimension")
    count = Signal(len(chunk))
    level, bare = head.token.level, head.token.bare
    is_outside = bare & (head.token.empty >= dimension)
    after = wire(m, "after", count + (~is_outside & (level >= dimension)))
    new = changed(m, head.token, "split")
    closes = level > dimension
    with m.If(closes):
        m.d.comb += new.level.eq(level + 1)
    with m.Elif(after == chunk):
        m.d.comb += new.level.eq(dimension + 1)
    with m.If(is_outside):
        m.d.comb += new.empty.eq(head.token.empty + 1)
    m.d.comb += head.take.eq(head.valid & emitter.free)
    emitter.push(head.take, new, Const((1 << outputs) - 1, outputs))
    emitter.close()
    with m.If(head.take):
        m.d.sync += count.eq(Mux(closes | (after == chunk), 0, after))
    m.d.comb += u.fault.eq(head.take & closes & (after != 0) & (after != chunk))
    m.d.comb += u.done.eq(emitter.empty & head.over)
    return u


def repeat() -> Unit:
    """Send each element ``count`` times, one copy per cycle; the last copy frees its slot."""
    u = Unit(1, 1)
    m, head, out = u.m, u.inputs[0], u.outputs[0]
    count = u.parameter("count")
    number = Signal(len(count))
    is_last = head.token.bare | (number + 1 == count)
    bare, level = head.token.bare, head.token.level
    copy = changed(
        m,
        head.token,
        "copy",
        level=Mux(is_last, level + 1, 0),
        empty=Mux(bare, head.token.empty + 1, 0),
    )
    m.d.comb += [out.valid.eq(head.valid & out.ready), out.token.eq(copy)]
    m.d.comb += head.take.eq(out.valid & is_last)
    with m.If(out.valid):
        m.d.sync += number.eq(Mux(is_last, 0, number + 1))
    m.d.comb += u.done.eq(head.over)
    return u


def broadcast(outputs: int) -> Unit:
    """Send each element to all outputs in one cycle, when every output has a credit."""
    u = Unit(1, outputs)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs, together=True)
    m.d.comb += head.take.eq(head.valid & emitter.free)
    emitter.push(head.take, head.token, Const((1 << outputs) - 1, outputs))
    emitter.close()
    m.d.comb += u.done.eq(emitter.empty & head.over)
    return u


def consumer() -> Unit:
    """Take one element per cycle."""
    u = Unit(1, 0)
    head = u.inputs[0]
    u.m.d.comb += head.take.eq(head.valid)
    u.m.d.comb += u.done.eq(head.over)
    return u


def expand() -> Unit:
    """Send each element of input 0 once for every element of its group in input 1."""
    u = Unit(2, 1)
    m, (head, guide), emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    rank = u.parameter("rank")
    # The value stays until its last copy has left.
    is_closing = Signal()
    going = wire(m, "going", emitter.free & ~is_closing & head.valid & guide.valid)
    m.d.comb += [guide.take.eq(going), u.fault.eq(going & head.token.bare)]
    ends = guide.token.level >= rank
    copy = changed(m, head.token, "copy", level=guide.token.level)
    with m.If(guide.token.bare):
        m.d.comb += copy.eq(guide.token)
    left = emitter.push(going, copy)
    emitter.close()
    m.d.comb += head.take.eq((going & ends & left) | (is_closing & emitter.leaves))
    with m.If(going & ends & ~left):
        m.d.sync += is_closing.eq(1)
    with m.Elif(emitter.leaves):
        m.d.sync += is_closing.eq(0)
    m.d.comb += u.done.eq(emitter.empty & head.over & guide.over)
    return u


def zip_() -> Unit:
    """Put the tiles of two streams into tuples."""
    u = Unit(2, 1)
    m, (a, b), emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    takes = wire(m, "takes", a.valid & b.valid & emitter.free)
    m.d.comb += [a.take.eq(takes), b.take.eq(takes)]
    pair = changed(m, a.token, "pair", control=0)
    for name in TILE:
        m.d.comb += getattr(second(pair), name).eq(getattr(b.token, name))
    emitter.push(takes, pair)
    emitter.close()
    differs = (a.token.level != b.token.level) | (a.token.bare != b.token.bare)
    m.d.comb += u.fault.eq(takes & differs)
    m.d.comb += u.done.eq(emitter.empty & a.over & b.over)
    return u


def initial() -> Unit:
    """Send ``count`` sub-tensors of one value, then the first ``kept`` sub-tensors of the input.

    ``size_0`` is the innermost dimension of a sub-tensor. The unit ends with sub-tensor number
    ``groups`` of the input, or with the input if ``groups`` is 0.
    """
    u = Unit(1, 1)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs)
    rank, count = u.parameter("rank"), u.parameter("count")
    pushes = Signal()
    front = token("front")
    m.d.comb += front.rows.eq(u.parameter("rows"))
    m.d.comb += front.cols.eq(u.parameter("cols"))
    m.d.comb += [front.valid_rows.eq(front.rows), front.valid_cols.eq(front.cols)]
    m.d.comb += front.control.eq(u.parameter("control"))
    m.d.comb += front.level.eq(counted(u, DIMENSIONS, rank, pushes))

    # One front element leaves per cycle. In the cycle of the last one, the first input element
    # may leave too.
    made = Signal(len(count))
    begun = Signal()
    is_front = made != count
    m.d.comb += pushes.eq(emitter.free & is_front)
    left = emitter.push(pushes, front)
    is_whole = front.level == rank
    with m.If(pushes):
        m.d.sync += made.eq(made + is_whole)
    leaves_last = 0 if widths().registers else is_whole & (made + 1 == count) & left
    m.d.comb += begun.eq(Mux(pushes, leaves_last, ~is_front))

    kept, groups = u.parameter("kept"), u.parameter("groups")
    passed = Signal(len(groups))
    after = Signal(len(groups))
    is_over = (groups != 0) & (passed == groups)
    m.d.comb += head.take.eq(head.valid & emitter.free & begun & ~is_over)
    m.d.comb += after.eq(passed + (head.take & (head.token.level >= rank) & (groups != 0)))
    m.d.sync += passed.eq(after)
    emitter.push(head.take & ((groups == 0) | (passed < kept)), head.token)
    emitter.close()
    ended = Mux(groups != 0, after == groups, head.over)
    m.d.comb += u.done.eq(emitter.empty & begun & ended)
    return u


class _Part(NamedTuple):
    """A part of an element, as a function of the element and the part's number.

    Attributes:
        count: the number of parts.
        fields: the fields of the token of part ``at``, except its level.
        level: the level of each part but the last, as a constant or a function of its number.
        adds: the number of dimensions that the parts add to the stream.
        skips: an element without parts sends nothing if it closes no dimension.
    """

    count: Callable[..., Any]
    fields: Callable[..., dict[str, Any]]
    level: int | Callable[[Any], Any]
    adds: int
    skips: bool = False


def _sequence(u: Unit, part: _Part) -> Unit:
    m, inputs, emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    is_going = Signal()
    shown = []
    new = Signal()
    for port, each in enumerate(inputs):
        held, now = token(f"held_{port}"), token(f"now_{port}")
        m.d.comb += now.eq(Mux(is_going, held.as_value(), each.token.as_value()))
        with m.If(new):
            m.d.sync += held.eq(each.token)
        shown.append(now)
    takes = wire(m, "takes", u.is_valid & emitter.free & ~is_going)
    m.d.comb += [each.take.eq(takes) for each in inputs]
    stop, bare = shown[0].level, shown[0].bare
    count = wire(m, "count", part.count(*shown))
    number = Signal(len(count))
    m.d.comb += new.eq(takes & ~bare)
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
    second = Signal()
    after = Signal(len(count))
    if not widths().registers:
        # The next part waits in the output stage, so that an element can follow the last part.
        m.d.comb += second.eq(is_part & left & (number + 1 < count))
        emitter.push(second, of("part_second", number + 1))
    emitter.close()
    m.d.comb += after.eq(number + 1 + second)
    goes_on = wire(m, "goes_on", Mux(is_part, after < count, is_going))
    m.d.sync += is_going.eq(goes_on)
    with m.If(is_part):
        m.d.sync += number.eq(Mux(after < count, after, 0))
    level_differs: Any = 0
    for each in inputs[1:]:
        level_differs = level_differs | (each.token.level != inputs[0].token.level)
    m.d.comb += u.fault.eq(takes & level_differs)
    m.d.comb += u.done.eq(emitter.empty & ~goes_on & u.over)
    return u


def flat_map_told(parts: Parts) -> Unit:
    """Send the parts of each tile; the testbench supplies their number, which data decide."""
    u = Unit(1, 1)
    told, uses = u.told()
    size = {"rows": parts.rows, "cols": parts.cols}
    valid = {"valid_rows": parts.rows, "valid_cols": parts.cols}
    # The number is requested in the cycle that takes the tile, and kept until the next tile.
    kept = Signal(widths().number)
    head = u.inputs[0]
    begins = head.take & ~head.token.bare
    u.m.d.comb += uses.eq(begins)
    with u.m.If(begins):
        u.m.d.sync += kept.eq(told.control)

    def count(_: Any) -> Any:
        return Mux(begins, told.control[: widths().number], kept)

    return _sequence(u, _Part(count, lambda *_: {**size, **valid}, level=0, adds=0, skips=True))


SPLITS: Final = frozenset({"SplitRows", "SplitCols", "SplitTiles"})
"""Functions of FlatMap."""


def flat_map(function: str) -> Unit:
    """Send the rows or columns of each tile; ``valid_only`` skips padding."""
    u = Unit(1, 1)
    valid_only = u.parameter("valid_only")

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
    """Send each tile as ``rows`` x ``cols`` parts, row by row; ``across`` parts end a dimension."""
    u = Unit(1, 1)
    rows, cols = u.parameter("rows"), u.parameter("cols")
    across = u.parameter("across")

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
    """Send the addresses of a request's tiles: input 0 has requests, input 1 their lengths."""
    u = Unit(2, 1)
    stride = u.parameter("stride")
    return _sequence(
        u,
        _Part(
            lambda _, length: length.control[: widths().number],
            lambda at, request, _: {"control": request.control * stride + at, **_NUMBER},
            level=0,
            adds=1,
        ),
    )


def filter_last() -> Unit:
    """Send, for each length n, n - 1 selectors of stream 1, then one of stream 0."""
    u = Unit(1, 1)
    return _sequence(
        u,
        _Part(
            lambda length: length.control[: widths().number],
            lambda at, length: {"control": Mux(at + 1 == length.control, 1, 2)},
            level=0,
            adds=1,
        ),
    )


def expert_addresses() -> Unit:
    """Send the addresses of the tiles of the expert that a selector names."""
    u = Unit(1, 1)
    tiles = u.parameter("tiles")

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

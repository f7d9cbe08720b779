"""Modules of operators that compute. They count cycles, and the arithmetic is outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Any: amaranth has no types.
from typing import Any, Final

from amaranth import Const, Mux, Signal
from amaranth.hdl import Value

from operators.rtl.blocks import (
    SIZES,
    Emitter,
    Unit,
    any_of,
    changed,
    largest,
    overflows,
    second,
    token,
    widths,
)
from operators.rtl.costs import Port, are_done
from operators.rtl.description import NUMBER, Accumulation, Function, Sizes, sizes_of, whole


def _product(a: Any, b: Any) -> Sizes:
    return a.rows, b.cols, a.valid_rows, b.valid_cols


def _product_transposed(a: Any, b: Any) -> Sizes:
    return a.rows, b.rows, a.valid_rows, b.valid_rows


def _stretched(a: Any, b: Any) -> Sizes:
    """Return the sizes of the broadcast of two tiles."""

    def valid(rows: Any, others: Any, of_rows: Any, of_others: Any) -> Any:
        either = Mux(rows == 1, of_others, of_rows)
        return Mux(rows == others, largest(of_rows, of_others), either)

    return (
        Mux(a.rows == 1, b.rows, a.rows),
        Mux(a.cols == 1, b.cols, a.cols),
        valid(a.rows, b.rows, a.valid_rows, b.valid_rows),
        valid(a.cols, b.cols, a.valid_cols, b.valid_cols),
    )


def _larger_size(a: Any, b: Any) -> Any:
    return largest(a.rows, b.rows) * largest(a.cols, b.cols)


def _first(x: Any, *_: Any) -> Sizes:
    return sizes_of(x)


def _column(x: Any) -> Sizes:
    return x.rows, Const(1), x.valid_rows, Const(1)


FUNCTIONS: Final[dict[str, Function]] = {
    "Matmul": Function(2, _product, lambda a, b: (a.rows * a.cols * b.cols) << 1),
    "MatmulT": Function(2, _product_transposed, lambda a, b: (a.rows * a.cols * b.rows) << 1),
    "Binary": Function(2, _stretched, _larger_size),
    "SiLU": Function(1, sizes_of, lambda x: (x.rows * x.cols) << 3),
    "Exp": Function(1, sizes_of, lambda x: (x.rows * x.cols) << 2),
    "RowSum": Function(1, _column, lambda x: x.rows * x.cols),
    "ShiftedExp": Function(3, _first, lambda x, *_: x.rows * x.cols * 5),
    "SetOffset": Function(2, lambda x, n: (x.rows, x.cols, n.control, x.valid_cols)),
    "RowAppend": Function(2, lambda x, y: (x.rows, x.cols, x.valid_rows + y.rows, x.valid_cols)),
    "OneHot": Function(1, lambda _: NUMBER, is_told=True),
    "CacheWriteAddress": Function(
        2,
        lambda *_: NUMBER,
        number=lambda stride, request, tiles: request.control * stride + tiles.control - 1,
    ),
    "AttentionScores": Function(
        2, _product_transposed, lambda q, k: q.rows * k.rows * ((q.cols << 1) + 1)
    ),
    "MaskScores": Function(2, _first, lambda scores, _: scores.rows * scores.cols),
    "Quotient": Function(
        2,
        lambda sums, _: (sums.rows, sums.cols, sums.valid_rows, sums.cols),
        lambda sums, _: sums.rows * sums.cols,
    ),
    **{
        f"ScaledAdd{flops}": Function(2, _first, lambda x, _, flops=flops: x.rows * x.cols * flops)
        for flops in (1, 2, 3)
    },
    "SelectorOf": Function(
        2, lambda _, selector: sizes_of(selector), number=lambda *tokens: tokens[2].control
    ),
}
"""Functions of Map by the name of their module."""


def pad_rows(rows: int) -> Function:
    return Function(1, lambda x: (Const(rows), x.cols, x.valid_rows, x.valid_cols))


def _operands(heads: Sequence[Any], items: Sequence[int]) -> list[Any]:
    """Return the operand tiles: ``items[i]`` of input *i*, two for a tuple."""
    return [
        second(head) if number else head
        for head, count in zip(heads, items, strict=True)
        for number in range(count)
    ]


def _placement(u: Unit, operands: int) -> tuple[list[Any], Any]:
    """Return the bytes per number of each operand, and a memory port's bytes per cycle."""
    sizes = [u.parameter(f"bytes_{number}") for number in range(operands)]
    return sizes, u.parameter("bandwidth")


def _loads(tiles: Sequence[Any], bare: Any, element_bytes: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [
        (tile.in_memory & ~bare, tile.rows * tile.cols * size)
        for tile, size in zip(tiles, element_bytes, strict=True)
    ]


def map_(function: Function, items: Sequence[int]) -> Unit:
    """Apply a function. An element takes as long as the longest of loading, computing and storing.

    Input *i* carries ``items[i]`` tiles. The inputs keep their slots until the result leaves.
    """
    operands, sizes, operations, number, is_told = function
    u = Unit(len(items), 1)
    m, out, heads = u.m, u.outputs[0], [each.token for each in u.inputs]
    tiles = _operands(heads, items)
    element_bytes, bandwidth = _placement(u, operands)
    rate = u.parameter("rate")
    result_bytes, to_memory = u.parameter("result_bytes"), u.parameter("to_memory")
    going = Signal()
    fires = Signal()
    bare = heads[0].bare
    m.d.comb += going.eq(u.is_valid)

    result = token("result")
    m.d.comb += [result.level.eq(heads[0].level), result.bare.eq(bare)]
    m.d.comb += result.empty.eq(heads[0].empty)
    new_sizes = sizes(*tiles)
    for name, size in zip(SIZES, new_sizes, strict=True):
        m.d.comb += getattr(result, name).eq(Mux(bare, 0, size))
    if number is not None:
        m.d.comb += result.control.eq(Mux(bare, 0, number(u.parameter("stride"), *tiles)))
    if is_told:
        told, takes = u.told()
        m.d.comb += [takes.eq(fires & ~bare), result.control.eq(Mux(bare, 0, told.control))]
    m.d.comb += result.in_memory.eq(to_memory & ~bare)

    work = Value.cast(operations(*tiles) if operations else 1)
    stored = result.rows * result.cols * result_bytes
    ports = [
        Port("load", bandwidth, _loads(tiles, bare, element_bytes)),
        Port("compute", rate, [(~bare, work)]),
        Port("store", bandwidth, [(to_memory & ~bare, stored)]),
    ]
    m.d.comb += fires.eq(going & are_done(m, going, fires, ports) & out.ready)
    m.d.comb += [out.valid.eq(fires), out.token.eq(result)]
    m.d.comb += [each.take.eq(fires) for each in u.inputs]
    differs = any_of(each.level != heads[0].level for each in heads[1:])
    m.d.comb += u.fault.eq(going & (differs | (~bare & overflows(new_sizes, widths().size))))
    m.d.comb += u.done.eq(u.over)
    return u


def _below(total: Any, tile: Any) -> Sizes:
    return (
        total.rows + tile.rows, total.cols, total.valid_rows + tile.valid_rows, total.valid_cols
    )  # fmt: skip


def _beside(total: Any, tile: Any) -> Sizes:
    return (
        total.rows, total.cols + tile.cols, total.valid_rows, total.valid_cols + tile.valid_cols
    )  # fmt: skip


def _last(sizes: Callable[..., Sizes]) -> Callable[..., Sizes]:
    return lambda _, *tiles: sizes(*tiles)


def _unmasked(a: Any, b: Any) -> Sizes:
    return a.rows, b.cols, a.valid_rows, b.cols


def _unmasked_transposed(a: Any, b: Any) -> Sizes:
    return a.rows, b.rows, a.valid_rows, b.rows


def _none(*_: Any) -> Any:
    return Const(0)


def _whole_column(x: Any) -> Sizes:
    return x.rows, Const(1), x.rows, Const(1)


def _weighted(weights: Any, values: Any, *_: Any) -> Sizes:
    return weights.rows, values.cols, weights.rows, values.cols


ACCUMULATIONS: Final[dict[str, Accumulation]] = {
    "RetileRow": Accumulation(1, sizes_of, _below, _none, stays=True),
    "RetileCol": Accumulation(1, sizes_of, _beside, _none, stays=True),
    "Sum": Accumulation(1, whole, _first, lambda x: x.rows * x.cols),
    "MatmulSum": Accumulation(
        2, _unmasked, _last(_unmasked), lambda a, b: (a.rows * a.cols * b.cols) << 1
    ),
    "MatmulSumT": Accumulation(
        2, _unmasked_transposed, _last(_unmasked_transposed),
        lambda a, b: (a.rows * a.cols * b.rows) << 1,
    ),
    "RunningMaximum": Accumulation(
        1, _column, _last(_column), lambda x: x.rows * (x.cols + 6), beside=_column
    ),
    "RescaledSum": Accumulation(
        4, _weighted, _last(_weighted),
        lambda a, b, *_: a.rows * (((a.cols * b.cols) << 1) + a.cols + b.cols + 1),
        beside=_whole_column,
    ),
    "SignalAllRead": Accumulation(
        1, lambda *_: NUMBER, lambda *_: NUMBER, lambda _: 1, number=1
    ),
}  # fmt: skip
"""Functions of Accum and Scan by the name of their module."""


def fold(function: Accumulation, items: Sequence[int], *, every: bool) -> Unit:  # noqa: PLR0915 - one unit
    """Fold groups of ``rank`` dimensions. Inputs are released before the result has a credit.

    With ``every``, each element gives a result, as in Scan. Otherwise, each group gives one.
    """
    operands, first, more, operations, stays, beside, number = function
    u = Unit(len(items), 1)
    m, heads, emitter = u.m, [each.token for each in u.inputs], Emitter(u.m, u.outputs)
    tiles = _operands(heads, items)
    rank = u.parameter("rank")
    element_bytes, bandwidth = _placement(u, operands)
    rate = u.parameter("rate")
    store_bytes, to_memory = u.parameter("store_bytes"), u.parameter("to_memory")
    empty_rows, empty_cols = u.parameter("rows"), u.parameter("cols")
    going = Signal()
    fires = Signal()
    bare = heads[0].bare
    m.d.comb += going.eq(emitter.free & u.is_valid)
    level = heads[0].level
    passes = bare if every else bare & (heads[0].empty >= rank)
    closes = (level >= rank) & ~passes

    has_some = Signal()
    total = token("total")
    grown = token("grown")
    begun = changed(m, total, "begun", in_memory=heads[0].in_memory if stays else to_memory)
    m.d.comb += grown.eq(total)
    first_sizes, grown_sizes = first(*tiles), more(total, *tiles)
    with m.If(~has_some):
        m.d.comb += [grown.rows.eq(empty_rows), grown.cols.eq(empty_cols)]
        m.d.comb += [grown.valid_rows.eq(empty_rows), grown.valid_cols.eq(empty_cols)]
        m.d.comb += grown.in_memory.eq(0 if stays else to_memory)
    with m.If(~bare & has_some):
        for name, size in zip(SIZES, grown_sizes, strict=True):
            m.d.comb += getattr(grown, name).eq(size)
    with m.Elif(~bare):
        m.d.comb += grown.in_memory.eq(begun.in_memory)
        for name, size in zip(SIZES, first_sizes, strict=True):
            m.d.comb += getattr(grown, name).eq(size)

    stores = Const(1) if every else closes
    ports = [
        Port("load", bandwidth, _loads(tiles, bare, element_bytes)),
        Port("compute", rate, [(~bare, Value.cast(operations(*tiles)))]),
        Port("store", bandwidth, [(stores & to_memory & ~bare, store_bytes)]),
    ]
    m.d.comb += fires.eq(going & are_done(m, going, fires, ports))
    m.d.comb += [each.take.eq(fires) for each in u.inputs]
    folded = Const(0) if every else rank
    result = changed(m, grown, "result", level=level - folded, bare=passes, empty=0)
    m.d.comb += result.control.eq(number)
    if beside is not None:
        for name, size in zip(SIZES, beside(grown), strict=True):
            m.d.comb += getattr(second(result), name).eq(size)
        m.d.comb += second(result).in_memory.eq(grown.in_memory)
    with m.If(passes):
        m.d.comb += result.eq(0)
        m.d.comb += [result.bare.eq(1), result.level.eq(level - folded)]
        m.d.comb += result.empty.eq(heads[0].empty - folded)
    emitter.push(fires & (every | closes | passes), result)
    emitter.close()
    with m.If(fires & (level >= rank) & (every | ~passes)):
        m.d.sync += has_some.eq(0)
    with m.Elif(fires & ~bare):
        m.d.sync += [has_some.eq(1), total.eq(grown)]
    differs = any_of(each.level != level for each in heads[1:])
    are_large = [overflows(each, widths().size) for each in (grown_sizes, first_sizes)]
    m.d.comb += u.fault.eq(going & (differs | (~bare & Mux(has_some, *are_large))))
    m.d.comb += u.done.eq(emitter.empty & u.over)
    return u

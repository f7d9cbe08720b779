"""Modules of operators that compute: their arithmetic is outside, its time is counted here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# Any: amaranth has no types.
from typing import Any, Final

from amaranth import Const, Mux, Signal

from operators.rtl.blocks import Emitter, Unit, cycles_of, largest
from operators.rtl.tokens import LEVEL_BITS, SIZE_BITS, changed, token

__all__ = ["ACCUMULATIONS", "FUNCTIONS", "accum", "map_"]

Sizes = tuple[Any, Any, Any, Any]
"""Rows, columns, and how many of them are valid."""


def _sizes(tile: Any) -> Sizes:
    return tile.rows, tile.cols, tile.valid_rows, tile.valid_cols


def _product(a: Any, b: Any) -> Sizes:
    return a.rows, b.cols, a.valid_rows, b.valid_cols


def _product_transposed(a: Any, b: Any) -> Sizes:
    return a.rows, b.rows, a.valid_rows, b.valid_rows


def _stretched(a: Any, b: Any) -> Sizes:
    """Return the sizes of two tiles of one size, or one of which is a row or a column."""

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


Function = tuple[Callable[..., Sizes], Callable[..., Any]]
"""What comes out, and how many operations that is."""

FUNCTIONS: Final[dict[str, Function]] = {
    "Matmul": (_product, lambda a, b: (a.rows * a.cols * b.cols) << 1),
    "MatmulT": (_product_transposed, lambda a, b: (a.rows * a.cols * b.rows) << 1),
    "Binary": (_stretched, _larger_size),
    "SiLU": (_sizes, lambda x: (x.rows * x.cols) << 3),
    "Exp": (_sizes, lambda x: (x.rows * x.cols) << 2),
    "RowSum": (
        lambda x: (x.rows, Const(1), x.valid_rows, Const(1)),
        lambda x: x.rows * x.cols,
    ),
}
"""Functions of Map by the name of their module."""


def _placement(u: Unit, inputs: int) -> tuple[list[Any], Any]:
    """Return bytes of a number of each operand, and what a memory port moves in a cycle."""
    return [u.parameter(f"bytes_{number}", 5) for number in range(inputs)], u.parameter(
        "bandwidth", 32
    )


def _loads(m: Any, tiles: Sequence[Any], element_bytes: Sequence[Any]) -> list[Any]:
    """Return the bytes that are to be loaded for each operand."""
    found = []
    for number, (tile, size) in enumerate(zip(tiles, element_bytes, strict=True)):
        amount = Signal(2 * SIZE_BITS + 5, name=f"load_bytes_{number}")
        m.d.comb += amount.eq(Mux(tile.in_memory & ~tile.bare, tile.rows * tile.cols * size, 0))
        found.append(amount)
    return found


def map_(function: str) -> Unit:
    """Apply a function: an element takes the longest of loading, computing and storing.

    The inputs keep their slots until the result leaves.
    """
    sizes, operations = FUNCTIONS[function]
    inputs = operations.__code__.co_argcount
    u = Unit(inputs, 1)
    m, out, heads = u.m, u.outputs[0], [each.token for each in u.inputs]
    element_bytes, bandwidth = _placement(u, inputs)
    rate = u.parameter("rate", 32)
    result_bytes, to_memory = u.parameter("result_bytes", 5), u.parameter("to_memory", 1)
    going, fires, bare = Signal(), Signal(), heads[0].bare
    m.d.comb += going.eq(_all(each.valid for each in u.inputs))

    result = token("result")
    m.d.comb += [result.level.eq(heads[0].level), result.bare.eq(bare)]
    m.d.comb += result.empty.eq(heads[0].empty)
    for name, size in zip(("rows", "cols", "valid_rows", "valid_cols"), sizes(*heads), strict=True):
        m.d.comb += getattr(result, name).eq(Mux(bare, 0, size))
    m.d.comb += result.in_memory.eq(to_memory & ~bare)

    work, stored = Signal(3 * SIZE_BITS + 4), Signal(2 * SIZE_BITS + 5)
    m.d.comb += work.eq(Mux(bare, 0, operations(*heads)))
    m.d.comb += stored.eq(Mux(to_memory, result.rows * result.cols * result_bytes, 0))
    loaded = cycles_of(m, going, fires, _loads(m, heads, element_bytes), bandwidth)
    computed = cycles_of(m, going, fires, [work], rate)
    written = cycles_of(m, going, fires, [stored], bandwidth)
    m.d.comb += fires.eq(going & loaded & computed & written & out.ready)
    m.d.comb += [out.valid.eq(fires), out.token.eq(result)]
    m.d.comb += [each.take.eq(fires) for each in u.inputs]
    m.d.comb += u.fault.eq(going & _any(each.level != heads[0].level for each in heads))
    m.d.comb += u.done.eq(_all(each.over for each in u.inputs))
    return u


def _all(each: Any) -> Any:
    found: Any = 1
    for one in each:
        found = found & one
    return found


def _any(each: Any) -> Any:
    found: Any = 0
    for one in each:
        found = found | one
    return found


def _kept(total: Any, *tiles: Any) -> Sizes:
    """Return the sizes of the first tile: others have the same."""
    del tiles
    return _sizes(total)


def _below(total: Any, tile: Any) -> Sizes:
    return (
        total.rows + tile.rows, total.cols, total.valid_rows + tile.valid_rows, total.valid_cols
    )  # fmt: skip


def _beside(total: Any, tile: Any) -> Sizes:
    return (
        total.rows, total.cols + tile.cols, total.valid_rows, total.valid_cols + tile.valid_cols
    )  # fmt: skip


def _whole(tile: Any) -> Sizes:
    return tile.rows, tile.cols, tile.rows, tile.cols


def _last(sizes: Callable[..., Sizes]) -> Callable[..., Sizes]:
    """Return the sizes of what came last."""
    return lambda _, *tiles: sizes(*tiles)


def _unmasked(a: Any, b: Any) -> Sizes:
    return a.rows, b.cols, a.valid_rows, b.cols


def _unmasked_transposed(a: Any, b: Any) -> Sizes:
    return a.rows, b.rows, a.valid_rows, b.rows


def _none(*_: Any) -> Any:
    return Const(0)


Accumulation = tuple[int, bool, Callable[..., Sizes], Callable[..., Sizes], Callable[..., Any]]
"""Operands; whether the result stays where they are; the first one; one more; operations."""

ACCUMULATIONS: Final[dict[str, Accumulation]] = {
    "RetileRow": (1, True, _sizes, _below, _none),
    "RetileCol": (1, True, _sizes, _beside, _none),
    "Sum": (1, False, _whole, _kept, lambda x: x.rows * x.cols),
    "MatmulSum": (
        2, False, _unmasked, _last(_unmasked),
        lambda a, b: (a.rows * a.cols * b.cols) << 1,
    ),
    "MatmulSumT": (
        2, False, _unmasked_transposed, _last(_unmasked_transposed),
        lambda a, b: (a.rows * a.cols * b.rows) << 1,
    ),
}  # fmt: skip
"""Functions of Accum by the name of their module."""


def accum(function: str) -> Unit:
    """Fold groups of ``rank`` dimensions; inputs are released before the result waits."""
    inputs, stays, first, more, operations = ACCUMULATIONS[function]
    u = Unit(inputs, 1)
    m, heads, emitter = u.m, [each.token for each in u.inputs], Emitter(u.m, u.outputs)
    rank = u.parameter("rank", LEVEL_BITS)
    element_bytes, bandwidth = _placement(u, inputs)
    rate = u.parameter("rate", 32)
    store_bytes, to_memory = u.parameter("store_bytes", 48), u.parameter("to_memory", 1)
    empty_rows, empty_cols = u.parameter("rows", SIZE_BITS), u.parameter("cols", SIZE_BITS)
    going, fires, bare = Signal(), Signal(), heads[0].bare
    m.d.comb += going.eq(emitter.free & _all(each.valid for each in u.inputs))
    level = heads[0].level
    passes = bare & (heads[0].empty >= rank)
    closes = (level >= rank) & ~passes

    has_some, total, grown = Signal(), token("total"), token("grown")
    begun = changed(m, total, "begun", in_memory=heads[0].in_memory if stays else to_memory)
    m.d.comb += grown.eq(total)
    with m.If(~has_some):
        m.d.comb += [grown.rows.eq(empty_rows), grown.cols.eq(empty_cols)]
        m.d.comb += [grown.valid_rows.eq(empty_rows), grown.valid_cols.eq(empty_cols)]
        m.d.comb += grown.in_memory.eq(0 if stays else to_memory)
    names = ("rows", "cols", "valid_rows", "valid_cols")
    with m.If(~bare & has_some):
        for name, size in zip(names, more(total, *heads), strict=True):
            m.d.comb += getattr(grown, name).eq(size)
    with m.Elif(~bare):
        m.d.comb += grown.in_memory.eq(begun.in_memory)
        for name, size in zip(names, first(*heads), strict=True):
            m.d.comb += getattr(grown, name).eq(size)

    work, stored = Signal(3 * SIZE_BITS + 4), Signal(48)
    m.d.comb += work.eq(Mux(bare, 0, operations(*heads)))
    m.d.comb += stored.eq(Mux(closes & to_memory & ~bare, store_bytes, 0))
    loaded = cycles_of(m, going, fires, _loads(m, heads, element_bytes), bandwidth)
    computed = cycles_of(m, going, fires, [work], rate)
    written = cycles_of(m, going, fires, [stored], bandwidth)
    m.d.comb += fires.eq(going & loaded & computed & written)
    m.d.comb += [each.take.eq(fires) for each in u.inputs]
    result = changed(m, grown, "result", level=level - rank, bare=passes, empty=0)
    with m.If(passes):
        m.d.comb += result.empty.eq(heads[0].empty - rank)
    emitter.push(fires & (closes | passes), result)
    emitter.close()
    with m.If(fires & closes):
        m.d.sync += has_some.eq(0)
    with m.Elif(fires & ~bare):
        m.d.sync += [has_some.eq(1), total.eq(grown)]
    m.d.comb += u.fault.eq(going & _any(each.level != level for each in heads))
    m.d.comb += u.done.eq(emitter.empty & _all(each.over for each in u.inputs))
    return u

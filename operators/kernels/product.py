"""Matrix products, as a Map over pairs of tiles or an Accum of their products.

The layouts of a product follow from the order of its loops. Weights are in off-chip memory. Two
computed operands are read batch by batch. The result has B batches, M rows and N columns (the
output features). K is the inner dimension. Tiles have the sizes tm, tn and tk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Layout, Stream, dtype_named
from fabric.extend import BLOCK, Loop, block_format
from operators.accum import Accum
from operators.expand import Repeat
from operators.functions.matmul import LeadingCols, Matmul, MatmulSum, ScaledAdd
from operators.functions.retile import RetileCol
from operators.kernels.following import readable, rows_layout, unrepeated
from operators.kernels.kernel import Kernel, Operand, Streams, is_convertible
from operators.kernels.schedule import Order, Schedule, at_most, fit
from operators.kernels.tensors import Computed, Pulled, Stored, View
from operators.map import Map
from operators.of_the_fabric import Broadcast
from operators.reassemble import Reassemble
from operators.shape import redimensioned
from operators.sources import Selectors

_NARROWER = 8
"""If equal shares for all units need narrower tiles, these may be narrower by this factor."""

_THINNER = 4
"""Arriving tiles are kept unless the schedule has more than this factor times as many rows."""

_WIDER = 4
"""Whole rows of sums may be at most this many times as wide as the rows of the operand."""


class Product(Kernel):
    """``left @ right``, or ``left @ right.T``; an addend is added before rounding.

    The result has R tiles of rows and C of columns. A stored left operand is loaded once, or C
    times in ``output`` order if K is tiled. A stored right operand is loaded R times, or once in
    ``weight`` order, which keeps all rows and a tile of tn x K. A stored operand that finds no room
    is loaded again. A kernel's result is kept on chip and read once.

    If the nest has several units, each unit loads and multiplies its own columns of the weights,
    and the tiles of the units are merged in turn.
    """

    family: ClassVar = "product"

    def __init__(
        self,
        name: str,
        nest: Nest,
        left: View,
        right: View,
        dtype: np.dtype,
        *,
        transposed: bool = True,
        added: View | None = None,
        factors: tuple[float, float] = (1.0, 1.0),
        keeps: int | None = None,
    ) -> None:
        """Multiply in the order of ``nest``.

        ``left`` is ``[*B, *M, K]``; ``right`` is ``[*B, N, K]``, or ``[*B, K, N]`` if not
        ``transposed``, and ``[N, K]`` for several units. ``added`` broadcasts to the result.
        ``factors`` multiply the product and the addend. ``keeps`` is the number of columns without
        padding; None if all N columns are kept.
        """
        self.nest, self.transposed = nest, transposed
        self.factors, self.keeps = factors, keeps
        once = nest.order == "weight"
        reading = nest.reading_right(right.shape[:-2], transposed=transposed)
        rights, addends = [right], [] if added is None else [added.expanded(nest.result.shape)]
        if nest.units > 1:
            rights = _dealt(right, nest, 0)
            addends = [one for addend in addends for one in _dealt(addend, nest, nest.last)]
        operands = (
            Operand(left, nest.reading_left, resident=nest.order != "output"),
            *(Operand(each, reading, resident=once) for each in rights),
            *(Operand(addend, nest.of_unit, broadcasts=(0, 1)) for addend in addends),
        )
        result = nest.result if keeps is None else nest.whole_rows(keeps)
        super().__init__(name, operands, Computed(name, result.shape, dtype, result))

    @override
    def wire(self, inputs: Sequence[Streams]) -> Sequence[Streams]:
        streams = [stream for stream in inputs if isinstance(stream, Stream)]
        units = self.nest.units
        left, rights, addends = streams[0], streams[1 : units + 1], streams[units + 1 :]
        lefts = [left] if units == 1 else Broadcast(units)(left)
        products = [
            self._unit(self.name if units == 1 else f"{self.name}_{unit}", *each)
            for unit, each in enumerate(zip(lefts, rights, addends or (None,) * units, strict=True))
        ]
        product = products[0] if units == 1 else self._in_turn(products)
        return (product if self.keeps is None else self._cut(product, self.keeps),)

    def _unit(self, name: str, left: Stream, right: Stream, addend: Stream | None) -> Stream:
        nest = self.nest
        left, right = self._repeated(left), self._repeated(right)
        product: Stream
        if nest.groups:
            summed = MatmulSum(transposed=self.transposed, unrounded=addend is not None)
            product = Accum(summed, nest.groups, name=name)(left, right)
        else:
            matmul = Matmul(transposed=self.transposed, unrounded=addend is not None)
            product = Map(matmul, name=name)(left, right)
        if addend is None:
            return product
        return Map(ScaledAdd(*self.factors), name=f"{name}_add")(product, addend)

    def _in_turn(self, products: Sequence[Stream]) -> Stream:
        units, count = len(products), self.nest.of_unit.count
        turns = np.tile(np.arange(units), count)
        parts = [redimensioned(product, (count,)) for product in products]
        order = Selectors(turns[:, np.newaxis], units, name=f"{self.name}_turns")()
        joined = Reassemble(name=f"{self.name}_join")(parts, order)
        return redimensioned(joined, (1, *self.nest.result.trips))

    def _repeated(self, stream: Stream) -> Stream:
        """Repeat each tile for the innermost loops that do not read it again."""
        trips = self.nest.trips
        missing = math.prod(trips[stream.rank :])
        if missing > 1:
            stream = Repeat(missing)(stream)
        return redimensioned(stream, (1, *trips))

    def _cut(self, product: Stream, cols: int) -> Stream:
        """Join tiles to whole rows and drop columns of padding."""
        nest = self.nest
        rows_first = replace(nest, order="row").result
        if not nest.result.same_order(rows_first):
            from operators.convert import Convert

            product = Convert(rows_first)(product.laid_out(nest.result))
        tiles = nest.size // nest.cols
        product = Accum(RetileCol(), name=f"{self.name}_join")(
            redimensioned(product, (1, rows_first.count // tiles, tiles))
        )
        product = Map(LeadingCols(cols), name=f"{self.name}_cut")(product)
        return redimensioned(product, (1, *nest.whole_rows(cols).trips))


def _dealt(view: View, nest: Nest, axis: int) -> list[View]:
    """Return the part of each unit: the units take tiles of columns along ``axis`` in turn."""
    lead, size, behind = view.shape[:axis], view.shape[axis], view.shape[axis + 1 :]
    turns = size // (nest.cols * nest.units)
    dealt = view.reshaped((*lead, turns, nest.units, nest.cols, *behind))
    return [
        dealt.sliced(axis + 1, unit, 1).reshaped((*lead, size // nest.units, *behind))
        for unit in range(nest.units)
    ]


@dataclass(frozen=True)
class Nest:
    """Loops: b over batches, and r, n and k over tiles of rows, columns and the inner dimension.

    The loops in ``row`` and ``output`` order are (b, r, n, k), in ``weight`` order (b, n, r, k).

    Attributes:
        left: the tiles of the left operand ``[*B, *M, K]``, each once, in any order of loops.
        batch: the number of batch dimensions, of size 1 in each tile.
        size: N.
        cols: tn.
        units: how many units take the tiles of columns in turn; a divisor of the number of tiles.
            The loops describe one unit.
    """

    left: Layout
    batch: int
    size: int
    cols: int
    order: Order
    units: int = 1

    @property
    def last(self) -> int:
        """The last dimension, which is K in the left operand and N in the result."""
        return len(self.left.shape) - 1

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """All loops over the left operand, outermost first; the loop n reads the operand again."""
        batches = self._along(range(self.batch))
        rows, inner = self._along(range(self.batch, self.last)), self._along((self.last,))
        across = (Loop(self.size // (self.cols * self.units), 1, None),)
        middle = (*across, *rows) if self.order == "weight" else (*rows, *across)
        return (*batches, *middle, *inner)

    def _along(self, dims: range | tuple[int, ...]) -> tuple[Loop, ...]:
        return tuple(loop for loop in self.left.loops if loop.dim in dims and loop.trips > 1)

    @property
    def groups(self) -> int:
        """The number of loops along the inner dimension."""
        return len(self._along((self.last,)))

    @property
    def row_tiles(self) -> int:
        """The number of tiles of rows in a batch."""
        return math.prod(each.trips for each in self._along(range(self.batch, self.last)))

    @property
    def trips(self) -> tuple[int, ...]:
        return tuple(loop.trips for loop in self.loops)

    @property
    def reading_left(self) -> Layout:
        """The order of reading the left operand, without innermost loops that repeat a tile."""
        return Layout.of_loops(self.left.shape, self.left.tile, (), unrepeated(self.loops))

    def reading_right(self, batches: tuple[int, ...], *, transposed: bool) -> Layout:
        """Return the order in which a unit reads its U = N / units columns of the right operand.

        The columns are ``[*batches, U, K]`` if ``transposed``, otherwise ``[*batches, K, U]``.
        """
        count = len(batches)
        sizes = self.size // self.units, self.left.shape[-1]
        tile = self.cols, self.left.tile[-1]
        across, inner = count, count + 1
        if not transposed:
            sizes, tile, across, inner = sizes[::-1], tile[::-1], inner, across

        def moved(loop: Loop) -> Loop:
            if loop.dim is None:
                return Loop(loop.trips, self.cols, across)
            if loop.dim == self.last:
                return loop._replace(dim=inner)
            return loop if loop.dim < self.batch else Loop(loop.trips, 1, None)

        loops = unrepeated(tuple(map(moved, self.loops)))
        return Layout.of_loops((*batches, *sizes), ((1,) * count) + tile, (), loops)

    @property
    def result(self) -> Layout:
        """The layout of the result, ``[*B, *M, N]``, with the tiles of the units in turn."""
        turns = (Loop(self.units, self.cols, self.last),) if self.units > 1 else ()
        across = self._across(self.cols * self.units)
        return self._given((*across, *turns), self.size, self.cols)

    @property
    def of_unit(self) -> Layout:
        """The layout of one unit's result, over the unit's columns."""
        return self._given(self._across(self.cols), self.size // self.units, self.cols)

    def _across(self, step: int) -> tuple[Loop, ...]:
        return tuple(
            Loop(loop.trips, step, self.last) if loop.dim is None else loop
            for loop in self.loops
            if loop.dim != self.last
        )

    def whole_rows(self, cols: int) -> Layout:
        """Return the layout of a result with ``cols`` columns, all in one tile."""
        loops = (loop for loop in self.loops if loop.dim not in {None, self.last})
        return self._given(tuple(loops), cols, cols)

    def _given(self, loops: tuple[Loop, ...], size: int, cols: int) -> Layout:
        shape, tile = (*self.left.shape[:-1], size), (*self.left.tile[:-1], cols)
        return Layout.of_loops(shape, tile, (), loops)


def linear(
    name: str,
    x: View,
    weight: View,
    bias: View | None,
    dtype: np.dtype,
    schedule: Schedule,
    factors: tuple[float, float] = (1.0, 1.0),
) -> Product:
    """Return ``x @ weight.T``, with a bias that is added before rounding.

    ``x`` is ``[*rows, K]``, ``weight`` ``[N, K]`` in off-chip memory; ``bias`` broadcasts to
    ``[*rows, N]``. Weights are read as PyTorch stores them, with one output feature in a row. So
    the rows of a tile are as long as possible, and the memory fills all its requests.

    In ``row`` order or with one tile of rows, an operand may arrive in tiles of columns. If N is at
    most 4 * K, their products are summed to whole rows. Otherwise the tiles are joined first. If no
    tile near the scheduled size divides N, weights and bias are padded with rows of zeros.
    """
    size, inner = weight.shape
    stored_as = schedule.weight_dtype_of(name)
    if stored_as is not None:
        weight = View.of(weight.stored().retyped(dtype_named(stored_as)))
    order = schedule.order_of(name)
    left = left_tiles(x, 0, schedule, whole=order != "output")
    if block_format(weight.dtype) is not None and left.tile[-1] % BLOCK:
        # A tile of weights has whole blocks, or whole rows.
        left = readable((x,), Layout.tiled(x.shape, (*left.tile[:-1], inner)), whole_rows=False)
    nest = Nest(left, 0, size, size, order)
    if nest.row_tiles == 1 and order == "weight":
        nest = Nest(left, 0, size, size, "row")
    arrives_in_order = x.layout is not None and x.layout.same_order(nest.reading_left)
    if nest.order == "row" and nest.groups and arrives_in_order:
        if size <= _WIDER * inner:
            units = at_most(schedule.units, size)
            nest = Nest(left, 0, size, size // units, "row", units)
            return Product(name, nest, x, weight, dtype, added=bias, factors=factors)
        whole = readable((x,), Layout.tiled(left.shape, (*left.tile[:-1], inner)), whole_rows=False)
        nest = Nest(whole, 0, size, size, "row")
    units = at_most(schedule.units, size)
    cols, keeps = near_divisor(size // units, schedule.tile_cols), None
    if cols is None and units > 1:
        # Narrower tiles that divide the columns evenly let all units load in equal time.
        narrow = fit(size // units, schedule.tile_cols)
        cols = narrow if narrow * _NARROWER >= schedule.tile_cols else None
    if cols is None:
        cols = schedule.tile_cols
        if bias is None or isinstance(bias.source, Stored):
            keeps, size = size, -(-size // cols) * cols
            weight = _padded(weight, 0, size)
            bias = None if bias is None else _padded(bias, -1, size)
        else:
            cols = fit(size, cols)
        units = at_most(schedule.units, size // cols)
    nest = Nest(nest.left, 0, size, cols, nest.order, units)
    return Product(name, nest, x, weight, dtype, added=bias, factors=factors, keeps=keeps)


def left_tiles(x: View, batch: int, schedule: Schedule, *, whole: bool) -> Layout:
    """Return the tiles in which a left operand ``[*batches, *rows, K]`` is read, each once.

    Arriving tiles of one batch are kept if they have enough rows, or if no converter can make tiles
    with the schedule's rows. A product with weights takes 16 rows as fast as one. With ``whole``,
    the inner dimension is whole or in its arriving tiles.
    """
    inner = x.shape[-1]
    cols = inner if whole else near_divisor(inner, schedule.tile_inner) or inner
    arriving = x.layout
    rows = ((1,) * batch) + rows_layout(x.shape[batch:], schedule.tile_rows, inner).tile[:-1]
    if arriving is not None and not arriving.rereads and set(arriving.tile[:batch]) <= {1}:
        if arriving.rows * _THINNER < math.prod(rows):
            for wide in (cols, min(cols, arriving.tile[-1])):
                layout = Layout.tiled(x.shape, (*rows, wide))
                pulled = x.pull(layout)
                if pulled is not None and is_convertible(x, pulled.layout):
                    return layout
        if whole or arriving.tile[-1] < inner:
            return arriving
        rows = arriving.tile[:-1]
    return readable((x,), Layout.tiled(x.shape, (*rows, cols)), whole_rows=False)


def near_divisor(size: int, wish: int) -> int | None:
    """Return a tile near ``wish`` that divides ``size``; None if no divisor is near."""
    divisor = fit(size, wish)
    return divisor if 4 * divisor >= min(wish, size) else None


def _padded(view: View, axis: int, size: int) -> View:
    """Return a stored tensor, padded with zeros to ``size`` along ``axis`` unless it broadcasts."""
    have = view.shape[axis] if view.shape else 1
    if have == 1:
        return view
    shape, missing = list(view.shape), [(0, 0)] * len(view.shape)
    shape[axis], missing[axis] = size, (0, size - have)
    stored = view.stored()
    padded = stored.viewed(tuple(shape), lambda array: np.pad(array, missing))
    return View.of(replace(padded, base=None))  # a larger tensor, not a view of the smaller one


_WIDEST = 8
"""Arriving tiles are kept if they are at most this many times as wide as the schedule's."""


def batched(
    name: str,
    left: View,
    right: View,
    added: View | None,
    dtype: np.dtype,
    schedule: Schedule,
    factors: tuple[float, float] = (1.0, 1.0),
) -> Product:
    """Return ``left @ right``, with an addend that is added before rounding.

    ``left`` is ``[*B, *M, K]``, ``right`` ``[*B, K, N]``; ``added`` broadcasts to ``[*B, *M, N]``.
    The tiles follow the tiles of the left operand and the columns of the right one. The right
    operand is read transposed if it arrives so, which saves a transposition.
    """
    batch, size, order = len(right.shape) - 2, right.shape[-1], schedule.order_of(name)
    by_columns = right.permuted((*range(batch), batch + 1, batch))
    cols = _cols_of(right, -1, batch) or _cols_of(by_columns, -2, batch) or 0
    if not 0 < cols <= _WIDEST * schedule.tile_cols:
        cols = fit(size, schedule.tile_cols)
    tiles = left_tiles(left, batch, schedule, whole=order != "output")
    inner = tiles.tile[-1]
    wish = Layout.tiled(right.shape, ((1,) * batch) + (inner, cols))
    *_, readable_inner, cols = readable((right,), wish, whole_rows=False).tile
    if readable_inner != inner:
        tiles = Layout.tiled(left.shape, (*tiles.tile[:-1], readable_inner))
    nest = Nest(tiles, batch, size, cols, order)
    if nest.row_tiles == 1 and order == "weight":
        nest = Nest(tiles, batch, size, cols, "row")

    def as_it_is(view: View, *, transposed: bool) -> bool:
        pulled = view.pull(nest.reading_right(view.shape[:-2], transposed=transposed))
        return pulled is not None and _stays(pulled)

    transposed = not as_it_is(right, transposed=False) and as_it_is(by_columns, transposed=True)
    view = by_columns if transposed else right
    return Product(
        name, nest, left, view, dtype, transposed=transposed, added=added, factors=factors
    )


def _cols_of(right: View, axis: int, batch: int) -> int | None:
    """Return the number of the result's columns in an arriving tile of the right operand."""
    layout = right.layout
    return None if layout is None or set(layout.tile[:batch]) > {1} else layout.tile[axis]


def _stays(pulled: Pulled) -> bool:
    """Whether the elements of each arriving tile are in the order that the reader needs."""
    layout = pulled.layout
    return pulled.places.shape == (layout.rows, layout.cols) and np.array_equal(
        pulled.places.reshape(-1), np.arange(layout.rows * layout.cols)
    )

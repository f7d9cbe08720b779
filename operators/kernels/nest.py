"""The loops of a matrix product, and the layouts that follow from their order.

B counts batches, M rows and N columns of the result, K is the inner dimension; tiles have tm rows,
tn columns and tk of the inner dimension.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from fabric import Layout
from fabric.extend import Loop
from operators.kernels.schedule import Order

__all__ = ["Nest"]


@dataclass(frozen=True)
class Nest:
    """Loops over batches b, tiles of rows r, of columns n, and of the inner dimension k.

    The loops in ``row`` and ``output`` order are (b, r, n, k), in ``weight`` order (b, n, r, k).

    Attributes:
        left: the tiles of the left operand ``[*B, *M, K]``, each once; where its loops go along
            batches, rows and the inner dimension in another order, they are put in order.
        batch: dimensions of batches, in which its tiles are 1.
        size: N.
        cols: tn.
        order: of the loops.
        units: how many share the columns, tile by tile in turn; the loops are those of one. They
            divide the tiles of columns.
    """

    left: Layout
    batch: int
    size: int
    cols: int
    order: Order
    units: int = 1

    @property
    def last(self) -> int:
        """The left operand's last dimension: K of the left operand, N of the result."""
        return len(self.left.shape) - 1

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """All loops, outermost first, as they move along the left operand; n reads it again."""
        batches = self._along(range(self.batch))
        rows, inner = self._along(range(self.batch, self.last)), self._along((self.last,))
        across = (Loop(self.size // (self.cols * self.units), 0, None),)
        middle = (*across, *rows) if self.order == "weight" else (*rows, *across)
        return (*batches, *middle, *inner)

    def _along(self, dims: range | tuple[int, ...]) -> tuple[Loop, ...]:
        return tuple(each for each in self.left.loops if each.dim in dims and each.trips > 1)

    @property
    def groups(self) -> int:
        """How many loops go along the inner dimension."""
        return len(self._along((self.last,)))

    @property
    def row_tiles(self) -> int:
        """Tiles of rows of one batch."""
        return math.prod(each.trips for each in self._along(range(self.batch, self.last)))

    @property
    def trips(self) -> tuple[int, ...]:
        """Of all loops."""
        return tuple(each.trips for each in self.loops)

    @property
    def reading_left(self) -> Layout:
        """How the left operand is read; what only repeats a tile at once is left out."""
        return _layout(self.left.shape, self.left.tile, _trimmed(self.loops))

    def reading_right(self, batches: tuple[int, ...], *, transposed: bool) -> Layout:
        """Return how a unit reads its part of the right operand, with M = N / units columns.

        That is ``[*batches, M, K]``, or ``[*batches, K, M]``.

        Args:
            batches: its leading dimensions.
            transposed: it is stored by rows of its columns, ``[*batches, N, K]``.
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
            return loop if loop.dim < self.batch else Loop(loop.trips, 0, None)

        loops = _trimmed(tuple(map(moved, self.loops)))
        return _layout((*batches, *sizes), ((1,) * count) + tile, loops)

    @property
    def result(self) -> Layout:
        """Of the result, ``[*B, *M, N]``; units take turns."""
        turns = (Loop(self.units, self.cols, self.last),) if self.units > 1 else ()
        across = self._across(self.cols * self.units)
        return self._given((*across, *turns), self.size, self.cols)

    @property
    def of_unit(self) -> Layout:
        """Of what one unit gives, as a tensor of its own columns."""
        return self._given(self._across(self.cols), self.size // self.units, self.cols)

    def _across(self, step: int) -> tuple[Loop, ...]:
        """Return a unit's loops over the result."""
        return tuple(
            Loop(each.trips, step, self.last) if each.dim is None else each
            for each in self.loops
            if each.dim != self.last
        )

    def whole_rows(self, cols: int) -> Layout:
        """Return the layout of a result of ``cols`` columns, all of which are in one tile."""
        loops = (each for each in self.loops if each.dim not in {None, self.last})
        return self._given(tuple(loops), cols, cols)

    def _given(self, loops: tuple[Loop, ...], size: int, cols: int) -> Layout:
        return _layout((*self.left.shape[:-1], size), (*self.left.tile[:-1], cols), loops)


def _trimmed(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Leave out the innermost loops that are along no dimension."""
    kept = len(loops)
    while kept and loops[kept - 1].dim is None:
        kept -= 1
    return loops[:kept]


def _layout(shape: tuple[int, ...], tile: tuple[int, ...], loops: tuple[Loop, ...]) -> Layout:
    return Layout(
        shape,
        tile,
        tuple(each.trips for each in loops),
        tuple(max(1, each.step) for each in loops),
        tuple(each.dim for each in loops),
    )

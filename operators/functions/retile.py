"""Functions that put tiles together in an Accum, or cut them into parts in a FlatMap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, Layout, ShapeError, Tile, TileType
from fabric.extend import (
    Described,
    Element,
    Empty,
    Loop,
    Wiring,
    ceil_div,
    in_parts,
    is_ragged,
    product,
)
from operators.functions.base import Reduction, State, zeros


@dataclass(frozen=True)
class _Retile(Reduction):
    """Concatenate the tiles of a group along ``axis``; no cycles.

    The result is in a memory unit if the first tile is. Valid rows or columns add up.
    """

    axis: ClassVar[int]
    operands: ClassVar = 1
    fixed_cycles: ClassVar = 0
    keeps_placement: ClassVar = True

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TileType:
        sizes = [inputs[0].rows, inputs[0].cols]
        sizes[self.axis] = group * sizes[self.axis]
        rows, cols = sizes
        return TileType(rows, cols, inputs[0].dtype)

    @override
    def start(self, result: TileType, functional: bool) -> State:
        return []

    @override
    def start_bytes(self, result: TileType) -> int:
        return 0

    @override
    def growth_bytes(self, state: State, *inputs: Tile) -> int:
        return inputs[0].size_bytes

    @override
    def update(self, state: State, *inputs: Tile) -> State:
        state.append(inputs[0])
        return state

    @override
    def finish(self, state: State, result: TileType, functional: bool) -> Tile:
        if not state:
            return zeros(result, functional)
        first, *others = state
        sizes, valid = [first.rows, first.cols], [first.valid_rows, first.valid_cols]
        for tile in others:
            sizes[self.axis] += (tile.rows, tile.cols)[self.axis]
            valid[self.axis] += (tile.valid_rows, tile.valid_cols)[self.axis]
        data = None
        if functional:
            data = np.concatenate([tile.data for tile in state], axis=self.axis)
            data.flags.writeable = False  # tiles are packed to be read repeatedly
        rows, cols = sizes
        packed = Tile(rows, cols, result.dtype, data, in_memory=first.in_memory)
        packed.valid_rows, packed.valid_cols = valid
        return packed


@dataclass(frozen=True)
class RetileRow(_Retile):
    """Put the tiles of a group below each other.

    Shapes:
        R x C tiles in groups of G: (G * R) x C; R and G may be decided by data.

    Example:
        >>> with Program("example") as program:
        ...     rows = LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))()
        ...     packed = Accum(RetileRow(), rank=2)(rows)
        ...     LinearOffChipStore("y")(packed)
        >>> print(rows.type)
        [1, 4, 1] of 1x64 bfloat16
        >>> print(packed.type)
        [1] of 4x64 bfloat16
        >>> print(simulate(program).cycles)
        113
    """

    axis: ClassVar = 0

    @override
    def layout(
        self, layout: Layout, outer: tuple[Loop, ...], inner: tuple[Loop, ...]
    ) -> Layout | str:
        last = len(layout.shape) - 1
        tile = list(layout.tile)
        for trips, step, dim in reversed(layout.nested(inner).canonical().loops):
            if dim is None or dim == last or step != tile[dim] or math.prod(tile[:dim]) > 1:
                return "it puts tiles below each other that are not neighbours in the tensor"
            tile[dim] *= trips
        return Layout.of_loops(layout.shape, tile, layout.start, outer)


@dataclass(frozen=True)
class RetileCol(_Retile):
    """Put the tiles of a group beside each other.

    Shapes:
        R x C tiles in groups of G: R x (G * C); C and G may be decided by data.

    Example:
        >>> with Program("example") as program:
        ...     parts = LinearOffChipLoad(np.ones((4, 256)), tile=(4, 64))()
        ...     row = Accum(RetileCol())(parts)
        ...     LinearOffChipStore("y")(row)
        >>> print(parts.type)
        [1, 1, 4] of 4x64 bfloat16
        >>> print(row.type)
        [1, 1] of 4x256 bfloat16
        >>> print(simulate(program).cycles)
        167
    """

    axis: ClassVar = 1

    @override
    def layout(
        self, layout: Layout, outer: tuple[Loop, ...], inner: tuple[Loop, ...]
    ) -> Layout | str:
        last = len(layout.shape) - 1
        tile = list(layout.tile)
        for trips, step, dim in reversed(layout.nested(inner).canonical().loops):
            if dim != last or step != tile[last]:
                return "it puts tiles beside each other that are not neighbours in the tensor"
            tile[last] *= trips
        return Layout.of_loops(layout.shape, tile, layout.start, outer)


@dataclass(frozen=True)
class Split(Described):
    """A function from one tile to a rank-``rank`` stream of tiles; no cycles.

    A FlatMap concatenates the streams of all elements.

    Attributes:
        rank: the rank of the streams.
        effects: it has effects outside of the run, such as a written file; see ``Operator.run``.
    """

    family: ClassVar[str] = "Functions of FlatMap"

    duties: ClassVar[tuple[str, ...]] = ("infer", "apply")

    rank: ClassVar[int] = 0
    effects: ClassVar[bool] = False

    @property
    def leaves_parts(self) -> bool:
        """Whether each tile with rows and columns gives parts."""
        return False

    def infer(self, wiring: Wiring, count: Dim, tile: TileType) -> tuple[tuple[Dim, ...], TileType]:
        """Return the rank + 1 dimensions of the parts of ``count`` tiles, and the type of a part.

        Raises:
            ShapeError: the tile cannot be split into such parts.
        """
        raise NotImplementedError

    def apply(self, tile: Tile) -> list[Element]:
        """Return the parts in order, with their stops; the last part closes ``rank`` dimensions."""
        raise NotImplementedError

    def layout(self, layout: Layout) -> Layout | str:  # noqa: ARG002 - a default
        """Return the layout of the parts of tiles of ``layout``, or a reason for its absence."""
        return f"{type(self).__name__} does not say which parts it makes"


@dataclass(frozen=True)
class _SplitLines(Split):
    valid_only: bool = False
    """Drop padding. The number of parts then depends on the data."""

    @property
    @override
    def leaves_parts(self) -> bool:
        return not self.valid_only

    def lines(self, wiring: Wiring, count: Dim, lines: Dim) -> tuple[Dim, ...]:
        """Return the number of lines in ``count`` tiles, each of ``lines`` lines."""
        if self.valid_only:
            return (wiring.symbol(f"D_{wiring.node_name}"),)
        return (wiring.absorb(product((count, lines))),)


@dataclass(frozen=True)
class SplitRows(_SplitLines):
    """Split a tile into its rows.

    Shapes:
        R x C tiles: R tiles of 1 x C each; with ``valid_only`` one per valid row.

    Attributes:
        valid_only: drop rows that are padding.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = FlatMap(SplitRows())(LinearOffChipLoad(x, tile=(2, 4))())
        ...     LinearOffChipStore("y")(rows)
        >>> program.expect(y=lambda: x.reshape(2, 8))
        >>> print(rows.type)
        [1, 2, 2] of 1x4 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    @override
    def infer(self, wiring: Wiring, count: Dim, tile: TileType) -> tuple[tuple[Dim, ...], TileType]:
        return self.lines(wiring, count, tile.rows), TileType(1, tile.cols, tile.dtype)

    @override
    def layout(self, layout: Layout) -> Layout | str:
        return _parts(layout, 1, layout.cols)

    @override
    def apply(self, tile: Tile) -> list[Element]:
        rows = tile.valid_rows if self.valid_only else tile.rows
        return [(_row(tile, tile.data, row), 0) for row in range(rows)]


@dataclass(frozen=True)
class SplitCols(_SplitLines):
    """Split a tile into its columns, each as a row.

    Shapes:
        R x C tiles: C tiles of 1 x R each; with ``valid_only`` one per valid column.

    Attributes:
        valid_only: drop columns that are padding.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     columns = FlatMap(SplitCols())(LinearOffChipLoad(x, tile=(4, 4))())
        ...     LinearOffChipStore("y")(columns)
        >>> program.expect(y=lambda: x.T.reshape(1, 16))
        >>> print(columns.type)
        [1, 1, 4] of 1x4 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    @override
    def infer(self, wiring: Wiring, count: Dim, tile: TileType) -> tuple[tuple[Dim, ...], TileType]:
        return self.lines(wiring, count, tile.cols), TileType(1, tile.rows, tile.dtype)

    @override
    def apply(self, tile: Tile) -> list[Element]:
        turned = Tile(
            tile.cols,
            tile.rows,
            tile.dtype,
            in_memory=tile.in_memory,
            valid_rows=tile.valid_cols,
            valid_cols=tile.valid_rows,
        )
        cols = tile.valid_cols if self.valid_only else tile.cols
        data = None if tile.data is None else tile.data.T
        return [(_row(turned, data, col), 0) for col in range(cols)]


@dataclass(frozen=True)
class SplitTiles(Split):
    """Cut a tile into a grid of smaller tiles.

    Shapes:
        R x C tiles: [R / rows, C / cols] of rows x cols each; R may be decided by data.

    Attributes:
        rows: rows of a part, a divisor of the rows of the tile.
        cols: columns of a part, a divisor of the columns of the tile.

    Example:
        >>> with Program("example") as program:
        ...     large = LinearOffChipLoad(np.ones((8, 128)), tile=(8, 128))()
        ...     small = FlatMap(SplitTiles(rows=4, cols=64))(large)
        ...     LinearOffChipStore("y")(small)
        >>> print(large.type)
        [1, 1, 1] of 8x128 bfloat16
        >>> print(small.type)
        [1, 1, 2, 2] of 4x64 bfloat16
        >>> print(simulate(program).cycles)
        159
    """

    rank: ClassVar[int] = 1
    leaves_parts: ClassVar = True

    rows: int
    cols: int

    @override
    def infer(self, wiring: Wiring, count: Dim, tile: TileType) -> tuple[tuple[Dim, ...], TileType]:
        sizes = ((tile.rows, self.rows), (tile.cols, self.cols))
        if min(self.rows, self.cols) < 1 or any(
            isinstance(size, int) and size % part for size, part in sizes
        ):
            raise ShapeError(
                f"SplitTiles cuts {tile} into {self.rows}x{self.cols}: "
                "expected divisors of its rows and columns"
            )
        down, across = (ceil_div(size, part) for size, part in sizes)
        if is_ragged(across):
            across = wiring.symbol(f"D_{wiring.node_name}", ragged=True)
        tiles = wiring.absorb(product((count, down)))
        return (tiles, across), TileType(self.rows, self.cols, tile.dtype)

    @override
    def layout(self, layout: Layout) -> Layout | str:
        return _parts(layout, self.rows, self.cols)

    @override
    def apply(self, tile: Tile) -> list[Element]:
        rows, cols = self.rows, self.cols
        if tile.rows % rows or tile.cols % cols:
            raise ValueError(
                f"{tile} is cut into {rows}x{cols}: expected divisors of its rows and columns"
            )
        parts: list[Element] = []
        for top in range(0, tile.rows, rows):
            if not tile.cols:
                parts.append((Empty(0), 1))
            for left in range(0, tile.cols, cols):
                data = (
                    None if tile.data is None else tile.data[top : top + rows, left : left + cols]
                )
                part = Tile(
                    rows,
                    cols,
                    tile.dtype,
                    data,
                    in_memory=tile.in_memory,
                    valid_rows=min(max(tile.valid_rows - top, 0), rows),
                    valid_cols=min(max(tile.valid_cols - left, 0), cols),
                )
                parts.append((part, int(left + cols == tile.cols)))
        return parts


def _parts(layout: Layout, rows: int, cols: int) -> Layout | str:
    """Return the layout of parts of rows x cols, which hold neighbouring rows of a tile."""
    part = [cols]
    for size in reversed(layout.tile[:-1]):
        part.insert(0, math.gcd(size, rows))
        if part[0] not in (rows, size):
            return "the rows of its parts do not form a box of the tensor"
        rows //= part[0]
    return in_parts(layout, tuple(part)) if layout.tile else "its tensor is one element"


def _row(tile: Tile, data: np.ndarray | None, row: int) -> Tile:
    return Tile(
        1,
        tile.cols,
        tile.dtype,
        None if data is None else data[row : row + 1],
        in_memory=tile.in_memory,
        valid_rows=int(row < tile.valid_rows),
        valid_cols=tile.valid_cols,
    )

"""Functions and steps over whole rows: sums, maxima, softmax, norms, and valid rows.

Numbers are summed in 32 bits or more and rounded once, at the end, as PyTorch does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType
from fabric.extend import kept_as, limits, same
from operators.functions.arithmetic import Array, largest, narrow, roomy, total, wide
from operators.functions.base import Function, PerElement
from operators.functions.steps import Shape, Step
from operators.tiles.integers import INTEGER, count_in, integer, is_integer

Reducing: TypeAlias = Literal["amax", "amin", "any", "all", "mean", "prod", "sum"]


@dataclass(frozen=True)
class _Reducing(Step):
    """A reduction of each row, or of some dimensions of a grid, to one number.

    Attributes:
        grid: the sizes of the dimensions in a tile; the last one is along columns. None for rows.
        axes: the dimensions of the grid that are reduced to one number.
    """

    grid: tuple[int, ...] | None = None
    axes: tuple[int, ...] = ()

    @override
    def shape(self, *shapes: Shape) -> Shape:
        if self.grid is None:
            return shapes[0][0], 1
        left = [1 if axis in self.axes else size for axis, size in enumerate(self.grid)]
        return math.prod(left[:-1]), left[-1]

    def gathered(self, x: Array) -> Array:
        """Return a row of numbers for each number of the result."""
        if self.grid is None:
            return x
        kept = [axis for axis in range(len(self.grid)) if axis not in self.axes]
        size = math.prod(self.grid[axis] for axis in self.axes)
        return x.reshape(self.grid).transpose(*kept, *self.axes).reshape(-1, size)

    def counts(self, shapes: tuple[Shape, ...]) -> tuple[Dim, Dim]:
        """Return the number of results, and how many numbers are reduced to each result."""
        ((rows, cols),) = shapes
        if self.grid is None:
            return rows, cols
        of = math.prod(self.grid[axis] for axis in self.axes)
        return math.prod(self.grid) // of, of


@dataclass(frozen=True)
class Reduced(_Reducing):
    """Numpy's reduction ``name``: one operation per number; a mean takes one more per result."""

    name: Reducing = "sum"

    @override
    def flops(self, *shapes: Shape) -> Dim:
        results, of = self.counts(shapes)
        return results * (of + (self.name == "mean"))

    @property
    @override
    def called(self) -> str:
        return self.name

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        numbers = self.gathered(x)
        if self.name in {"prod", "sum"}:
            bits, count = largest(numbers).bit_length(), numbers.shape[1]
            bits = bits * count if self.name == "prod" else bits + count.bit_length()
            (numbers,) = roomy(1 << min(bits, 64), numbers)
        result: Array = getattr(np, self.name)(numbers, axis=1)
        return result.reshape(_sizes(self, x))


@dataclass(frozen=True)
class Variance(_Reducing):
    """A variance or its root: four operations per number, and two or three per result.

    The sum of squares is divided by the number of summands minus ``correction``.
    """

    correction: float = 1.0
    root: bool = False

    @override
    def flops(self, *shapes: Shape) -> Dim:
        results, of = self.counts(shapes)
        return results * (4 * of + 2 + self.root)

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        numbers = self.gathered(x).astype(np.float64)  # in 64 bits, as PyTorch does
        centred = numbers - numbers.mean(axis=1, keepdims=True)
        divisor = max(0.0, numbers.shape[1] - self.correction)
        result: Array = (centred * centred).sum(axis=1) / divisor
        return (np.sqrt(result) if self.root else result).reshape(_sizes(self, x))


def _sizes(step: Step, x: Array) -> tuple[int, ...]:
    rows, cols = step.shape(x.shape)
    assert isinstance(rows, int)
    assert isinstance(cols, int)
    return rows, cols


@dataclass(frozen=True)
class Softmax(Step):
    """The softmax of each row: eight operations per number; a logarithm takes four more per row."""

    logarithm: bool = False

    @override
    def flops(self, *shapes: Shape) -> Dim:
        ((rows, cols),) = shapes
        return rows * (8 * cols + 4 * self.logarithm)

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        shifted = x - x.max(axis=-1, keepdims=True)
        powers = np.exp(shifted)
        total = powers.sum(axis=-1, keepdims=True)
        return np.asanyarray(shifted - np.log(total) if self.logarithm else powers / total)


@dataclass(frozen=True)
class RMSNorm(Step):
    """Each row divided by the root of the mean of its squares plus ``eps``, times weights.

    A row takes four operations, and each number of it three, or four if there are weights.
    """

    eps: float

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        rows, cols = shapes[0]
        return rows * ((2 + len(shapes)) * cols + 4)

    @override
    def compute(self, *values: Array) -> Array:
        x, *weights = values
        mean = (x * x).mean(axis=-1, keepdims=True)
        result: Array = x * (1 / np.sqrt(mean + self.eps))
        return result * weights[0] if weights else result


@dataclass(frozen=True)
class LayerNorm(Step):
    """Each row minus its mean, divided by its deviation, times weights, plus a bias.

    A row takes five operations, and each number of it five, plus one for each further operand.
    ``eps`` is added to the variance. If ``has_weight``, the second operand is the weight.
    """

    eps: float
    has_weight: bool

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return shapes[0]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        rows, cols = shapes[0]
        return rows * ((4 + len(shapes)) * cols + 5)

    @override
    def compute(self, *values: Array) -> Array:
        x, *others = values
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        result: Array = centred * (1 / np.sqrt(variance + self.eps))
        if self.has_weight:
            weight, *others = others
            result = result * weight
        for bias in others:
            result = result + bias
        return result


@dataclass(frozen=True)
class _RowWise(PerElement):
    operands: ClassVar = 1

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        return TileType(x.rows, 1, x.dtype)

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None
        if x.data is not None:
            valid = x.data[:, : x.valid_cols]
            result = self.compute(wide(valid), x)
            data = narrow(result, x.dtype, type(self).__name__, lambda row, _: (valid[row],))
        return Tile(x.rows, 1, x.dtype, data, valid_rows=x.valid_rows)

    def compute(self, data: Array, tile: Tile) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class RowSum(_RowWise):
    """The sum of each row's valid columns, one operation per element.

    Shapes:
        x: R x C; result: R x 1.

    Example:
        >>> x = np.arange(-8.0, 8.0).reshape(4, 4) / 4
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(2, 4))()
        ...     LinearOffChipStore("y")(Map(RowSum())(tiles))
        >>> program.expect(y=lambda: x.sum(axis=1, keepdims=True))
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, data: Array, tile: Tile) -> Array:
        return total(data)


@dataclass(frozen=True)
class RowMaximum(_RowWise):
    """The largest of each row's valid columns, one operation per element.

    Shapes:
        x: R x C; result: R x 1.

    Example:
        >>> x = np.arange(-8.0, 8.0).reshape(4, 4) / 4
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(2, 4))()
        ...     LinearOffChipStore("y")(Map(RowMaximum())(tiles))
        >>> program.expect(y=lambda: x.max(axis=1, keepdims=True))
        >>> print(simulate(program).verified)
        True
    """

    @override
    def compute(self, data: Array, tile: Tile) -> Array:
        ends = limits(tile.dtype)
        lowest = -np.inf if ends is None else ends[0]
        return np.asanyarray(data.max(axis=1, keepdims=True, initial=lowest))


@dataclass(frozen=True)
class _Bookkeeping(Function):
    operands: ClassVar = 2
    mixed_types: ClassVar[bool] = True
    fixed_cycles: ClassVar = 1


@dataclass(frozen=True)
class SetOffset(_Bookkeeping):
    """Set the number of valid rows of a tile to an integer; one cycle.

    Shapes:
        tile: R x C; rows: 1 x 1, an integer; result: R x C.

    Example:
        >>> x = np.arange(8.0).reshape(4, 2)
        >>> with Program("example", mode="functional") as program:
        ...     tile = Flatten(0, 1)(LinearOffChipLoad(x, tile=(4, 2))())
        ...     three = Map(SetOffset())(tile, Metadata(np.array([3]))())
        ...     LinearOffChipStore("y")(FlatMap(SplitRows(valid_only=True))(three))
        >>> program.expect(y=lambda: x[:3].reshape(1, 6))
        >>> print(simulate(program).verified)
        True
    """

    @override
    def infer(self, *inputs: TileType) -> TileType:
        tile, offset = inputs
        if not is_integer(offset):
            raise ShapeError(
                f"SetOffset is given {tile} and {offset}: expected a 1x1 tile of an integer"
            )
        return tile

    @override
    def apply(self, *inputs: Tile) -> Tile:
        tile, offset = inputs
        valid_rows = count_in(offset, "SetOffset's offset")
        if valid_rows > tile.rows:
            raise ValueError(
                f"SetOffset of {valid_rows} on a tile of {tile.rows}x{tile.cols}: expected at "
                "most the tile's rows"
            )
        return tile.with_data(tile.data, valid_rows=valid_rows)


@dataclass(frozen=True)
class PadRows(_Bookkeeping):
    """Add rows of zeros, which are not valid, below a tile until it has ``rows`` rows; one cycle.

    Shapes:
        tile: R x C; result: rows x C, with the valid rows of the tile.

    Attributes:
        rows: number of rows of the result, at least the number of rows of the tile.

    Example:
        >>> x = np.arange(8.0).reshape(4, 2)
        >>> with Program("example", mode="functional") as program:
        ...     large = Map(PadRows(6))(LinearOffChipLoad(x, tile=(4, 2))())
        ...     LinearOffChipStore("y")(large)
        >>> program.expect(y=lambda: np.concatenate([x, np.zeros((2, 2))]))
        >>> print(large.type)
        [1, 1, 1] of 6x2 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    rows: int

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (tile,), most = inputs, self.rows
        if isinstance(tile.rows, int) and tile.rows > most:
            raise ShapeError(f"PadRows({most}) is given {tile}: expected at most {most} rows")
        return TileType(self.rows, tile.cols, tile.dtype)

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (tile,), most = inputs, self.rows
        if tile.rows > most:
            raise ValueError(f"PadRows({most}) is given {tile}: expected at most {most} rows")
        data = None
        if tile.data is not None:
            below = np.zeros((self.rows - tile.rows, tile.cols), kept_as(tile.dtype))
            data = np.concatenate([tile.data, below])
        return Tile(
            self.rows,
            tile.cols,
            tile.dtype,
            data,
            valid_rows=tile.valid_rows,
            valid_cols=tile.valid_cols,
        )


@dataclass(frozen=True)
class RowAppend(_Bookkeeping):
    """Write the rows of the second tile below the valid rows of the first tile; one cycle.

    Shapes:
        tile: R x C; more: S x C; result: R x C.

    Example:
        >>> x, new = np.arange(8.0).reshape(4, 2), np.full((1, 2), 9.0)
        >>> with Program("example", mode="functional") as program:
        ...     tile = Flatten(0, 1)(LinearOffChipLoad(x, tile=(4, 2))())
        ...     three = Map(SetOffset())(tile, Metadata(np.array([3]))())
        ...     row = Flatten(0, 1)(LinearOffChipLoad(new, tile=(1, 2))())
        ...     LinearOffChipStore("y")(Map(RowAppend())(three, row))
        >>> program.expect(y=lambda: np.concatenate([x[:3], new]))
        >>> print(simulate(program).verified)
        True
    """

    @override
    def infer(self, *inputs: TileType) -> TileType:
        tile, rows = inputs
        if tile.dtype != rows.dtype or same(tile.cols, rows.cols) is False:
            raise ShapeError(
                f"RowAppend appends {rows} to {tile}: expected equal columns and one element type"
            )
        return tile

    @override
    def apply(self, *inputs: Tile) -> Tile:
        tile, rows = inputs
        first = tile.valid_rows
        valid_rows = first + rows.rows
        if valid_rows > tile.rows:
            raise ValueError(
                f"RowAppend of {rows.rows}x{rows.cols} behind row {first} of a tile of "
                f"{tile.rows}x{tile.cols}: expected at most {tile.rows} rows in all"
            )
        data = None
        if tile.data is not None and rows.data is not None:
            data = tile.data.copy()
            data[first:valid_rows] = rows.data
        return tile.with_data(data, valid_rows=valid_rows)


@dataclass(frozen=True)
class CacheWriteAddress(_Bookkeeping):
    """The address of the last tile of a request's cache; one cycle.

    Shapes:
        request (its number) and tiles (of its cache): 1 x 1, integers; result: 1 x 1, an integer.

    Attributes:
        stride: number of tiles from the start of a request's cache to the start of the next.

    Example:
        >>> with Program("example") as program:
        ...     requests, tiles = Metadata(np.array([0, 1]))(), Metadata(np.array([3, 1]))()
        ...     last = Map(CacheWriteAddress(stride=4))(requests, tiles)
        ...     Consumer()(last)
        >>> print(last.type)
        [1, 2] of 1x1 uint64
        >>> print(simulate(program).cycles)
        5
    """

    stride: int

    @override
    def infer(self, *inputs: TileType) -> TileType:
        request, length = inputs
        if not is_integer(request) or not is_integer(length):
            raise ShapeError(
                f"CacheWriteAddress is given {request} and {length}: "
                "expected two 1x1 tiles of integers"
            )
        if self.stride < 0:
            raise ShapeError(
                f"CacheWriteAddress has a stride of {self.stride} tiles: expected at least 0"
            )
        return INTEGER

    @override
    def apply(self, *inputs: Tile) -> Tile:
        request, length = count_in(inputs[0], "a request"), count_in(inputs[1], "a length")
        if not length:
            raise ValueError(f"request {request} has no tiles: expected at least 1 to write to")
        return integer(request * self.stride + length - 1)

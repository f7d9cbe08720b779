"""Matrix products of tiles, in a Map or summed over a group, and convolutions of an image.

Padding rows at the end of the first tile are not multiplied if they are zeros. Products and sums of
products lack these rows until ``padded`` adds them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType
from fabric.extend import ValueType, block_format, holds_integers, kept_as, limits, row_bytes, same
from operators.functions.arithmetic import (
    Array,
    is_whole,
    largest,
    narrow,
    plus,
    roomy,
    times,
    wide,
    wide_type,
)
from operators.functions.base import Function, Operand, Reduction, Shaped, State, tile_types, zeros
from operators.functions.steps import FLOAT32, Shape, Step

_SYSTOLIC_ROWS = 16
"""Rows of the input tile that the compute unit of the paper keeps on chip."""


@dataclass(frozen=True)
class Matmul(Function):
    """``a @ b``, or ``a @ b.T`` if ``transposed``.

    Shapes:
        a: M x K; b: K x N (N x K if transposed); result: M x N with the valid rows and the
        element type of a. The element type of b is the same, or an integer type of fewer bits, or
        a block-scaled type. If both are block-scaled, the result is float32. Blocks lie along K, so
        a block-scaled b has to be transposed.

    Timing:
        2 * M * K * N operations. Padding counts as data. Applying the scales of block-scaled types
        adds exponents, which does not count as operations.

    Attributes:
        transposed: the second operand is stored transposed, N x K. Its valid rows are then
            the valid columns of the result.
        unrounded: the result is not rounded to the element type, for a function that uses it
            next (``ScaledAdd``). It is float32 if the operands have 16 bits.

    Example:
        >>> q, k = np.ones((4, 8)), np.ones((2, 8))
        >>> with Program("example", mode="functional") as program:
        ...     left = LinearOffChipLoad(q, tile=(4, 8))()
        ...     right = LinearOffChipLoad(k, tile=(2, 8))()
        ...     scores = Map(Matmul(transposed=True))(left, right)
        ...     LinearOffChipStore("y")(scores)
        >>> program.expect(y=lambda: q @ k.T)
        >>> print(scores.type)
        [1, 1, 1] of 4x2 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2

    transposed: bool = False
    unrounded: bool = False

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        a, b = tile_types(name, operands, 2, mixed_types=True, block_scaled=True)
        if block_format(b.dtype) is not None:
            if not self.transposed:
                raise ShapeError(
                    f"{name} is given {a} and {b}, with blocks along the rows of the second: "
                    "expected transposed=True, and the second operand as N x K"
                )
            if block_format(a.dtype) is None and limits(a.dtype) is not None:
                raise ShapeError(f"{name} is given {a} and {b}: expected floating-point numbers")
            return a, b
        if a.dtype == b.dtype:
            return a, b
        # `row_bytes(8, dtype)` is the bits of a number: eight numbers of n bits take n bytes.
        fewer = holds_integers(b.dtype) and row_bytes(8, b.dtype) < row_bytes(8, a.dtype)
        return tile_types(name, operands, 2, mixed_types=fewer)

    @override
    def infer(self, *inputs: TileType) -> TileType:
        a, b = inputs
        inner, cols = (b.cols, b.rows) if self.transposed else (b.rows, b.cols)
        if same(a.cols, inner) is False:
            form = "transposed " if self.transposed else ""
            raise ShapeError(f"Matmul multiplies {a} by {form}{b}: expected equal inner dimensions")
        return TileType(a.rows, cols, self._result(a.dtype))

    def _result(self, dtype: np.dtype) -> np.dtype:
        wide = self.unrounded or block_format(dtype) is not None
        return wide_type(dtype) if wide else dtype

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        a, b = inputs
        return 2 * a.rows * a.cols * (b.rows if self.transposed else b.cols)

    @override
    def operand_bytes(self, *inputs: TileType) -> Dim:
        a, b = inputs
        return _SYSTOLIC_ROWS * a.cols + b.size_bytes

    @override
    def apply(self, *inputs: Tile) -> Tile:
        a, b = inputs
        data, dtype = None, self._result(a.dtype)
        if a.data is not None and b.data is not None:
            left, right = a.data, b.data.T if self.transposed else b.data

            def of(row: int, col: int) -> tuple[Array, Array]:
                return left[row], right[:, col]

            result = product(a, b, transposed=self.transposed)
            data = padded(narrow(result, dtype, "Matmul", of), a.rows)
        cols, valid_cols = (b.rows, b.valid_rows) if self.transposed else (b.cols, b.valid_cols)
        return Tile(a.rows, cols, dtype, data, valid_rows=a.valid_rows, valid_cols=valid_cols)


@dataclass(frozen=True)
class MatmulSum(Reduction):
    """The sum of ``a @ b`` over a group, or of ``a @ b.T`` if ``transposed``.

    The sum is float32 until it is emitted, float64 for float64 tiles, and exact for integers.

    Shapes:
        a: M x K; b: K x N (N x K if transposed); result: M x N. Element types are as in Matmul. If
        data decide M, the accumulator starts empty and takes the size of the first product.

    Timing:
        2 * M * K * N operations; the addition to the sum counts none.

    Attributes:
        transposed: the second operand is stored transposed, N x K.
        unrounded: the sum is emitted unrounded, in float32 if the operands have 16 bits.

    Example:
        >>> a, b = np.ones((4, 16)), np.ones((16, 8))
        >>> with Program("example", mode="functional") as program:
        ...     left = Flatten(0, 1)(LinearOffChipLoad(a, tile=(4, 8))())
        ...     right = Flatten(0, 1)(LinearOffChipLoad(b, tile=(8, 8))())
        ...     LinearOffChipStore("y")(Promote(0)(Accum(MatmulSum())(left, right)))
        >>> program.expect(y=lambda: a @ b)
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2

    transposed: bool = False
    unrounded: bool = False

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        return self._one.check(name, operands)

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TileType:
        return self._one.infer(*inputs)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return self._one.flops(*inputs)

    @override
    def operand_bytes(self, *inputs: TileType) -> Dim:
        return self._one.operand_bytes(*inputs)

    @property
    def _one(self) -> Matmul:
        return Matmul(self.transposed, self.unrounded)

    @override
    def growth_bytes(self, state: State, *inputs: Tile) -> int:
        a, b = inputs
        dtype = self._one._result(a.dtype)
        return a.rows * row_bytes(self._cols(b), dtype) if state is None else 0

    @override
    def update(self, state: State, *inputs: Tile) -> State:
        a, b = inputs
        cols = self._cols(b)
        if a.data is None or b.data is None:
            return a.rows, cols, a.valid_rows, None
        total = product(a, b, transposed=self.transposed)
        if state is not None:
            if state[:2] != (a.rows, cols):
                raise ValueError(
                    f"a product of {a.rows}x{cols} is added to a sum of {state[0]}x{state[1]}: "
                    "expected equal sizes"
                )
            total = summed(state[3], total)
        return a.rows, cols, a.valid_rows, total

    def _cols(self, b: Tile) -> int:
        return b.rows if self.transposed else b.cols

    @override
    def finish(self, state: State, result: TileType, functional: bool) -> Tile:
        if state is None:
            return zeros(result, functional)
        rows, cols, valid_rows, total = state
        data = None if total is None else padded(narrow(total, result.dtype, "MatmulSum"), rows)
        return Tile(rows, cols, result.dtype, data, valid_rows=valid_rows)


@dataclass(frozen=True)
class ScaledAdd(Function):
    """``alpha * x + beta * y``, rounded once, to the element type of ``y``.

    If ``y`` holds integers, ``x`` and the factors are whole numbers, too.

    Shapes:
        x: R x C; y: R x C, or 1 row or 1 column that is repeated; result: R x C.

    Timing:
        One operation per element, and one more per element for each factor that is not 1.

    Attributes:
        alpha: factor of ``x``.
        beta: factor of ``y``.

    Example:
        >>> x, w, bias = np.ones((4, 8)), np.ones((8, 8)), np.arange(8.0).reshape(1, 8)
        >>> with Program("example", mode="functional") as program:
        ...     left, right = (LinearOffChipLoad(each, tile=each.shape)() for each in (x, w))
        ...     products = Map(Matmul(unrounded=True))(left, right)
        ...     added = LinearOffChipLoad(bias, tile=(1, 8))()
        ...     LinearOffChipStore("y")(Map(ScaledAdd())(products, added))
        >>> program.expect(y=lambda: x @ w + bias)
        >>> print(products.type)
        [1, 1, 1] of 4x8 float32
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2
    mixed_types: ClassVar[bool] = True

    alpha: float = 1.0
    beta: float = 1.0

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        x, y = super().check(name, operands)
        whole = float(self.alpha).is_integer() and float(self.beta).is_integer()
        if limits(y.dtype) is not None and (limits(x.dtype) is None or not whole):
            raise ShapeError(
                f"{name} gives {self.alpha:g} * {x} + {self.beta:g} * {y}: expected whole numbers "
                "as x and as factors, since y has whole numbers"
            )
        return x, y

    @override
    def infer(self, *inputs: TileType) -> TileType:
        x, y = inputs
        if any(
            same(mine, one) is False and one != 1
            for mine, one in ((x.rows, y.rows), (x.cols, y.cols))
        ):
            raise ShapeError(f"ScaledAdd adds {y} to {x}: expected equal sizes, or 1 in the addend")
        return TileType(x.rows, x.cols, y.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        x, _ = inputs
        return (1 + (self.alpha != 1) + (self.beta != 1)) * x.rows * x.cols

    @override
    def apply(self, *inputs: Tile) -> Tile:
        x, y = inputs
        data = None
        if x.data is not None and y.data is not None:
            whole = limits(y.dtype) is not None
            left, right = (
                _scaled(factor, wide(data), whole=whole)
                for factor, data in ((self.alpha, x.data), (self.beta, y.data))
            )
            data = narrow(plus(left, right), y.dtype, "ScaledAdd")
        return Tile(x.rows, x.cols, y.dtype, data, valid_rows=x.valid_rows, valid_cols=x.valid_cols)


def _scaled(factor: float, data: Array, *, whole: bool) -> Array:
    if factor == 1:
        return data
    return times(
        wide(np.asarray(int(factor))) if whole else np.asarray(factor, kept_as(FLOAT32)), data
    )


@dataclass(frozen=True)
class LeadingCols(Function):
    """The first ``cols`` columns of a tile; no operations.

    Shapes:
        x: R x C; result: R x cols.

    Attributes:
        cols: columns of the result, at most C.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     tiles = LinearOffChipLoad(x, tile=(4, 4))()
        ...     LinearOffChipStore("y")(Map(LeadingCols(3))(tiles))
        >>> program.expect(y=lambda: x[:, :3])
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    cols: int

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        if self.cols < 1 or (isinstance(x.cols, int) and self.cols > x.cols):
            raise ShapeError(
                f"LeadingCols({self.cols}) is given {x}: expected at least 1 column, and at most "
                "the columns of the tile"
            )
        return TileType(x.rows, self.cols, x.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return 0

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None if x.data is None else x.data[:, : self.cols]
        valid_cols = min(x.valid_cols, self.cols)
        return Tile(
            x.rows, self.cols, x.dtype, data, valid_rows=x.valid_rows, valid_cols=valid_cols
        )


_EXACT: Final = 2**53
"""float64 represents every integer up to this one."""


def product(a: Tile, b: Tile, *, transposed: bool = False) -> Array:
    """Return ``a @ b``, or ``a @ b.T`` if ``transposed``, as ``wide`` numbers.

    The array of ``a``, which is often read repeatedly, is cached with the tile (``Tile.kept``).
    """
    assert b.data is not None
    left = a.kept(_factor)
    right = b.data.T if transposed else b.data
    weights = b.dtype != a.dtype and left.dtype.kind == "f"
    exact = weights or left.dtype == np.float64
    if block_format(b.dtype) is not None:
        right = wide(right)
    right = right.astype(left.dtype, copy=False) if exact else wide(right)
    left, right = roomy(largest(left) * largest(right) * len(right), left, right)
    with np.errstate(all="ignore"):  # infinities and NaN are results like others
        result: Array = left @ right
    if left.dtype == np.float64 and limits(a.dtype) is not None:
        result = result.astype(np.int64)
    seen = np.asarray(result if len(left) else right)
    if len(left) < a.rows and not (is_whole(result) or np.isfinite(seen).all()):
        # An infinity or a NaN in ``b`` affects every row: a row of zeros turns into NaN.
        assert a.data is not None
        with np.errstate(all="ignore"):
            result = wide(a.data) @ right
    return result


def summed(total: Array, more: Array) -> Array:
    if len(total) == len(more):
        return plus(total, more)
    short, long = (total, more) if len(total) < len(more) else (more, total)
    return np.concatenate([plus(long[: len(short)], short), long[len(short) :]])


def padded(result: Array, rows: int) -> Array:
    """Return products with rows of zeros below, up to ``rows``."""
    if len(result) == rows:
        return result
    return np.concatenate([result, np.zeros((rows - len(result), result.shape[1]), result.dtype)])


def _factor(tile: Tile) -> Array:
    """Return the data for products, without the padding rows if they are zeros."""
    assert tile.data is not None
    valid = tile.valid_rows
    data = tile.data
    if 0 < valid < tile.rows and not wide(np.asarray(data[valid:])).any():
        data = data[:valid]
    bits = 8 * tile.dtype.itemsize
    if limits(tile.dtype) is not None and bits <= 16 and tile.cols << 2 * bits <= _EXACT:
        # numpy multiplies integers without BLAS, ten times as slowly.
        return data.astype(np.float64)
    factor = wide(data)
    if factor.dtype != data.dtype:
        factor.flags.writeable = False  # sums of errors are cached for read-only arrays
    return factor


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution; each attribute has a number for each dimension of space.

    Attributes:
        size: places of a window.
        stride: places from one window to the next.
        before: zeros in front; -n leaves out the first n places of the image.
        after: zeros behind; -n leaves out the last n places of the image.
        dilation: places of the image from one place of a window to the next.
        spread: places from one number of the image to the next; zeros fill the places between.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    spread: tuple[int, ...]

    def count(self, space: Sequence[int]) -> tuple[int, ...]:
        size, stride, before, after, dilation, spread = map(np.array, astuple(self))
        padded = before + spread * (np.array(space) - 1) + 1 + after
        counts = (padded - (dilation * (size - 1) + 1)) // stride + 1
        return tuple(counts.tolist())

    def of(self, array: Array) -> Array:
        """Return the windows of [*lead, *space]: [*lead, *windows, *places]."""
        rank = len(self.size)
        lead, space = array.shape[: array.ndim - rank], array.shape[array.ndim - rank :]
        if set(self.spread) != {1}:
            wide = [step * (size - 1) + 1 for size, step in zip(space, self.spread, strict=True)]
            spread = np.zeros((*lead, *wide), array.dtype).view(type(array))
            places = [slice(None, None, step) for step in self.spread]
            spread[(*(slice(None) for _ in lead), *places)] = array
            array = spread
        ends = list(zip(self.before, self.after, strict=True))
        kept = [slice(max(0, -first), min(0, last) or None) for first, last in ends]
        array = array[(*(slice(None) for _ in lead), *kept)]
        added = [(max(0, first), max(0, last)) for first, last in ends]
        padded = np.pad(array, [*([(0, 0)] * len(lead)), *added])
        reach = [step * (size - 1) + 1 for size, step in zip(self.size, self.dilation, strict=True)]
        dims = tuple(range(len(lead), len(lead) + rank))
        windows = np.lib.stride_tricks.sliding_window_view(padded, reach, dims)
        steps = [slice(None, None, step) for step in (*self.stride, *self.dilation)]
        return windows[(*(slice(None) for _ in lead), *steps)]


@dataclass(frozen=True)
class Convolved(Step):
    """Windows of an image times weights, with an optional bias, rounded once.

    Each result takes two operations for each number of its window, and one for a bias. In a
    transposed convolution, each product of a number of the image and a weight takes two operations.

    Shapes:
        image: groups * channels * leading dimensions of space x the last dimension; weights: groups
            * outputs x channels * places; bias: groups * outputs x 1; result: groups * outputs *
            leading dimensions of the windows x the last dimension. Channels and outputs are per
            group.

    Attributes:
        windows: the places where image and weights meet.
        image: groups, channels, and sizes of space.
        outputs: the number of outputs of a group.
    """

    windows: Windows
    image: tuple[int, ...]
    outputs: int

    @override
    def shape(self, *shapes: Shape) -> Shape:
        groups, _, *space = self.image
        count = self.windows.count(space)
        return groups * self.outputs * math.prod(count[:-1]), count[-1]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        groups, channels, *space = self.image
        count = math.prod(self.windows.count(space))
        met = count if set(self.windows.spread) == {1} else math.prod(space)
        products = 2 * groups * self.outputs * channels * math.prod(self.windows.size) * met
        return products + (len(self.reads) > 2) * groups * self.outputs * count

    @override
    def compute(self, *values: Array) -> Array:
        image, weights, *bias = values
        products = largest(image) * largest(weights) * weights.shape[1]
        image, weights, *bias = roomy(products + sum(map(largest, bias)), *values)
        groups = self.image[0]
        rank = len(self.windows.size)
        seen = self.windows.of(image.reshape(self.image))
        count = seen.shape[2 : 2 + rank]
        # Per group: (windows x numbers of a window) @ (numbers of a window x outputs).
        order = (0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank))
        rows = seen.transpose(order).reshape(groups, math.prod(count), -1)
        held = weights.reshape(groups, self.outputs, -1).transpose(0, 2, 1)
        result: Array = (rows @ held).transpose(0, 2, 1).reshape(groups * self.outputs, -1)
        if bias:
            result = result + bias[0]
        return result.reshape(-1, count[-1])

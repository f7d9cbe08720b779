"""Chain: several steps on the tiles of one Map, each rounded like a separate call.

A step computes an array from arrays of tiles' numbers. Steps on whole rows, along dimensions, on
images and of routers are in separate modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, TypeAlias

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, Tile, TileType, dtype_named
from fabric.extend import carried, kept_as, limits, same
from operators.functions.arithmetic import Array, is_whole, largest, narrow, roomy, wide
from operators.functions.base import Function, Shaped
from operators.functions.elementwise import NUMBERS


@dataclass(frozen=True)
class Chain(Function):
    """Steps on tiles, one after the other; the last step gives the result.

    Each step reads some of the ``count`` operands and of the earlier results. Its own result is
    rounded to the step's element type. Operands are R x C; any may have 1 row or 1 column.
    """

    mixed_types: ClassVar[bool] = True

    count: int
    steps: tuple[Step, ...]

    @override
    def infer(self, *inputs: TileType) -> TileType:
        if len(inputs) != self.count:
            raise ShapeError(f"Chain: number of tiles is {len(inputs)}: expected {self.count}")
        rows, cols = self._shapes(inputs)[-1]
        return TileType(rows, cols, self.steps[-1].dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        sizes = self._shapes(inputs)
        return sum(step.flops(*(sizes[index] for index in step.arrays)) for step in self.steps)

    @override
    def apply(self, *inputs: Tile) -> Tile:
        rows, cols = self._shapes(inputs)[-1]
        dtype = self.steps[-1].dtype
        data = self._computed(inputs)
        if data is not None:
            data = data.astype(kept_as(dtype))
        valid = max((tile.valid_rows for tile in inputs if tile.rows == rows), default=rows)
        return Tile(rows, cols, dtype, data, valid_rows=valid)

    def _shapes(self, inputs: tuple[Shaped, ...]) -> list[Shape]:
        return shapes([(tile.rows, tile.cols) for tile in inputs], self.steps)

    def _computed(self, inputs: tuple[Tile, ...]) -> Array | None:
        arrays: list[Array] = []
        for tile in inputs:
            if tile.data is None:
                return None
            arrays.append(wide(tile.data))
        for step in self.steps:
            arrays.append(step.apply(*(arrays[index] for index in step.arrays)))
        return arrays[-1]


def shapes(operands: Sequence[Shape], steps: Sequence[Step]) -> list[Shape]:
    """Return rows and columns of the operands and of every step's result."""
    results = list(operands)
    for step in steps:
        results.append(step.shape(*(results[index] for index in step.arrays)))
    return results


FLOAT32: Final = dtype_named("float32")

Shape: TypeAlias = tuple[Dim, Dim]
"""Rows and columns of an array."""


@dataclass(frozen=True)
class Number:
    value: int | float


Read: TypeAlias = int | Number
"""An operand of a step: the index of an array (operands first, then steps), or a number."""


@dataclass(frozen=True)
class Step:
    """One step of a chain; its result is rounded to ``dtype``."""

    reads: tuple[Read, ...]
    dtype: np.dtype

    @property
    def arrays(self) -> tuple[int, ...]:
        return tuple(read for read in self.reads if not isinstance(read, Number))

    def shape(self, *shapes: Shape) -> Shape:
        """Return the shape of the result; by default the shape to which the arrays broadcast.

        Raises:
            ShapeError: the arrays do not fit.
        """
        return broadcast(shapes)

    def flops(self, *shapes: Shape) -> Dim:  # noqa: ARG002 - a default
        return 0

    def apply(self, *arrays: Array) -> Array:
        """Return the result, rounded to ``dtype``; arrays and result have types from ``wide``."""
        remaining = iter(arrays)
        # As in PyTorch, an integer operand beside floating-point numbers is floating-point.
        whole = all(map(is_whole, arrays))
        values: list[Array] = [
            _number(read.value, whole=whole) if isinstance(read, Number) else next(remaining)
            for read in self.reads
        ]
        with np.errstate(all="ignore"):
            result = carried(self.compute(*values), values)
            return wide(narrow(result, self.dtype, self.called))

    @property
    def called(self) -> str:
        return type(self).__name__

    def compute(self, *values: Array) -> Array:
        """Return the result before it is rounded."""
        raise NotImplementedError


@dataclass(frozen=True)
class ComplexProduct(Step):
    """Products of complex numbers; each takes four products and two sums of real numbers.

    Real and imaginary parts alternate in a row.
    """

    @override
    def flops(self, *shapes: Shape) -> Dim:
        return 3 * _elements(self.shape(*shapes))

    @override
    def compute(self, *values: Array) -> Array:
        (a, b), (c, d) = ((value[:, 0::2], value[:, 1::2]) for value in values)
        return np.stack([a * c - b * d, a * d + b * c], axis=-1).reshape(len(a * c), -1)


@dataclass(frozen=True)
class Pointwise(Step):
    """One of the functions in ``NUMBERS``, applied to arrays that broadcast."""

    name: str

    @override
    def flops(self, *shapes: Shape) -> Dim:
        return NUMBERS[self.name].flops * _elements(self.shape(*shapes))

    @property
    @override
    def called(self) -> str:
        return self.name

    @override
    def compute(self, *values: Array) -> Array:
        function = NUMBERS[self.name]
        if limits(self.dtype) is not None and all(map(is_whole, values)):
            if function.bits is None:
                raise ValueError(f"{self.name} gives integers: expected floating-point numbers")
            bits = function.bits(*(largest(value).bit_length() for value in values))
            values = roomy(1 << min(bits, 64), *values)
        elif function.rounds_each:
            values = tuple(value.astype(kept_as(self.dtype), copy=False) for value in values)
        return np.asanyarray(function.function(*values))


@dataclass(frozen=True)
class Cut(Step):
    """Some columns of an array; no operations."""

    first: int
    count: int

    @override
    def shape(self, *shapes: Shape) -> Shape:
        ((rows, _),) = shapes
        return rows, self.count

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        return x[:, self.first : self.first + self.count]


@dataclass(frozen=True)
class Columns(Step):
    """The columns of an array at given places; no operations."""

    places: tuple[int, ...]

    @override
    def shape(self, *shapes: Shape) -> Shape:
        ((rows, _),) = shapes
        return rows, len(self.places)

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        return x[:, list(self.places)]


@dataclass(frozen=True)
class Joined(Step):
    """The columns of arrays side by side; no operations."""

    @override
    def shape(self, *shapes: Shape) -> Shape:
        rows, _ = broadcast([(rows, 1) for rows, _ in shapes])
        return rows, sum(cols for _, cols in shapes)

    @override
    def compute(self, *values: Array) -> Array:
        rows = max(len(value) for value in values)
        return np.concatenate(
            [np.broadcast_to(value, (rows, value.shape[1])) for value in values], axis=1
        )


@dataclass(frozen=True)
class Placed(Step):
    """The elements of an array in other places, some of them repeatedly; no operations.

    Attributes:
        rows, cols: the size of the result.
        places: for each place of the result the row-major number of the element; None if the
            elements keep their order.
    """

    rows: int
    cols: int
    places: tuple[int, ...] | None = None

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return self.rows, self.cols

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        flat = x.reshape(-1)
        if self.places is not None:
            flat = flat[list(self.places)]
        return flat.reshape(self.rows, self.cols)


def _number(value: float, *, whole: bool) -> Array:
    exactly = whole and isinstance(value, int)
    return wide(np.asarray(value)) if exactly else np.asarray(value, kept_as(FLOAT32))


def renumbered(step: Step, numbers: Mapping[int, int] | Sequence[int]) -> Step:
    """Return ``step`` with other numbers for the arrays that it reads."""
    reads = (read if isinstance(read, Number) else numbers[read] for read in step.reads)
    return replace(step, reads=tuple(reads))


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that all of ``shapes`` broadcast to, as numpy's arrays do.

    Raises:
        ShapeError: two sizes differ and neither is 1.
    """
    if len(shapes) == 1:
        return shapes[0]
    rows, cols = ({size for size in sizes if size != 1} for sizes in zip(*shapes, strict=True))
    return _size(rows), _size(cols)


def _size(sizes: set[Dim]) -> Dim:
    first, *others = sizes or {1}
    for other in others:
        if same(first, other) is False:
            raise ShapeError(f"a step joins sizes {first} and {other}: expected equal sizes, or 1")
    return first


def _elements(shape: Shape) -> Dim:
    rows, cols = shape
    return rows * cols

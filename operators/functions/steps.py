"""Steps of a chain: what is done to arrays of a tile's numbers, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from typing_extensions import override

from fabric import Dim, ShapeError, product, same
from operators.functions.base import Array, narrow, wide
from operators.functions.numbers import NUMBERS

__all__ = [
    "Cut",
    "Joined",
    "Number",
    "Pointwise",
    "Read",
    "Seen",
    "Shape",
    "Step",
    "broadcast",
    "renumbered",
]

Shape: TypeAlias = tuple[Dim, ...]
"""Of an array: its last dimension in the columns of a tile, all others in its rows."""


@dataclass(frozen=True)
class Number:
    """A number that a step reads in the place of an array.

    Attributes:
        value: the number.
    """

    value: float


Read: TypeAlias = int | Number
"""What a step reads: the number of an array, operands first and then steps; or a number."""


@dataclass(frozen=True)
class Step:
    """One step of a chain.

    Attributes:
        reads: what it is done to.
        dtype: that its result is rounded to.
    """

    reads: tuple[Read, ...]
    dtype: np.dtype

    @property
    def arrays(self) -> tuple[int, ...]:
        """The arrays that it reads."""
        return tuple(each for each in self.reads if not isinstance(each, Number))

    def shape(self, *shapes: Shape) -> Shape:
        """Return the shape of the result.

        Args:
            *shapes: of the arrays that are read, in order.

        Raises:
            ShapeError: they do not fit.
        """
        raise NotImplementedError

    def flops(self, *shapes: Shape) -> Dim:  # noqa: ARG002 - a default
        """Return the operations that it takes."""
        return 0

    def apply(self, *arrays: Array) -> Array:
        """Return the result of arrays in the precision of ``wide``, rounded, in that precision."""
        given = iter(arrays)
        values = [
            np.float32(each.value) if isinstance(each, Number) else next(given)
            for each in self.reads
        ]
        with np.errstate(all="ignore"):
            return wide(narrow(self.compute(*values), self.dtype))

    def compute(self, *values: Array) -> Array:
        """Return the numbers of the result before they are rounded."""
        raise NotImplementedError


@dataclass(frozen=True)
class Pointwise(Step):
    """A function of single numbers, of arrays that are broadcast.

    Attributes:
        name: of one of ``NUMBERS``.
    """

    name: str

    @override
    def shape(self, *shapes: Shape) -> Shape:
        return broadcast(shapes)

    @override
    def flops(self, *shapes: Shape) -> Dim:
        return NUMBERS[self.name].flops * product(self.shape(*shapes))

    @override
    def compute(self, *values: Array) -> Array:
        result: Array = NUMBERS[self.name].function(*values)
        return np.asarray(result)


@dataclass(frozen=True)
class Cut(Step):
    """Some columns of an array; no operations.

    Attributes:
        first, count: which.
    """

    first: int
    count: int

    @override
    def shape(self, *shapes: Shape) -> Shape:
        (x,) = shapes
        return (*x[:-1], self.count)

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        return x[..., self.first : self.first + self.count]


@dataclass(frozen=True)
class Joined(Step):
    """The columns of arrays side by side; no operations."""

    @override
    def shape(self, *shapes: Shape) -> Shape:
        lead = broadcast([each[:-1] for each in shapes])
        return (*lead, sum(each[-1] for each in shapes))

    @override
    def compute(self, *values: Array) -> Array:
        lead = np.broadcast_shapes(*(each.shape[:-1] for each in values))
        return np.concatenate(
            [np.broadcast_to(each, (*lead, each.shape[-1])) for each in values], axis=-1
        )


@dataclass(frozen=True)
class Seen(Step):
    """The same elements with their dimensions repeated, in another order, or regrouped.

    No operations.

    Attributes:
        repeated: the shape that the array is broadcast to first; None for its own.
        order: the dimensions in their new order; None for as they are.
        regrouped: the shape that its elements have in the end, in row-major order; None for that
            which they have then.
    """

    repeated: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    regrouped: tuple[int, ...] | None = None

    @override
    def shape(self, *shapes: Shape) -> Shape:
        (found,) = shapes
        found = self.repeated or found
        if self.order is not None:
            found = tuple(found[dim] for dim in self.order)
        return found if self.regrouped is None else self.regrouped

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        if self.repeated is not None:
            x = np.broadcast_to(x, self.repeated)
        if self.order is not None:
            x = x.transpose(self.order)
        return x if self.regrouped is None else x.reshape(self.regrouped)


def renumbered(step: Step, numbers: Mapping[int, int] | Sequence[int]) -> Step:
    """Return ``step`` with other numbers for the arrays that it reads."""
    reads = (each if isinstance(each, Number) else numbers[each] for each in step.reads)
    return replace(step, reads=tuple(reads))


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that all of ``shapes`` broadcast to, as numpy's arrays do.

    Raises:
        ShapeError: two sizes differ and neither is 1.
    """
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(each)) + tuple(each) for each in shapes]
    return tuple(_size(sizes) for sizes in zip(*padded, strict=True))


def _size(sizes: tuple[Dim, ...]) -> Dim:
    found: Dim = 1
    for size in sizes:
        if size == 1:
            continue
        if found != 1 and same(found, size) is False:
            raise ShapeError(f"a step joins sizes {found} and {size}: expected equal ones, or 1")
        found = size if found == 1 else found
    return found

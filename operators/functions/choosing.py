"""Functions of a router: find the largest numbers of a row, and select streams by their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from typing_extensions import override

from fabric import Dim, Selector, SelectorType, ShapeError, Tile, TileType
from fabric.extend import Bounds, ValueType
from operators.functions.arithmetic import Array
from operators.functions.base import Function
from operators.functions.steps import Shape, Step
from operators.tiles.integers import count_in, is_integer


@dataclass(frozen=True)
class TopPlaces(Step):
    """The places of the ``k`` largest numbers of each row, largest first; k operations per number.

    If ``largest`` is False, the smallest numbers are found, smallest first. A NaN is the largest
    number. PyTorch's topk finds the places, because router scores in bfloat16 are often equal, and
    PyTorch has no documented rule for equal scores.
    """

    k: int
    largest: bool = True

    @override
    def shape(self, *shapes: Shape) -> Shape:
        ((rows, cols),) = shapes
        if isinstance(cols, int) and self.k > cols:
            raise ShapeError(
                f"the {self.k} largest in rows of length {cols}: expected at most {cols}"
            )
        return rows, self.k

    @override
    def flops(self, *shapes: Shape) -> Dim:
        ((rows, cols),) = shapes
        return self.k * rows * cols

    @override
    def compute(self, *values: Array) -> Array:
        import torch

        numbers = torch.from_numpy(np.array(values[0]))
        return np.asanyarray(torch.topk(numbers, self.k, largest=self.largest).indices.numpy())


@dataclass(frozen=True)
class TakenAlong(Step):
    """The numbers of each row at the places that another array names; one operation per place."""

    @override
    def shape(self, *shapes: Shape) -> Shape:
        (rows, _), (_, count) = shapes
        return rows, count

    @override
    def flops(self, *shapes: Shape) -> Dim:
        _, (rows, count) = shapes
        return rows * count

    @override
    def compute(self, *values: Array) -> Array:
        x, places = values
        return np.take_along_axis(x, places.astype(np.int64), axis=1)


@dataclass(frozen=True)
class SelectorOf(Function):
    """The selector of the streams that a row of integers names; one cycle.

    Timing mode does not compute the integers, so there the result is the second operand.

    Shapes:
        places: 1 x k, different integers; given: a selector; result: a selector.

    Example:
        >>> x, which = np.array([[5.0, 6.0]]), np.array([[1], [0]])
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(which, tile=(1, 1))()
        ...     given = Selectors(which[:, :, np.newaxis], width=2)()
        ...     route = Map(SelectorOf())(rows, given)
        ...     items = LinearOffChipLoad(x.T, tile=(1, 1))()
        ...     first, second = Partition(2)(items, route)
        ...     LinearOffChipStore("y")(Promote(0)(first))
        ...     Consumer()(second)
        >>> program.expect(y=lambda: np.array([[6.0]]))
        >>> print(simulate(program).verified)
        True
    """

    fixed_cycles: ClassVar = 1

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[ValueType, ...]:
        match operands:
            case (TileType(rows=1, cols=cols, dtype=dtype), SelectorType(hits=hits)):
                if dtype.kind in "iu" and cols == hits:
                    return operands
        found = " and ".join(map(str, operands))
        raise ShapeError(
            f"{name} is given {found}: expected a row of integers and a selector of equal width"
        )

    @override
    def infer(self, *inputs: ValueType) -> ValueType:
        return inputs[1]

    @override
    def apply(self, *inputs: Tile | Selector) -> Selector:
        places, given = inputs
        assert isinstance(places, Tile)
        assert isinstance(given, Selector)
        if places.data is None:
            return given
        hits = sorted(places.data[0].tolist())
        width = given.width
        if (hits and not 0 <= hits[0] <= hits[-1] < width) or len(set(hits)) < len(hits):
            raise ValueError(f"streams {hits} of a row: expected different numbers below {width}")
        return Selector(tuple(map(int, hits)), width)


@dataclass(frozen=True)
class OneHot(Function):
    """The one-hot selector of the stream that an integer names; one cycle.

    Shapes:
        number: 1 x 1, an integer; result: a selector of ``width``.

    Attributes:
        width: number of streams.

    Example:
        >>> with Program("example") as program:
        ...     route = Map(OneHot(2))(RaggedIntegers([[0, 1], [1]])())
        ...     Consumer()(route)
        >>> print(route.type)
        [1, 2, D_ragged_integers_1~] of selector of 2
        >>> print(simulate(program).elements)
        6
    """

    operands: ClassVar = 1
    fixed_cycles: ClassVar = 1

    width: Annotated[int, Bounds(1)]

    @override
    def infer(self, *inputs: TileType) -> SelectorType:
        (number,) = inputs
        if not is_integer(number):
            raise ShapeError(f"OneHot is given {number}: expected a 1x1 tile of an integer")
        return SelectorType(self.width, hits=1)

    @override
    def apply(self, *inputs: Tile) -> Selector:
        number = count_in(inputs[0], "a stream")
        if number >= self.width:
            raise ValueError(f"OneHot is given {number:,}: expected 0 to {self.width - 1:,}")
        return Selector((number,), self.width)

"""The largest numbers of a row, and selectors that name streams by them: what routers do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from typing_extensions import override

from fabric import Bounds, Dim, Selector, SelectorType, ShapeError, Tile, TileType, ValueType
from operators.functions.base import Function, Shaped, wide
from operators.functions.selection import largest_places

__all__ = ["SelectorOf", "TakeAlong", "TopK"]


@dataclass(frozen=True)
class TopK(Function):
    """The places of the ``k`` largest numbers of each row, the largest first; k comparisons each.

    Of equal numbers those are taken that PyTorch takes on a CPU; a NaN is the largest.

    Shapes:
        x: R x C; result: R x k of int64.

    Attributes:
        k: how many places.
        largest: the smallest numbers, the smallest first, where not.

    Example:
        >>> x = np.array([[1.0, 3.0, 2.0], [6.0, 4.0, 5.0]])
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(x, tile=(2, 3))()
        ...     LinearOffChipStore("y")(Map(TopK(2))(rows))
        >>> program.expect(y=lambda: np.array([[1, 2], [0, 2]]))
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    k: Annotated[int, Bounds(1)]
    largest: bool = True

    @override
    def infer(self, *inputs: TileType) -> TileType:
        (x,) = inputs
        if isinstance(x.cols, int) and self.k > x.cols:
            raise ShapeError(
                f"TopK takes {self.k} numbers of a row of {x}: expected at most {x.cols}"
            )
        return TileType(x.rows, self.k, np.dtype(np.int64))

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return self.k * inputs[0].rows * inputs[0].cols

    @override
    def apply(self, *inputs: Tile) -> Tile:
        (x,) = inputs
        data = None
        if x.data is not None:
            data = largest_places(wide(x.data), self.k, largest=self.largest)
        return Tile(x.rows, self.k, np.dtype(np.int64), data, valid_rows=x.valid_rows)


@dataclass(frozen=True)
class TakeAlong(Function):
    """Of each row the numbers at the places that the row beside it names; one operation each.

    Shapes:
        x: R x C; places: R x k, integers from 0 to C - 1; result: R x k.

    Example:
        >>> x, places = np.array([[1.0, 3.0, 2.0]]), np.array([[2, 0]])
        >>> with Program("example", mode="functional") as program:
        ...     row = LinearOffChipLoad(x, tile=(1, 3))()
        ...     which = LinearOffChipLoad(places, tile=(1, 2))()
        ...     LinearOffChipStore("y")(Map(TakeAlong())(row, which))
        >>> program.expect(y=lambda: np.array([[2.0, 1.0]]))
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 2
    mixed_types: ClassVar[bool] = True

    @override
    def infer(self, *inputs: TileType) -> TileType:
        x, places = inputs
        if places.dtype.kind not in "iu" or places.rows != x.rows:
            raise ShapeError(
                f"TakeAlong is given {x} and {places}: expected integers of as many rows"
            )
        return TileType(x.rows, places.cols, x.dtype)

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return inputs[1].rows * inputs[1].cols

    @override
    def apply(self, *inputs: Tile) -> Tile:
        x, places = inputs
        data = None
        if x.data is not None and places.data is not None:
            data = np.take_along_axis(x.data, places.data.astype(np.int64), axis=1)
        return Tile(x.rows, places.cols, x.dtype, data, valid_rows=x.valid_rows)


@dataclass(frozen=True)
class SelectorOf(Function):
    """The selector of the streams that a row of integers names; one cycle.

    In timing mode no integers are there: the second operand stands for the choice.

    Shapes:
        places: 1 x k, integers, none twice; given: a selector; result: a selector.

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

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[ValueType, ...]:
        match operands:
            case (TileType(rows=1, cols=cols, dtype=dtype), SelectorType(hits=hits)):
                if dtype.kind in "iu" and cols == hits:
                    return operands
        found = " and ".join(map(str, operands))
        raise ShapeError(
            f"{name} is given {found}: expected a row of integers and a selector of as many streams"
        )

    @property
    @override
    def fixed_cycles(self) -> int | None:
        return 1

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
        if hits and not 0 <= hits[0] <= hits[-1] < width or len(set(hits)) < len(hits):
            raise ValueError(f"streams {hits} are named: expected different ones below {width}")
        return Selector(tuple(map(int, hits)), width)

"""Selectors from integers that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from typing_extensions import override

from fabric import Selector, SelectorType, ShapeError, Tile, TileType
from fabric.extend import Bounds
from operators.functions.base import Function
from operators.tiles.integers import count_in, is_integer

__all__ = ["OneHot"]


@dataclass(frozen=True)
class OneHot(Function):
    """The one-hot selector of the stream that an integer names; one cycle.

    Shapes:
        number: 1 x 1, an integer; result: a selector of ``width``.

    Attributes:
        width: how many streams there are.

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

    width: Annotated[int, Bounds(1)]

    @property
    @override
    def fixed_cycles(self) -> int | None:
        return 1

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

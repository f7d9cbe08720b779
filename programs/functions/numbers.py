"""Selectors as numbers, which can be buffered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fabric import Selector, SelectorType, ShapeError, Tile, TileType
from fabric.extend import ValueType
from operators import INTEGER, Function, integer
from operators.rtl import description


@dataclass(frozen=True)
class NumberOf(Function):
    """Convert a one-hot selector to the number of the stream that it names, in one cycle."""

    fixed_cycles: ClassVar = 1

    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[ValueType, ...]:
        match operands:
            case (SelectorType(hits=1),):
                return operands
        types = " and ".join(map(str, operands))
        raise ShapeError(f"{name} is given {types}: expected a one-hot selector")

    def infer(self, selector: SelectorType) -> TileType:
        return INTEGER

    def apply(self, selector: Selector) -> Tile:
        (number,) = selector.hits
        return integer(number)

    def hardware(self) -> description.Function:
        return description.Function(1, lambda _: description.NUMBER, is_told=True)

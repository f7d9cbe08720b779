"""Selectors as numbers, which can be buffered, and back."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Selector, SelectorType, ShapeError, Tile, TileType, ValueType
from operators import INTEGER, Function, integer

__all__ = ["NumberOf", "OneHot"]


@dataclass(frozen=True)
class NumberOf(Function):
    """The stream that a one-hot selector names; one cycle, in both modes."""

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[ValueType, ...]:
        match operands:
            case (SelectorType(hits=1),):
                return operands
        found = " and ".join(map(str, operands))
        raise ShapeError(f"{name} is given {found}: expected a one-hot selector")

    @property
    @override
    def fixed_cycles(self) -> int | None:
        return 1

    @override
    def infer(self, *_: SelectorType) -> TileType:
        return INTEGER

    @override
    def apply(self, *inputs: Selector) -> Tile:
        (number,) = inputs[0].hits
        return integer(number)


@dataclass(frozen=True)
class OneHot(Function):
    """The one-hot selector of a number; one cycle, in both modes."""

    width: int

    @property
    @override
    def fixed_cycles(self) -> int | None:
        return 1

    @override
    def infer(self, *_: TileType) -> SelectorType:
        return SelectorType(self.width, hits=1)

    @override
    def apply(self, *inputs: Tile) -> Selector:
        assert inputs[0].data is not None
        return Selector((int(inputs[0].data.item()),), self.width)

"""Streams that are kept on chip, whole, until they are read: what they pass by has no end yet."""

from __future__ import annotations

from dataclasses import dataclass

from fabric import Selector, SelectorType, ShapeError, Stream, Tile, TileType, ValueType
from operators import INTEGER, Bufferize, Function, Map, Streamify, integer

__all__ = ["kept", "kept_numbers", "selectors_of"]


def kept(source: Stream) -> Stream:
    """Return ``source``, [..., n], in a buffer between: all of it comes in before any goes out."""
    return Streamify()(Bufferize(1)(source))


def kept_numbers(selectors: Stream) -> Stream:
    """Return which stream each one-hot selector of [..., n] names, kept as integers."""
    return kept(Map(_Number())(selectors))


def selectors_of(numbers: Stream, width: int) -> Stream:
    """Return the one-hot selectors that ``kept_numbers`` was given."""
    return Map(_OneHot(width))(numbers)


@dataclass(frozen=True)
class _Number(Function):
    """The stream that a one-hot selector names; one cycle, in both modes."""

    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[ValueType, ...]:
        match operands:
            case (SelectorType(hits=1),):
                return operands
        found = " and ".join(map(str, operands))
        raise ShapeError(f"{name} is given {found}: expected a one-hot selector")

    @property
    def fixed_cycles(self) -> int | None:
        return 1

    def infer(self, *_: SelectorType) -> TileType:
        return INTEGER

    def apply(self, *inputs: Selector) -> Tile:
        (number,) = inputs[0].hits
        return integer(number)


@dataclass(frozen=True)
class _OneHot(Function):
    """The one-hot selector of a number; one cycle, in both modes."""

    width: int

    @property
    def fixed_cycles(self) -> int | None:
        return 1

    def infer(self, *_: TileType) -> SelectorType:
        return SelectorType(self.width, hits=1)

    def apply(self, *inputs: Tile) -> Selector:
        assert inputs[0].data is not None
        return Selector((int(inputs[0].data.item()),), self.width)

"""Hardware functions of a router: the experts of a token, and their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fabric import Dim, Selector, SelectorType, ShapeError, Tile, TileType
from fabric.extend import ValueType
from operators import Function, narrow, wide
from operators.rtl import description


@dataclass(frozen=True)
class Gates(Function):
    """Compute the softmax over the ``top_k`` largest numbers of a row, and 0 for the others.

    A row of E numbers takes 6 * E operations (exp 4, sum, division) and ``top_k * E`` comparisons.

    Shapes:
        logits: R x E; result: the same.
    """

    operands: ClassVar = 1

    top_k: int

    def infer(self, logits: TileType) -> TileType:
        return logits

    def flops(self, logits: Tile) -> Dim:
        return (6 + self.top_k) * logits.rows * logits.cols

    def apply(self, logits: Tile) -> Tile:
        data = None
        if logits.data is not None:
            numbers = wide(logits.data)
            kept = _largest(numbers, self.top_k)
            top = np.take_along_axis(numbers, kept, axis=1)
            powers = np.exp(top - top.max(axis=1, keepdims=True))
            gates = np.zeros_like(numbers)
            np.put_along_axis(gates, kept, powers / powers.sum(axis=1, keepdims=True), axis=1)
            data = narrow(gates, logits.dtype)
        return Tile(logits.rows, logits.cols, logits.dtype, data)

    def hardware(self) -> description.Function:
        return description.Function(1, description.whole)


@dataclass(frozen=True)
class Chosen(Function):
    """Select the experts with the largest gates, in one cycle, since Gates has compared them.

    Timing mode has no gates, so the second operand is the choice.

    Shapes:
        gates: 1 x E; given: a selector of E; result: a selector of E.
    """

    fixed_cycles: ClassVar = 1

    top_k: int

    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[ValueType, ...]:
        match operands:
            case (TileType(rows=1, cols=int(experts)), SelectorType(width=width)):
                if experts == width:
                    return operands
        types = " and ".join(map(str, operands))
        raise ShapeError(
            f"{name} is given {types}: expected a row of gates and a selector of as many"
        )

    def infer(self, gates: TileType, given: SelectorType) -> SelectorType:
        return given

    def apply(self, gates: Tile, given: Selector) -> Selector:
        if gates.data is None:
            return given
        chosen = _largest(wide(gates.data), self.top_k)[0]
        return Selector(tuple(sorted(chosen.tolist())), given.width)

    def hardware(self) -> description.Function:
        return description.Function(2, lambda *_: description.NUMBER, is_told=True)


@dataclass(frozen=True)
class Weigh(Function):
    """Multiply a row by the gate of ``expert``, one operation per element.

    Shapes:
        gates: 1 x E; row: 1 x D; result: 1 x D.
    """

    operands: ClassVar = 2

    expert: int

    def infer(self, gates: TileType, row: TileType) -> TileType:
        return row

    def flops(self, gates: Tile, row: Tile) -> Dim:
        return row.rows * row.cols

    def apply(self, gates: Tile, row: Tile) -> Tile:
        data = None
        if gates.data is not None and row.data is not None:
            data = narrow(wide(row.data) * wide(gates.data)[:, self.expert], row.dtype)
        return Tile(row.rows, row.cols, row.dtype, data)

    def hardware(self) -> description.Function:
        return description.Function(2, lambda _, row: description.whole(row))


def _largest(numbers: np.ndarray, count: int) -> NDArray[np.int64]:
    """Return the places of the ``count`` largest numbers of each row; the first of equal ones."""
    order: NDArray[np.int64] = np.argsort(-numbers, axis=1, kind="stable")
    return order[:, :count]

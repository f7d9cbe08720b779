"""Base classes: a ``Function`` maps tiles to a tile, a ``Reduction`` folds tiles into a result.

Source: cycle counts as in the authors' simulator; Streaming Tensor Programs, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Rational
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from typing_extensions import override

from fabric import Dim, Layout, ProgramError, ShapeError, Tile, TileType
from fabric.extend import (
    Bounds,
    ComputeUnit,
    Described,
    Loop,
    Value,
    ValueType,
    block_format,
    kept_as,
    limits,
)
from operators.functions.arithmetic import narrow, plus, wide
from operators.tiles.integers import INTEGER, integer

Operand: TypeAlias = Any
"""A value or a type; each function's ``check`` defines the types that it takes."""

Shaped: TypeAlias = Tile | TileType
"""A tile has rows and columns as integers, a type as dimensions."""

State: TypeAlias = Any
"""The state of a reduction; its type is private to the reduction."""


@dataclass(frozen=True)
class _Computing(Described):
    duties: ClassVar[tuple[str, ...]] = ()

    operands: ClassVar[int | None] = None
    mixed_types: ClassVar[bool] = False
    block_scaled: ClassVar[bool] = False
    floats: ClassVar[bool] = False
    effects: ClassVar[bool] = False

    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        """Check the types of the operands and return them; errors begin with ``name``.

        Raises:
            ShapeError: another number of operands, or other types.
        """
        count = self.operands or max(1, len(operands))
        return tile_types(
            name,
            operands,
            count,
            mixed_types=self.mixed_types,
            floats=self.floats,
            block_scaled=self.block_scaled,
        )

    @property
    def fixed_cycles(self) -> Annotated[int, Bounds(0)] | None:
        """Cycles per element of any size; None if they follow from ``flops``."""
        return None

    def flops(self, *inputs: Operand) -> Dim:  # noqa: ARG002 - a default
        """Return the number of operations per element, from the sizes of tiles or tile types."""
        return 0  # for functions with fixed cycles; other functions override it

    def operand_bytes(self, *inputs: Operand) -> Dim:  # noqa: ARG002 - a default
        """Return the on-chip bytes for the operands, by the paper's equations."""
        return 0

    def cycles(self, unit: ComputeUnit, *inputs: Operand) -> int:
        """Count the work on ``unit`` and return its cycles there."""
        fixed = self.fixed_cycles
        return unit.compute(self.flops(*inputs)) if fixed is None else fixed


@dataclass(frozen=True)
class Function(_Computing):
    """A function that a Map applies to every element.

    A subclass gives the type of the result (``infer``), the cost (``flops``, or ``fixed_cycles``
    if the time does not depend on the size) and the value (``apply``). Its operands are tiles of
    one element type, unless it overrides ``check``.

    Attributes:
        operands: number of operands; None for any number.
        mixed_types: operands may be tiles of different element types.
        block_scaled: operands may be in a block format, in which numbers share scales.
        floats: operands are floating-point numbers, since integers have no exact result.
        elementwise: each number of the result depends only on the operands' numbers at its place.
        effects: it has effects outside of the run, such as a written file; see ``Operator.run``.
    """

    family: ClassVar[str] = "Functions of Map"

    duties: ClassVar[tuple[str, ...]] = ("infer", "flops or fixed_cycles", "apply")

    elementwise: ClassVar[bool] = False

    def infer(self, *inputs: Operand) -> ValueType:
        """Return the type of the result.

        Raises:
            ShapeError: the inputs do not fit.
        """
        raise NotImplementedError

    def apply(self, *inputs: Operand) -> Value:
        """Return the result, a tile without data if the inputs have no data."""
        raise NotImplementedError


@dataclass(frozen=True)
class PerElement(Function):
    flops_per_element: ClassVar[int] = 1

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return self.flops_per_element * inputs[0].rows * inputs[0].cols


def zeros(result: TileType, functional: bool) -> Tile:
    """Return the zeros of an empty group; sizes that depend on data are 0."""
    rows, cols = (size if isinstance(size, int) else 0 for size in (result.rows, result.cols))
    data = np.zeros((rows, cols), kept_as(result.dtype)) if functional else None
    return Tile(rows, cols, result.dtype, data)


def check_flops(function: Described, flops: object) -> None:
    """Refuse a result of ``flops`` that is negative, or neither a number nor an expression."""
    # The operations on tiles of a mean size may be a fraction.
    if flops < 0 if isinstance(flops, Rational) else not hasattr(flops, "free_symbols"):
        raise ProgramError(
            f"{type(function).__name__}.flops returns {flops!r}: expected an integer of at least "
            "0, or an expression of symbols"
        )


def tile_types(
    name: str,
    values: tuple[ValueType, ...],
    count: int,
    *,
    mixed_types: bool = False,
    floats: bool = False,
    block_scaled: bool = False,
) -> tuple[TileType, ...]:
    """Return ``values`` if they are ``count`` tiles, of one element type unless ``mixed_types``.

    With ``floats``, integers are refused. Without ``block_scaled``, shared scales are refused.
    """
    tiles = tuple([value for value in values if isinstance(value, TileType)])
    if len(tiles) != count or len(values) != count:
        found = ", ".join(map(str, values)) or "nothing"
        wanted = "1 tile" if count == 1 else f"{count} tiles"
        raise ShapeError(f"{name} is given {found}: expected {wanted}")
    if not mixed_types and count > 1 and len({tile.dtype for tile in tiles}) > 1:
        found = ", ".join(map(str, tiles))
        raise ShapeError(f"{name} is given {found}: expected one element type")
    for tile in tiles if floats else ():
        if limits(tile.dtype) is not None:
            raise ShapeError(f"{name} is given {tile}: expected floating-point numbers")
    for tile in () if block_scaled else tiles:
        if block_format(tile.dtype) is not None:
            raise ShapeError(
                f"{name} is given {tile} with shared scales: expected numbers without shared "
                "scales, such as the result of Map(AsType(...))"
            )
    return tiles


@dataclass(frozen=True)
class Reduction(_Computing):
    """A function that an Accum or a Scan applies to the elements of a group.

    ``start`` and ``update`` return the state. ``finish`` turns it into a value; a Scan calls
    ``finish`` after every element. The operands are tiles of one element type, unless a subclass
    overrides ``check``.

    Attributes:
        operands: number of operands; None for any number.
        floats: operands are floating-point numbers, since integers have no exact result.
        effects: it has effects outside of the run, such as a written file; see ``Operator.run``.
    """

    family: ClassVar[str] = "Functions of Accum and Scan"

    duties: ClassVar[tuple[str, ...]] = ("infer", "flops or fixed_cycles", "update", "finish")

    @property
    def keeps_placement(self) -> bool:
        """Whether the result keeps the flag ``in_memory`` of the inputs, despite ``to_memory``."""
        return False

    def infer(self, group: Dim, *inputs: Operand) -> ValueType:
        """Return the type of the result for groups of ``group`` elements.

        Raises:
            ShapeError: the inputs do not fit.
        """
        raise NotImplementedError

    def start(self, result: Operand, functional: bool) -> State:  # noqa: ARG002 - a default
        """Return the state before the first element; None by default."""
        return None

    def start_bytes(self, result: Operand) -> int:
        """Return the bytes of the fresh accumulator, 0 if data decide its size."""
        return result.size_bytes if isinstance(result.size_bytes, int) else 0

    def growth_bytes(self, state: State, *inputs: Operand) -> int:  # noqa: ARG002 - a default
        """Return the bytes that an update adds to an accumulator with ``start_bytes`` of 0."""
        return 0

    def update(self, state: State, *inputs: Operand) -> State:
        """Return the state after one more element."""
        raise NotImplementedError

    def finish(self, state: State, result: Operand, functional: bool) -> Value:
        """Return the value for ``state``."""
        raise NotImplementedError

    def layout(
        self,
        layout: Layout,  # noqa: ARG002 - a default
        outer: tuple[Loop, ...],  # noqa: ARG002 - a default
        inner: tuple[Loop, ...],  # noqa: ARG002 - a default
    ) -> Layout | str:
        """Return the layout of the results for groups of tiles, or a reason for its absence.

        Args:
            layout: the layout of the tiles.
            outer: the layout's loops over the groups.
            inner: the layout's loops over the tiles of one group.
        """
        return f"{type(self).__name__} makes another tensor"


@dataclass(frozen=True)
class Sum(Reduction):
    """The sum of the tiles of a group, one operation per number; rounded when it is emitted.

    Shapes:
        tiles of a group: R x C; result: R x C.

    Example:
        >>> x = np.arange(16.0).reshape(4, 4)
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(x, tile=(1, 4))()
        ...     LinearOffChipStore("y")(Accum(Sum(), rank=2)(rows))
        >>> program.expect(y=lambda: x.sum(axis=0, keepdims=True))
        >>> print(simulate(program).verified)
        True
    """

    operands: ClassVar = 1

    @override
    def infer(self, group: Dim, *inputs: TileType) -> TileType:
        return inputs[0]

    @override
    def flops(self, *inputs: Shaped) -> Dim:
        return inputs[0].rows * inputs[0].cols

    @override
    def growth_bytes(self, state: State, *inputs: Tile) -> int:
        return inputs[0].size_bytes if state is None else 0

    @override
    def update(self, state: State, *inputs: Tile) -> State:
        (tile,) = inputs
        if state is None:
            return tile, None if tile.data is None else wide(tile.data)
        _, total = state
        return tile, None if tile.data is None else plus(total, wide(tile.data))

    @override
    def finish(self, state: State, result: TileType, functional: bool) -> Tile:
        if state is None:
            return zeros(result, functional)
        tile, total = state
        data = None if total is None else narrow(total, result.dtype, "Sum")
        return Tile(tile.rows, tile.cols, result.dtype, data)

    @override
    def layout(
        self, layout: Layout, outer: tuple[Loop, ...], inner: tuple[Loop, ...]
    ) -> Layout | str:
        shape = list(layout.shape)
        for dim in {loop.dim for loop in inner if loop.trips > 1}:
            if dim is None:
                continue
            along = layout.nested([loop for loop in inner if loop.dim == dim])
            whole = [Loop(shape[dim] // layout.tile[dim], layout.tile[dim], dim)]
            moves = any(loop.dim == dim and loop.trips > 1 for loop in outer)
            uneven = layout.start[dim] or shape[dim] % layout.tile[dim]
            if list(along.canonical().loops) != whole or moves or uneven:
                return "its groups are parts of a dimension"
            shape[dim] = layout.tile[dim]
        return replace(layout.nested(outer), shape=tuple(shape))


@dataclass(frozen=True)
class SignalAllRead(Reduction):
    """The number 1 when all values of a group have arrived; one cycle per value.

    Shapes:
        values of a group: of any type, also acknowledgements of stores; result: 1 x 1, an integer.

    Example:
        >>> with Program("example") as program:
        ...     rows = LinearOffChipLoad(np.ones((4, 64)), tile=(1, 64))()
        ...     signal = Accum(SignalAllRead(), rank=2)(rows)
        ...     Consumer()(signal)
        >>> print(signal.type)
        [1] of 1x1 uint64
        >>> print(simulate(program).cycles)
        85
    """

    operands: ClassVar = 1
    fixed_cycles: ClassVar = 1

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        if len(operands) != 1:
            found = ", ".join(map(str, operands)) or "nothing"
            raise ShapeError(f"{name} is given {found}: expected 1 value")
        return operands

    @override
    def infer(self, group: Dim, *inputs: Operand) -> TileType:
        return INTEGER

    @override
    def update(self, state: State, *inputs: Value) -> State:
        return None

    @override
    def finish(self, state: State, result: TileType, functional: bool) -> Tile:
        return integer(1)

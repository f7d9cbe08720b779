"""What a hardware function is: tiles in, a tile out, and the work that takes.

Users write their own the same way: a frozen dataclass with ``infer``, ``flops`` and ``apply``.
Source: cycle counts as the authors' simulator; Streaming Tensor Programs, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Rational
from typing import Annotated, Any, ClassVar, TypeAlias

from fabric import Dim, ProgramError, ShapeError, Tile, TileType
from fabric.extend import (
    Bounds,
    ComputeUnit,
    Described,
    Value,
    ValueType,
    block_format,
    limits,
)
from operators.functions.arithmetic import Array

__all__ = ["Array", "Function", "Operand", "Shaped", "check_flops", "tile_types"]

Operand: TypeAlias = Any
"""What a function is given: each says of which types, and ``check`` sees to it."""

Shaped: TypeAlias = Tile | TileType
"""What has rows and columns: integers those of a tile, dimensions those of a type."""


@dataclass(frozen=True)
class Function(Described):
    """A function that a Map applies to every element.

    A subclass says what comes out (``infer``), what it costs (``flops``, or ``fixed_cycles``
    where the time does not depend on the size) and what it does (``apply``). Unless it says
    otherwise (``check``) its operands are tiles of one element type.

    Attributes:
        operands: how many it takes; None for any number.
        mixed_types: they may be tiles of different element types.
        block_scaled: numbers of them may share scales.
        floats: they are floating-point numbers: integers have no exact result.
        elementwise: each number of the result is made of those in its place.

    Family:
        Functions of Map.
    """

    duties: ClassVar[tuple[str, ...]] = ("infer", "flops or fixed_cycles", "apply")

    operands: ClassVar[int | None] = None
    mixed_types: ClassVar[bool] = False
    block_scaled: ClassVar[bool] = False
    floats: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False

    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        """Return the types of the operands, which are those that ``name`` can take.

        Raises:
            ShapeError: another number, or other types.
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
        """Cycles per element whatever its size; None where ``flops`` decides."""
        return None

    @property
    def roundings(self) -> Annotated[int, Bounds(0)]:
        """How many roundings in a row a number goes through; 0 where data are only moved."""
        return 1

    def infer(self, *inputs: Operand) -> ValueType:
        """Return the type of the result.

        Raises:
            ShapeError: the inputs do not fit.
        """
        raise NotImplementedError

    def flops(self, *inputs: Operand) -> Dim:  # noqa: ARG002 - a default
        """Return the operations for one element, from rows and cols of tiles or tile types."""
        return 0  # of a function with fixed cycles: others say how many

    def apply(self, *inputs: Operand) -> Value:
        """Return the result; tiles without data where the inputs have none."""
        raise NotImplementedError

    def operand_bytes(self, *inputs: Operand) -> Dim:  # noqa: ARG002 - a default
        """Return the bytes of operands it holds on chip (the paper's equations)."""
        return 0

    def cycles(self, unit: ComputeUnit, *inputs: Operand) -> int:
        """Count the work on ``unit`` and return the cycles it takes there."""
        fixed = self.fixed_cycles
        return unit.compute(self.flops(*inputs)) if fixed is None else fixed


def check_flops(function: Described, flops: object) -> None:
    """Refuse what ``function`` says its operations are where that is no number of them.

    Raises:
        ProgramError: a whole sentence, the place is added later.
    """
    # Sizes are fractions where they are means.
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
    """Return ``values`` as tile types, of one element type unless ``mixed_types``.

    Raises:
        ShapeError: another number of inputs, something else than tiles, mixed element types, whole
            numbers where ``floats`` are needed, or shared scales unless ``block_scaled``.
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
                f"{name} is given {tile}, whose numbers share scales: expected others, as "
                "Map(AsType(...)) makes of them"
            )
    return tiles

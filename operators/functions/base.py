"""What a hardware function is: tiles in, a tile out, and the work that takes.

Users write their own the same way: a frozen dataclass with ``infer``, ``flops`` and ``apply``.
Source: cycle counts as the authors' simulator; Streaming Tensor Programs, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import ml_dtypes
import numpy as np

from fabric import ComputeUnit, Described, Dim, ShapeError, Tile, TileType, Value, ValueType
from operators.tiles.conversion import converted

__all__ = ["Array", "Function", "Operand", "Shaped", "narrow", "tile_types", "wide", "wide_type"]

Array: TypeAlias = np.ndarray

Operand: TypeAlias = Any
"""What a function is given: each says of which types, and ``check`` sees to it."""

Shaped: TypeAlias = Tile | TileType
"""What has rows and columns: integers those of a tile, dimensions those of a type."""

_WIDE: Final = {
    np.dtype(each): np.dtype(wider)
    for each, wider in (
        (np.float16, np.float32),
        (ml_dtypes.bfloat16, np.float32),
        (np.bool_, np.int64),
        (ml_dtypes.int4, np.int64),
        (np.int8, np.int64),
        (np.int16, np.int64),
        (np.int32, np.int64),
        (np.uint8, np.int64),
        (np.uint16, np.int64),
        (np.uint32, np.int64),
    )
}

_NUMBERS: Final = {
    np.dtype(each): np.arange(256, dtype=np.uint8).view(each).astype(np.float32)
    for each in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
}
"""The numbers of an 8-bit type by their bits: looked up five times as fast as they are computed."""


@dataclass(frozen=True)
class Function(Described):
    """A function that a Map applies to every element.

    A subclass says what comes out (``infer``), what it costs (``flops``, or ``fixed_cycles``
    where the time does not depend on the size) and what it does (``apply``). Unless it says
    otherwise (``check``) its operands are tiles of one element type.

    Attributes:
        operands: how many it takes; None for any number.
        mixed_types: they may be tiles of different element types.
        elementwise: each number of the result is made of those in its place.

    Family:
        Functions of Map.
    """

    duties: ClassVar[tuple[str, ...]] = ("infer", "flops or fixed_cycles", "apply")

    operands: ClassVar[int | None] = None
    mixed_types: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False

    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[Operand, ...]:
        """Return the types of the operands, which are those that ``name`` can take.

        Raises:
            ShapeError: another number, or other types.
        """
        count = self.operands or max(1, len(operands))
        return tile_types(name, operands, count, mixed_types=self.mixed_types)

    @property
    def fixed_cycles(self) -> int | None:
        """Cycles per element whatever its size; None where ``flops`` decides."""
        return None

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


def wide(data: Array) -> Array:
    """Return ``data`` for arithmetic: small floats in 32 bits, integers in 64."""
    wider = _WIDE.get(data.dtype)
    if wider is not None:
        return data.astype(wider)
    numbers = _NUMBERS.get(data.dtype)
    return data if numbers is None else numbers.take(data.view(np.uint8))


def wide_type(dtype: np.dtype) -> np.dtype:
    """Return the element type that ``wide`` gives."""
    if dtype in _NUMBERS:
        return np.dtype(np.float32)
    return _WIDE.get(dtype, dtype)


def narrow(data: Array, dtype: np.dtype) -> Array:
    """Return a result rounded to the element type of its tile.

    Raises:
        ValueError: that is a type of integers or booleans, and it does not hold a value.
    """
    if data.dtype == dtype:
        return data
    if dtype.kind not in "biu":
        return data.astype(dtype)
    try:
        return converted(data, dtype)
    except ValueError as error:
        raise ValueError(f"a result has {error}: expected values that the type holds") from error


def tile_types(
    name: str, values: tuple[ValueType, ...], count: int, *, mixed_types: bool = False
) -> tuple[TileType, ...]:
    """Return ``values`` as tile types, of one element type unless ``mixed_types``.

    Raises:
        ShapeError: another number of inputs, something else than tiles, or mixed element types.
    """
    tiles = tuple([value for value in values if isinstance(value, TileType)])
    if len(tiles) != count or len(values) != count:
        found = ", ".join(map(str, values)) or "nothing"
        wanted = "1 tile" if count == 1 else f"{count} tiles"
        raise ShapeError(f"{name} is given {found}: expected {wanted}")
    if not mixed_types and count > 1 and len({tile.dtype for tile in tiles}) > 1:
        found = ", ".join(map(str, tiles))
        raise ShapeError(f"{name} is given {found}: expected one element type")
    return tiles

"""Dimensions of streams and tiles: integers, or sympy expressions where data decide.

sympy takes long to import, so nothing here imports it before the first symbol is made.
Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import sympy

    Dim: TypeAlias = int | sympy.Expr
else:
    Dim: TypeAlias = Any

__all__ = [
    "Dim",
    "at_least_one",
    "ceil_div",
    "is_ragged",
    "is_static",
    "largest",
    "product",
    "same",
    "symbol",
]

_RAGGED = "~"
"""Marks the names of ragged symbols, which have a value of their own for every outer element."""


def symbol(name: str, *, ragged: bool = False) -> Dim:
    """Return the non-negative integer symbol ``name``; a ragged one is printed with ``~``."""
    import sympy

    result: Dim = sympy.Symbol(name + _RAGGED if ragged else name, integer=True, nonnegative=True)
    return result


def is_static(dim: Dim) -> bool:
    """Whether ``dim`` is known while the program is wired."""
    return isinstance(dim, int)


def is_ragged(dim: Dim) -> bool:
    """Whether ``dim`` has a ragged symbol in it."""
    if isinstance(dim, int):
        return False
    return any(str(free).endswith(_RAGGED) for free in dim.free_symbols)


def ceil_div(dim: Dim, divisor: int) -> Dim:
    """Return ``ceil(dim / divisor)``."""
    if isinstance(dim, int):
        return -(-dim // divisor)
    if divisor == 1:
        return dim
    import sympy

    result: Dim = sympy.ceiling(dim / divisor)
    return result


def at_least_one(dim: Dim) -> Dim:
    """Return 1 where ``dim`` is positive, else 0."""
    if isinstance(dim, int):
        return min(dim, 1)
    import sympy

    result: Dim = sympy.Min(dim, 1, evaluate=False)
    return result


def largest(dims: Sequence[Dim]) -> Dim:
    """Return the largest of ``dims``, of which there is at least one."""
    different = set(dims)
    if len(different) == 1:
        return dims[0]
    if all(isinstance(dim, int) for dim in different):
        return max(dims)
    import sympy

    result: Dim = sympy.Max(*different)
    return result


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of ``dims``, 1 for none."""
    result: Dim = math.prod(dims)
    return result


def same(left: Dim, right: Dim) -> bool | None:
    """Whether two dimensions are equal: True, False, or None where it cannot be decided."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if left == right:
        return True
    difference: Any = left - right
    return None if difference.is_zero is None else bool(difference.is_zero)

"""Sizes of a program, with those that its data decide as far as it binds them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from fabric import Dim, Program

__all__ = ["number_of"]


def number_of(program: Program, dim: Dim) -> int | None:
    """Return ``dim`` rounded up; None where it hangs on what ``program`` does not bind."""
    value = dim if isinstance(dim, int) else dim.with_sizes(program.sizes)
    return ceil(value) if isinstance(value, int | Fraction) else None

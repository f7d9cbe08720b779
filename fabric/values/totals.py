"""What several sizes are together, where single ones are not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from fabric.values.dims import Dim, Expression
from fabric.values.expression import Product, Sum, Symbol, product_of, sum_of, terms_of
from fabric.values.rounding import AtLeastOne, CeilDiv

__all__ = ["Totals", "is_total", "least_of", "parts_of", "with_totals"]

Totals: TypeAlias = Mapping[Expression, int]
"""By a sum of sizes, or a single one, what it is."""


def is_total(dim: Dim) -> bool:
    """Whether ``dim`` is a sum of elements: of symbols, or of products of symbols."""
    if not isinstance(dim, Expression):
        return False
    number, terms = terms_of(dim)
    return (
        not number
        and all(each == 1 for each in terms.values())
        and all(isinstance(part, Symbol) or _is_count(part) for part in terms)
    )


def parts_of(total: Expression) -> tuple[Expression, ...]:
    """Return what ``total`` is the sum of."""
    return tuple(terms_of(total)[1])


def with_totals(dim: Dim, totals: Totals) -> Dim:
    """Return ``dim`` with numbers for those of ``totals`` that it is made of.

    What it has of each of a total's parts, it has of the total: as often as of the part of which
    it has the least.
    """
    for total, size in totals.items():
        if not isinstance(dim, Expression):
            return dim
        _, terms = terms_of(dim)
        parts = parts_of(total)
        often = min(terms.get(part, 0) for part in parts)
        if often > 0:
            dim = sum_of((dim, often * size, *(product_of((-often, part)) for part in parts)))
    return dim


def least_of(dim: Dim) -> int:
    """Return a lower bound of ``dim`` for any sizes from 0 on; 0 where it could be anything."""
    if isinstance(dim, int) or not _only_grows(dim):
        return dim if isinstance(dim, int) else 0
    value = dim.with_sizes(dict.fromkeys(dim.free_symbols, 0))
    return max(int(-(-value // 1)), 0)


def _only_grows(dim: Dim) -> bool:
    """Whether ``dim`` is not smaller for larger sizes."""
    if isinstance(dim, Sum):
        return all(each > 0 and _only_grows(rest) for rest, each in dim.terms.items())
    if isinstance(dim, Product):
        return dim.coefficient > 0 and all(
            exponent > 0 and _only_grows(base) for base, exponent in dim.powers.items()
        )
    if isinstance(dim, CeilDiv | AtLeastOne):
        return _only_grows(dim.dim)
    return isinstance(dim, Symbol)


def _is_count(part: Expression) -> bool:
    return isinstance(part, Product) and all(
        isinstance(base, Symbol) and exponent > 0 for base, exponent in part.powers.items()
    )

"""Dimensions of streams and tiles: integers, or expressions where data decide.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from typing_extensions import override

from fabric.arguments.checks import Check, Unfit
from fabric.values.expression import Expression, Product, Sum, Symbol, product_of, sum_of
from fabric.values.rounding import AtLeastOne, CeilDiv, ceiling, flag


class _DimCheck(Check):
    """A size: an integer, or an expression of symbols."""

    text, plural = "an integer of at least 0 or a symbol", "integers of at least 0 or symbols"

    @override
    def settle(self, value: object) -> object:
        try:
            size = -1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            if isinstance(value, Fraction | Expression):
                return value
            raise Unfit from None
        if size < 0:
            raise Unfit
        return size


if TYPE_CHECKING:
    # Any for an expression: where there are data, all dimensions are the integers numpy wants.
    Dim: TypeAlias = int | Any
else:
    Dim: TypeAlias = Annotated[Any, _DimCheck()]

__all__ = [
    "Dim",
    "Expression",
    "Symbol",
    "at_least_one",
    "ceil_div",
    "dim_text",
    "free_symbols",
    "is_polynomial_in",
    "is_ragged",
    "is_static",
    "product",
    "short_text",
    "symbol",
    "total",
]

_RAGGED: Final = "~"
"""Marks the names of ragged symbols, which have a value of their own for every outer element."""


def symbol(name: str, *, ragged: bool = False) -> Symbol:
    """Return the non-negative integer symbol ``name``; a ragged one is printed with ``~``."""
    return Symbol(name + _RAGGED if ragged else name)


def free_symbols(dim: Dim) -> frozenset[Symbol]:
    """Return the symbols in ``dim``, none for a number."""
    return dim.free_symbols if isinstance(dim, Expression) else frozenset()


def is_static(dim: Dim) -> bool:
    """Whether ``dim`` is known while the program is wired."""
    return isinstance(dim, int)


def is_ragged(dim: Dim) -> bool:
    """Whether ``dim`` has a ragged symbol in it."""
    return isinstance(dim, Expression) and any(
        free.name.endswith(_RAGGED) for free in dim.free_symbols
    )


def ceil_div(dim: Dim, divisor: int) -> Dim:
    """Return ``ceil(dim / divisor)``."""
    return ceiling(dim, divisor)


def at_least_one(dim: Dim) -> Dim:
    """Return 1 where ``dim`` is positive, else 0."""
    return flag(dim)


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of ``dims``, 1 for none; ``min(1, D) * D`` is D."""
    whole = product_of(dims)
    if not isinstance(whole, Product):
        return whole
    flags = [each for each in whole.powers if isinstance(each, AtLeastOne)]
    if not flags:
        return whole
    # A power of a flag is the flag. All are looked at before one is left out, in no order.
    powers = whole.powers | dict.fromkeys(flags, 1)
    others = [base for base, exponent in powers.items() if exponent > 0]
    for base in flags:
        if any(other is not base and _vanishes_with(other, base.dim) for other in others):
            del powers[base]
    return product_of((whole.coefficient, *[each**power for each, power in powers.items()]))


def total(dims: Iterable[Dim]) -> Dim:
    """Return the sum of ``dims``; of thousands of expressions as cheaply as of two."""
    return sum_of(dims)


@lru_cache(maxsize=1 << 16)
def dim_text(dim: Dim) -> str:
    """Return ``dim`` as shapes and reports show it, such as ``ceil(D_route[3]/16)``."""
    return str(dim)


@lru_cache(maxsize=1 << 16)
def short_text(dim: Dim) -> str:
    """Return ``dim`` with long sums folded: ``sum(ceil(D_route[0..31]/16))``."""
    if not isinstance(dim, Sum | Product):
        return str(dim)
    # Only sympy's order of terms needs sympy.
    from fabric.values.algebra import folded_text

    return folded_text(dim._sympy_())


def is_polynomial_in(dim: Dim, symbols: frozenset[Symbol]) -> bool:
    """Whether ``symbols`` stand in sums and products only."""
    if isinstance(dim, Sum):
        return all(is_polynomial_in(rest, symbols) for rest in dim.terms)
    if isinstance(dim, Product):
        return all(
            is_polynomial_in(base, symbols)
            and (exponent > 0 or symbols.isdisjoint(base.free_symbols))
            for base, exponent in dim.powers.items()
        )
    return isinstance(dim, Symbol) or symbols.isdisjoint(free_symbols(dim))


def _vanishes_with(factor: Expression, dim: Expression) -> bool:
    """Whether ``factor`` is 0 wherever the non-negative ``dim`` is."""
    if factor == dim:
        return True
    if isinstance(factor, CeilDiv | AtLeastOne):
        return _vanishes_with(factor.dim, dim)
    return isinstance(factor, Product) and any(
        exponent > 0 and _vanishes_with(base, dim) for base, exponent in factor.powers.items()
    )

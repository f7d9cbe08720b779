"""Roundings of sizes that data decide: quotients rounded up, and whether there is anything.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, Table 7 (Reshape, Promote).
"""

from __future__ import annotations

from collections.abc import Mapping

# Any: sympy has no types.
from typing import Any, Final

from typing_extensions import override

from fabric.values.expression import (
    Expression,
    Number,
    Symbol,
    Value,
    factors_of,
    product_of,
    sum_of,
    terms_of,
)

__all__ = ["AtLeastOne", "CeilDiv", "ceiling", "flag"]


class CeilDiv(Expression):
    """``ceil(dim / divisor)`` of a non-negative ``dim``, for an integer ``divisor`` from 1 on."""

    __slots__ = ("dim", "divisor")

    def __init__(self, dim: Expression, divisor: int) -> None:
        """Be what ``ceiling`` cannot write in a simpler way."""
        super().__init__((dim, divisor), (dim,), is_whole=True)
        self.dim: Final = dim
        self.divisor: Final = divisor

    @override
    def _sympy_(self) -> Any:
        from fabric.values import algebra

        return algebra.CeilDiv(self.dim, self.divisor)

    @override
    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        return ceiling(self.dim.with_sizes(sizes), self.divisor)


class AtLeastOne(Expression):
    """1 where the non-negative ``dim`` is positive, else 0."""

    __slots__ = ("dim",)

    def __init__(self, dim: Expression) -> None:
        """Be what ``flag`` cannot write in a simpler way."""
        super().__init__(dim, (dim,), is_whole=True)
        self.dim: Final = dim

    @override
    def _sympy_(self) -> Any:
        from fabric.values import algebra

        return algebra.AtLeastOne(self.dim)

    @override
    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        return flag(self.dim.with_sizes(sizes))


def ceiling(dim: Value, divisor: int) -> Value:
    """Return ``ceil(dim / divisor)``; what ``divisor`` divides stands outside."""
    if not isinstance(dim, Expression):
        return -(-dim // divisor)
    if isinstance(dim, AtLeastOne) or (divisor == 1 and dim.is_whole):
        return dim
    if isinstance(dim, CeilDiv):
        return ceiling(dim.dim, dim.divisor * divisor)
    if divisor == 1:
        return CeilDiv(dim, 1)
    number, terms = terms_of(dim)
    quotient, rest = divmod(number, divisor) if isinstance(number, int) else (0, number)
    outside: list[Value] = [quotient]
    inside: list[Value] = [rest]
    for term, coefficient in terms.items():
        divided = isinstance(coefficient, int) and term.is_whole and not coefficient % divisor
        if divided:
            outside.append(product_of((coefficient // divisor, term)))
        else:
            inside.append(product_of((coefficient, term)))
    if quotient == 0 and len(outside) == 1:
        return CeilDiv(dim, divisor)
    return sum_of((*outside, ceiling(sum_of(inside), divisor)))


def flag(dim: Value) -> Value:
    """Return 1 where ``dim`` is positive, else 0."""
    if not isinstance(dim, Expression):
        return int(dim > 0)
    if isinstance(dim, AtLeastOne):
        return dim
    if isinstance(dim, CeilDiv):
        return flag(dim.dim)
    coefficient, powers = factors_of(dim)
    if coefficient > 0 and coefficient != 1 and len(powers) == 1:
        return flag(product_of([base**power for base, power in powers.items()]))
    return AtLeastOne(dim)

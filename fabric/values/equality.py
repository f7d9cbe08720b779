"""Whether two dimensions are equal, as far as that can be told while a program is wired."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from fabric.values.expression import Expression, Product, Sum, Symbol, product_of, sum_of
from fabric.values.rounding import AtLeastOne, CeilDiv, ceiling, flag

if TYPE_CHECKING:
    from fabric.values.dims import Dim
    from fabric.values.expression import Value

__all__ = ["same", "undecided_in"]

_undecided: Final[ContextVar[list[tuple[Dim, Dim]] | None]] = ContextVar("undecided", default=None)


def same(left: Dim, right: Dim) -> bool | None:
    """Whether two dimensions are equal: True, False, or None where it cannot be decided.

    What could not be decided is noted for the program that is being wired.
    """
    if left is right:
        return True
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if left == right:
        return True
    decided = _is_zero(left, right)
    if decided is None and (pairs := _undecided.get()) is not None:
        pairs.append((left, right))
    return decided


@contextlib.contextmanager
def undecided_in() -> Iterator[list[tuple[Dim, Dim]]]:
    """Collect the pairs of dimensions that ``same`` cannot decide inside."""
    pairs: list[tuple[Dim, Dim]] = []
    token = _undecided.set(pairs)
    try:
        yield pairs
    finally:
        _undecided.reset(token)


@lru_cache(maxsize=1 << 14)
def _is_zero(left: Dim, right: Dim) -> bool | None:
    if isinstance(left, Symbol) and isinstance(right, Symbol):
        return None
    # Every symbol and rounding is at least 0: terms of one sign beside a number cannot cancel it.
    difference = _expanded(left - right)
    if not isinstance(difference, Expression):
        return not difference
    if not isinstance(difference, Sum):
        return None
    signs = {coefficient > 0 for coefficient in difference.terms.values()}
    constant = difference.number
    return False if constant and signs == {constant > 0} else None


def _expanded(value: Value) -> Value:
    """Return ``value`` with products of sums multiplied out, inside of roundings, too."""
    if isinstance(value, Sum):
        terms = [product_of((each, _expanded(rest))) for rest, each in value.terms.items()]
        return sum_of((value.number, *terms))
    if isinstance(value, CeilDiv):
        return ceiling(_expanded(value.dim), value.divisor)
    if isinstance(value, AtLeastOne):
        return flag(_expanded(value.dim))
    if not isinstance(value, Product):
        return value
    result: Value = value.coefficient
    for base, exponent in value.powers.items():
        if exponent < 0:
            result = _times(result, base**exponent)
        for _ in range(exponent):
            result = _times(result, _expanded(base))
    return result


def _times(left: Value, right: Value) -> Value:
    return sum_of([product_of((one, other)) for one in _addends(left) for other in _addends(right)])


def _addends(value: Value) -> list[Value]:
    if not isinstance(value, Sum):
        return [value]
    terms = [product_of((coefficient, rest)) for rest, coefficient in value.terms.items()]
    return [value.number, *terms] if value.number else terms

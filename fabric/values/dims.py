"""Dimensions of streams and tiles: integers, or sympy expressions where data decide.

sympy takes long to import, so nothing here imports it before the first symbol is made.
Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from typing_extensions import override

from fabric.arguments.checks import Check, Unfit
from fabric.telling.wording import folded_sum


class _DimCheck(Check):
    """A size: an integer, or an expression of symbols."""

    text, plural = "an integer of at least 0 or a symbol", "integers of at least 0 or symbols"

    def __init__(self) -> None:
        self._seen: set[type] = set()

    @override
    def settle(self, value: object) -> object:
        if isinstance(value, Fraction) or (
            hasattr(value, "free_symbols") and not getattr(value, "is_Integer", False)
        ):
            self._seen.add(value.__class__)
            return value
        try:
            size = -1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            raise Unfit from None
        if size < 0:
            raise Unfit
        return size

    @override
    def test(self, value: str, names: dict[str, object]) -> str:
        names |= {"int": int, "expressions": self._seen}
        kind = f"{value}.__class__"
        return f"({value} >= 0 if {kind} is int else {kind} in expressions)"


if TYPE_CHECKING:
    import sympy

    Symbol: TypeAlias = sympy.Symbol
    Expression: TypeAlias = sympy.Expr
    Dim: TypeAlias = int | Expression
else:
    Symbol: TypeAlias = object
    Expression: TypeAlias = object
    Dim: TypeAlias = Annotated[Any, _DimCheck()]

__all__ = [
    "Dim",
    "Expression",
    "Symbol",
    "at_least_one",
    "ceil_div",
    "dim_text",
    "free_symbols",
    "is_ragged",
    "is_static",
    "product",
    "same",
    "short_text",
    "symbol",
    "total",
    "undecided_in",
]

_RAGGED: Final = "~"
"""Marks the names of ragged symbols, which have a value of their own for every outer element."""

_undecided: ContextVar[list[tuple[Dim, Dim]] | None] = ContextVar("undecided", default=None)


def symbol(name: str, *, ragged: bool = False) -> Dim:
    """Return the non-negative integer symbol ``name``; a ragged one is printed with ``~``."""
    import sympy

    result: Dim = sympy.Symbol(name + _RAGGED if ragged else name, integer=True, nonnegative=True)
    return result


def free_symbols(dim: Dim) -> frozenset[Symbol]:
    """Return the symbols in ``dim``, none for a number."""
    return frozenset(getattr(dim, "free_symbols", ()))


def is_static(dim: Dim) -> bool:
    """Whether ``dim`` is known while the program is wired."""
    return isinstance(dim, int)


def is_ragged(dim: Dim) -> bool:
    """Whether ``dim`` has a ragged symbol in it."""
    return any(free.name.endswith(_RAGGED) for free in free_symbols(dim))


def ceil_div(dim: Dim, divisor: int) -> Dim:
    """Return ``ceil(dim / divisor)``."""
    if isinstance(dim, int | Fraction):
        return -(-dim // divisor)
    from fabric.values.rounding import CeilDiv

    return _number(CeilDiv(dim, divisor))


def at_least_one(dim: Dim) -> Dim:
    """Return 1 where ``dim`` is positive, else 0."""
    if isinstance(dim, int | Fraction):
        return int(dim > 0)
    from fabric.values.rounding import AtLeastOne

    return _number(AtLeastOne(dim))


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of ``dims``, 1 for none; ``min(1, D) * D`` is D."""
    dims = tuple(dims)
    if all(isinstance(dim, int | Fraction) for dim in dims):
        return math.prod(dims)
    import sympy

    from fabric.values.rounding import AtLeastOne, vanishes_with

    factors = list(sympy.Mul.make_args(sympy.Mul(*dims)))
    for factor in [each for each in factors if each.has(AtLeastOne)]:
        flag, _ = factor.as_base_exp()
        if isinstance(flag, AtLeastOne):
            factors.remove(factor)
            if not any(vanishes_with(other, flag.args[0]) for other in factors):
                factors.append(flag)
    return _number(sympy.Mul(*factors))


def total(dims: Iterable[Dim]) -> Dim:
    """Return the sum of ``dims``; of thousands of expressions as cheaply as of two."""
    dims = tuple(dims)
    if any(hasattr(dim, "free_symbols") for dim in dims):
        import sympy

        return _number(sympy.Add(*dims))
    return sum(dims)


def same(left: Dim, right: Dim) -> bool | None:
    """Whether two dimensions are equal: True, False, or None where it cannot be decided.

    What could not be decided is noted for the program that is being wired.
    """
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


@lru_cache(maxsize=1 << 16)
def dim_text(dim: Dim) -> str:
    """Return ``dim`` as shapes and reports show it, such as ``ceil(D_route[3]/16)``."""
    return str(dim)


@lru_cache(maxsize=1 << 16)
def short_text(dim: Dim) -> str:
    """Return ``dim`` with long sums folded: ``sum(ceil(D_route[0..31]/16))``."""
    if isinstance(dim, int | Fraction):
        return str(dim)
    if dim.is_Add:
        return folded_sum([short_text(term) for term in dim.as_ordered_terms()])
    if dim.is_Mul and any(factor.is_Add for factor in dim.args):
        factors = [
            f"({short_text(factor)})" if factor.is_Add else dim_text(factor)
            for factor in dim.as_ordered_factors()
        ]
        return "*".join(factors)
    return dim_text(dim)


@lru_cache(maxsize=1 << 14)
def _is_zero(left: Dim, right: Dim) -> bool | None:
    if all(getattr(dim, "is_Symbol", False) for dim in (left, right)):
        return None
    import sympy

    # Every symbol and rounding is at least 0: terms of one sign beside a number cannot cancel it.
    difference = sympy.expand(left - right)
    constant, terms = difference.as_coeff_add()
    if not terms:
        return not constant
    signs = {term.as_coeff_Mul()[0] > 0 for term in terms}
    return False if constant and signs == {constant > 0} else None


def _number(expression: sympy.Expr) -> Dim:
    """Return an expression, or the integer it has become."""
    return int(expression) if expression.is_Integer else expression

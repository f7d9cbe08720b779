"""Dimensions of streams and tiles: integers, or expressions if they depend on data.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, NoReturn, TypeAlias

from fabric.graph.arguments.checks import Alias, Check, Unfit
from fabric.graph.arguments.described import refuse
from fabric.graph.values.expression import (
    CeilDiv,
    Expression,
    Monomial,
    Number,
    Polynomial,
    Symbol,
    polynomial,
    product_of,
    total,
)
from fabric.messages.place import Place
from fabric.messages.text import folded_sum


def _size(value: object) -> object:
    try:
        size = -1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        if isinstance(value, Fraction | Expression):
            return value
        raise Unfit from None
    if size < 0:
        raise Unfit
    return size


_SIZE: Final = Check(
    "an integer of at least 0 or a symbol", "integers of at least 0 or symbols", _size
)
"""A size: an integer, or an expression of symbols."""


if TYPE_CHECKING:
    # Any for an expression: a dimension that numpy uses is an integer.
    Dim: TypeAlias = int | Any
else:
    Dim = Alias("Dim", Annotated[Any, _SIZE], __name__, f"A size: {_SIZE.text}.")


_RAGGED: Final = "~"
"""The last character in the name of a ragged symbol, which has a value for each outer element."""


def symbol(name: str, *, ragged: bool = False) -> Symbol:
    """Return the non-negative integer symbol ``name``; a ragged symbol is printed with ``~``."""
    return Symbol(name + _RAGGED if ragged else name)


def free_symbols(dim: Dim) -> frozenset[Symbol]:
    return dim.free_symbols if isinstance(dim, Expression) else frozenset()


def is_static(dim: Dim) -> bool:
    """Whether ``dim`` is an integer, which does not depend on data."""
    return isinstance(dim, int)


def is_ragged(dim: Dim) -> bool:
    """Whether ``dim`` contains a ragged symbol."""
    return isinstance(dim, Expression) and any(
        free.name.endswith(_RAGGED) for free in dim.free_symbols
    )


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of ``dims``, simplified: ``min(1, D) * D`` is D."""
    whole = product_of(dims)
    if not isinstance(whole, Polynomial):
        return whole
    terms: dict[Monomial, Number] = {}
    for monomial, coefficient in whole.terms.items():
        kept = _without_flags(monomial)
        terms[kept] = terms.get(kept, 0) + coefficient
    return polynomial(terms)


def _without_flags(monomial: Monomial) -> Monomial:
    """Remove flags that another factor implies, and powers of flags."""
    factors = [base for base, power in monomial if power > 0]
    flags = [base for base in factors if isinstance(base, CeilDiv) and base.divisor is None]
    if not flags:
        return monomial
    powers = dict(monomial) | dict.fromkeys(flags, 1)
    for flag in flags:
        if any(_implies(other, flag) and not _implies(flag, other) for other in factors):
            del powers[flag]
    return frozenset(powers.items())


def _implies(factor: Expression, flag: Expression) -> bool:
    """Whether ``flag`` is 1 if ``factor`` is not 0."""
    if not isinstance(flag, CeilDiv) or flag.divisor is not None:
        return False
    terms = flag.dim.terms
    return min(terms.values()) > 0 and any(
        _vanishes_with(factor, polynomial({monomial: 1})) for monomial in terms
    )


def _vanishes_with(factor: Expression, dim: Dim) -> bool:
    """Whether ``factor`` is 0 if the non-negative ``dim`` is 0."""
    if factor == dim:
        return True
    if isinstance(factor, CeilDiv):
        return _vanishes_with(factor.dim, dim)
    return isinstance(factor, Polynomial) and all(
        any(power > 0 and _vanishes_with(base, dim) for base, power in monomial)
        for monomial in factor.terms
    )


@lru_cache(maxsize=1 << 16)
def dim_text(dim: Dim) -> str:
    """Return ``dim`` as shapes and reports show it, such as ``ceil(D_route[3]/16)``."""
    return str(dim)


@lru_cache(maxsize=1 << 16)
def short_text(dim: Dim) -> str:
    """Return ``dim`` with long sums folded: ``sum(ceil(D_route[0..31]/16))``."""
    return folded_sum(dim.texts()) if isinstance(dim, Polynomial) else str(dim)


def is_polynomial_in(dim: Dim, symbols: frozenset[Symbol]) -> bool:
    """Whether ``symbols`` occur in sums and products only."""
    return not isinstance(dim, Expression) or all(
        symbols.isdisjoint(base.free_symbols) or (isinstance(base, Symbol) and power > 0)
        for monomial in dim.terms
        for base, power in monomial
    )


_undecided: Final[ContextVar[list[tuple[Dim, Dim]] | None]] = ContextVar("undecided", default=None)


def same(left: Dim, right: Dim) -> bool | None:
    """Whether two dimensions are equal: True, False, or None if undecidable.

    An undecidable pair is recorded for the program that is being wired.
    """
    if left is right:
        return True
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if left == right:
        return True
    decided = _are_equal(left, right)
    if decided is None and (pairs := _undecided.get()) is not None:
        pairs.append((left, right))
    return decided


@contextlib.contextmanager
def undecided_in() -> Iterator[list[tuple[Dim, Dim]]]:
    """Collect the pairs of dimensions that ``same`` cannot decide inside of the block."""
    pairs: list[tuple[Dim, Dim]] = []
    token = _undecided.set(pairs)
    try:
        yield pairs
    finally:
        _undecided.reset(token)


@lru_cache(maxsize=1 << 14)
def _are_equal(left: Dim, right: Dim) -> bool | None:
    difference = left - right
    if not isinstance(difference, Expression):
        return not difference
    # Symbols and roundings are at least 0, so terms with the sign of a constant do not cancel it.
    signs = {number > 0 for monomial, number in difference.terms.items() if monomial}
    constant = difference.terms.get(frozenset(), 0)
    return False if constant and signs == {constant > 0} else None


Totals: TypeAlias = Mapping[Expression, int]
"""The values of sizes, and of sums of sizes."""


def is_total(dim: Dim) -> bool:
    """Whether ``dim`` is a number of elements: a sum of symbols or of products of symbols."""
    return isinstance(dim, Expression) and all(
        coefficient == 1
        and monomial
        and all(isinstance(base, Symbol) and power > 0 for base, power in monomial)
        for monomial, coefficient in dim.terms.items()
    )


def parts_of(total: Expression) -> tuple[Dim, ...]:
    return tuple(polynomial({monomial: number}) for monomial, number in total.terms.items())


def with_totals(dim: Dim, totals: Totals) -> Dim:
    """Return ``dim`` with numbers in place of the ``totals`` that it contains."""
    for parts, size in totals.items():
        if not isinstance(dim, Expression):
            return dim
        often = min(dim.terms.get(monomial, 0) for monomial in parts.terms)
        if often > 0:
            dim = total((dim, often * size, product_of((-often, parts))))
    return dim


def least_of(dim: Dim) -> int:
    """Return a lower bound of ``dim`` for sizes of at least 0; 0 if unknown."""
    if not isinstance(dim, Expression) or not _only_grows(dim):
        return dim if isinstance(dim, int) else 0
    value: Dim = dim.with_sizes(dict.fromkeys(dim.free_symbols, 0))
    return max(int(-(-value // 1)), 0)


def _only_grows(dim: Expression) -> bool:
    if isinstance(dim, CeilDiv):
        return _only_grows(dim.dim)
    return isinstance(dim, Symbol) or all(
        not monomial
        or (coefficient > 0 and all(power > 0 and _only_grows(base) for base, power in monomial))
        for monomial, coefficient in dim.terms.items()
    )


class Claim(NamedTuple):
    """The size that a program assumes for a dimension of a stream.

    Attributes:
        dimension: counted from the innermost.
        found: the size that the operators compute.
        place: the line with the assumption.
    """

    stream: str
    dimension: int
    found: Dim
    assumed: Dim
    place: Place

    def refuse(self, size: int, expected: int, group: int | None = None) -> NoReturn:
        """Refuse the ``size`` in a run, or in a ``group`` of a run, counted from 1."""
        where = "" if group is None else f" in group {group:,}"
        text = dim_text(self.assumed)
        value = text if text == str(expected) else f"{text}, here {expected:,}"
        refuse(
            f"{self.stream}: dimension {self.dimension} ({dim_text(self.found)}) is "
            f"{size:,}{where}: expected {value}, as the program assumes",
            place=self.place,
        )

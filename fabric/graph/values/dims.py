"""Dimensions of streams and tiles: integers, or expressions if data decide.

Source: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias

from fabric.graph.arguments.checks import Alias, Check, Unfit
from fabric.graph.values.expression import (
    AtLeastOne,
    CeilDiv,
    Expression,
    Product,
    Sum,
    Symbol,
    ceiling,
    flag,
    product_of,
    sum_of,
    terms_of,
)
from fabric.messages.telling.errors import ProgramError
from fabric.messages.telling.place import Place

if TYPE_CHECKING:
    from fabric.graph.values.expression import Value


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
    # Any for an expression: where there are data, all dimensions are the integers numpy wants.
    Dim: TypeAlias = int | Any
else:
    Dim = Alias("Dim", Annotated[Any, _SIZE], __name__, f"A size: {_SIZE.text}.")


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
    from fabric.graph.values.algebra import folded_text

    return folded_text(dim._sympy_())


def is_polynomial_in(dim: Dim, symbols: frozenset[Symbol]) -> bool:
    """Whether ``symbols`` occur in sums and products only."""
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
    """Return ``dim`` with numbers for the ``totals`` whose parts it contains."""
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
    """Return a lower bound of ``dim`` for sizes of at least 0; 0 if unknown."""
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


class Claim(NamedTuple):
    """One dimension with the size the program says it has.

    Attributes:
        stream: its name.
        dimension: counted from the innermost.
        found: what the operators can tell.
        assumed: what the program says.
        place: where it says so.
    """

    stream: str
    dimension: int
    found: Dim
    assumed: Dim
    place: Place

    def refuted_by(self, size: int, expected: int, group: int | None = None) -> ProgramError:
        """Return the error for a size that is not the ``expected`` one.

        Args:
            size: what the run had.
            expected: the value of ``assumed`` in this run.
            group: which of the dimension's groups it was, from 1; None for the only one.
        """
        where = "" if group is None else f" in group {group:,}"
        said = dim_text(self.assumed)
        value = said if said == str(expected) else f"{said}, here {expected:,}"
        return ProgramError(
            f"{self.stream}: dimension {self.dimension} ({dim_text(self.found)}) is "
            f"{size:,}{where}: expected {value}, as the program assumes",
            file=self.place.file,
            line=self.place.line,
        )

"""Sizes that depend on data: polynomials of symbols and roundings, in a canonical form.

Importing sympy takes longer than wiring a program, so only ``sympy.sympify(size)`` imports it.

Source of roundings: Streaming Tensor Programs, arXiv 2511.07776v2, Table 7 (Reshape, Promote).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction

# Any: operands, sympy, and sizes, which are integers if numpy uses them.
from typing import Any, Final, TypeAlias

from typing_extensions import override

Number: TypeAlias = int | Fraction
"""An ``int`` if it is whole."""

Value: TypeAlias = "Number | Expression"
"""A known size, or an expression."""

Monomial: TypeAlias = "frozenset[tuple[Expression, int]]"
"""Factors with exponents other than 0. A sum is a factor only with a negative exponent."""


def _operation(combine: Callable[[Expression, Value], Value]) -> Callable[[Any, object], Value]:
    """Return the method of an operator, such as ``__add__``, for operands that are sizes."""

    def method(self: Expression, other: object) -> Value:
        value = _value(other)
        return NotImplemented if value is None else combine(self, value)

    return method


def _value(other: object) -> Value | None:
    if isinstance(other, Expression | int | Fraction):
        return other
    if isinstance(other, float) and math.isfinite(other):
        return _number(Fraction(other))
    try:
        return operator.index(other)  # type: ignore[arg-type]
    except TypeError:
        return None


_CONSTANT: Final[Monomial] = frozenset()
_NO_SYMBOLS: Final[frozenset[Symbol]] = frozenset()


def _quotient(dividend: Expression, divisor: Value) -> Value:
    """Return ``dividend / divisor``: one term, if the dividend is this term times the divisor."""
    if not isinstance(divisor, Expression):
        return product_of((dividend, 1 / Fraction(divisor)))
    if len(dividend.terms) == len(divisor.terms) > 1:
        first = polynomial(dict([next(iter(divisor.terms.items()))]))
        for monomial, coefficient in dividend.terms.items():
            factor = product_of((polynomial({monomial: coefficient}), _power(first, -1)))
            if product_of((factor, divisor)) == dividend:
                return factor
    return product_of((dividend, divisor**-1))


class Expression:
    """An immutable size that is unknown while a program is wired."""

    __slots__ = ("_hash", "_key", "free_symbols")

    def __init__(self, key: Hashable, parts: Iterable[Expression]) -> None:
        self._key: Final = key
        self._hash: Final = hash((self.__class__, key))
        first, *others = [part.free_symbols for part in parts] or [_NO_SYMBOLS]
        self.free_symbols: frozenset[Symbol] = first.union(*others) if others else first

    @property
    def terms(self) -> Mapping[Monomial, Number]:
        """Coefficients other than 0; the constant belongs to the empty monomial."""
        return {frozenset(((self, 1),)): 1}

    @override
    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Expression)
            and self.__class__ is other.__class__
            and self._hash == other._hash
            and self._key == other._key
        )

    @override
    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the hash, which differs between processes."""
        return self.__class__, tuple(getattr(self, name) for name in self.__class__.__slots__)

    @override
    def __repr__(self) -> str:
        return str(self)

    def _sympy_(self) -> Any:
        """Return the size for ``sympy.sympify``, with symbols that are integers of at least 0."""
        import sympy

        match self:
            case Symbol():
                return sympy.Symbol(self.name, integer=True, nonnegative=True)
            case CeilDiv(divisor=None):
                # Min(1, dim) is equal for such integers, but sympy takes 16 ms to make it.
                return sympy.sign(self.dim)
            case CeilDiv():
                return sympy.ceiling(sympy.sympify(self.dim) / self.divisor)
        terms = [
            sympy.Mul(coefficient, *[sympy.Pow(base, power) for base, power in monomial])
            for monomial, coefficient in self.terms.items()
        ]
        return sympy.Add(*terms)

    def __neg__(self) -> Value:
        return product_of((-1, self))

    def __pow__(self, exponent: int) -> Value:
        if not isinstance(exponent, int):
            return NotImplemented
        coefficient, factors = _factors(self)
        powers = {base: power * exponent for base, power in factors}
        return _product(Fraction(coefficient) ** exponent, powers)

    __add__ = __radd__ = _operation(lambda left, right: total((left, right)))
    __mul__ = __rmul__ = _operation(lambda left, right: product_of((left, right)))
    __sub__ = _operation(lambda left, right: total((left, product_of((-1, right)))))
    __rsub__ = _operation(lambda left, right: total((product_of((-1, left)), right)))
    __truediv__ = _operation(_quotient)
    __rtruediv__ = _operation(lambda left, right: product_of((left**-1, right)))

    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        """Return the size after replacing symbols by their ``sizes``."""
        raise NotImplementedError


class Symbol(Expression):
    """A named size of at least 0. Symbols with equal names are equal."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__(name, ())
        self.name: Final = name
        self.free_symbols = frozenset((self,))

    @override
    def __str__(self) -> str:
        return self.name

    @override
    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        return sizes.get(self, self)


class Polynomial(Expression):
    """A sum of terms, or one term that is not a symbol or a rounding alone."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, Number]) -> None:
        bases = [base for monomial in terms for base, _ in monomial]
        super().__init__(frozenset(terms.items()), bases)
        self.terms = terms  # type: ignore[misc]  # a slot in place of the property

    @override
    def __str__(self) -> str:
        return " + ".join(self.texts()).replace(" + -", " - ")

    def texts(self) -> list[str]:
        """Return the terms as text, ordered by their names. The constant is last."""
        ordered = sorted(self.terms.items(), key=lambda term: _order(term[0]))
        return [_term_text(monomial, coefficient) for monomial, coefficient in ordered]

    @override
    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        return total(
            product_of((term, *[_power(base.with_sizes(sizes), power) for base, power in monomial]))
            for monomial, term in self.terms.items()
        )


def _order(monomial: Monomial) -> list[tuple[tuple[object, ...], int]]:
    return [*sorted((_natural(base), -power) for base, power in monomial), (_LAST, 0)]


def _natural(base: Expression) -> tuple[object, ...]:
    return tuple(int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(base)))


_LAST: Final = (chr(0x10FFFF),)


def _term_text(monomial: Monomial, coefficient: Number) -> str:
    above: list[str] = []
    below: list[str] = []
    for base, power in sorted(monomial, key=lambda factor: _natural(factor[0])):
        text = f"({base})" if isinstance(base, Polynomial) else str(base)
        (above if power > 0 else below).append(text + f"**{abs(power)}" * (abs(power) != 1))
    if abs(coefficient.numerator) != 1 or not above:
        above.insert(0, str(abs(coefficient.numerator)))
    if coefficient.denominator != 1:
        below.insert(0, str(coefficient.denominator))
    divided = "*".join(below) if len(below) < 2 else f"({'*'.join(below)})"
    text = "-" * (coefficient < 0) + "*".join(above)
    return f"{text}/{divided}" if below else text


def polynomial(terms: Mapping[Monomial, Number]) -> Value:
    """Return the sum of ``terms``: a number, a symbol, a rounding or a polynomial."""
    kept = {monomial: _number(number) for monomial, number in terms.items() if number}
    if len(kept) == 1:
        ((monomial, coefficient),) = kept.items()
        if not monomial:
            return coefficient
        ((base, power), *others) = monomial
        if coefficient == power == 1 and not others:
            return base
    return Polynomial(kept) if kept else 0


def total(values: Iterable[Value]) -> Value:
    number: Number = 0
    terms: dict[Monomial, Number] = {}
    for value in values:
        if not isinstance(value, Expression):
            number += value
            continue
        for monomial, coefficient in value.terms.items():
            terms[monomial] = terms.get(monomial, 0) + coefficient
    terms[_CONSTANT] = terms.get(_CONSTANT, 0) + number
    return polynomial(terms)


def product_of(values: Iterable[Value]) -> Value:
    coefficient: Number = 1
    powers: dict[Expression, int] = {}
    for value in values:
        if not isinstance(value, Expression):
            coefficient *= value
            continue
        more, factors = _factors(value)
        coefficient *= more
        for base, power in factors:
            powers[base] = powers.get(base, 0) + power
    return _product(coefficient, powers)


def _factors(value: Expression) -> tuple[Number, Iterable[tuple[Expression, int]]]:
    """Return the coefficient and the factors of a single term; a sum is its own factor."""
    if isinstance(value, Polynomial) and len(value.terms) == 1:
        ((monomial, coefficient),) = value.terms.items()
        return coefficient, monomial
    return 1, ((value, 1),)


def _product(coefficient: Number, powers: dict[Expression, int]) -> Value:
    factors: list[tuple[Expression, int]] = []
    sums: list[Polynomial] = []
    for base, power in powers.items():
        if isinstance(base, Polynomial) and power > 0:
            sums += [base] * power
        elif power:
            factors.append((base, power))
    terms: dict[Monomial, Number] = {frozenset(factors): coefficient}
    for factor in sums:
        expanded: dict[Monomial, Number] = {}
        for left, number in terms.items():
            for right, other in factor.terms.items():
                both = _merged(left, right)
                expanded[both] = expanded.get(both, 0) + number * other
        terms = expanded
    return polynomial(terms)


def _merged(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for base, power in right:
        powers[base] = powers.get(base, 0) + power
    return frozenset(factor for factor in powers.items() if factor[1])


def _power(value: Value, exponent: int) -> Value:
    if isinstance(value, Expression):
        return value**exponent
    # 0 to a negative power is 0, so that parts of a total of 0 are 0.
    return Fraction(value) ** exponent if value else 0


def _number(value: Number) -> Number:
    return value if isinstance(value, int) or value.denominator != 1 else value.numerator


def sympy_of(size: Any) -> Any:
    """Return an expression as an expression of sympy, and a number unchanged."""
    return size._sympy_() if isinstance(size, Expression) else size


class CeilDiv(Expression):
    """``ceil(dim / divisor)`` for a non-negative ``dim`` and an integer ``divisor`` of at least 1.

    Without a ``divisor`` it is a flag: 1 if ``dim`` is positive, else 0. This is the value for a
    divisor that is larger than all sizes.
    """

    __slots__ = ("dim", "divisor")

    def __init__(self, dim: Expression, divisor: int | None) -> None:
        super().__init__((dim, divisor), (dim,))
        self.dim: Final = dim
        self.divisor: Final = divisor

    @override
    def __str__(self) -> str:
        if self.divisor is None:
            return f"min(1, {self.dim})"
        dim = f"({self.dim})" if len(self.dim.terms) > 1 else str(self.dim)
        return f"ceil({dim}/{self.divisor})"

    @override
    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        return ceil_div(self.dim.with_sizes(sizes), self.divisor)


def ceil_div(dim: Any, divisor: int | None) -> int | Any:
    """Return ``ceil(dim / divisor)``; without a divisor, 1 if ``dim`` is positive and else 0."""
    if not isinstance(dim, Expression):
        return int(dim > 0) if divisor is None else -(-dim // divisor)
    if isinstance(dim, CeilDiv):
        if dim.divisor is None:
            return dim
        return ceil_div(dim.dim, None if divisor is None else dim.divisor * divisor)
    if divisor is None:
        return _flag(dim)
    # Terms that the divisor divides are not rounded.
    outside: dict[Monomial, Number] = {}
    inside: dict[Monomial, Number] = {}
    for monomial, coefficient in dim.terms.items():
        quotient, rest = 0, coefficient
        if isinstance(coefficient, int) and all(power > 0 for _, power in monomial):
            quotient, rest = divmod(coefficient, divisor)
            if rest and monomial:
                quotient, rest = 0, coefficient
        outside[monomial], inside[monomial] = quotient, rest
    if not any(outside.values()):
        return CeilDiv(dim, divisor)
    return total((polynomial(outside), ceil_div(polynomial(inside), divisor)))


def _flag(dim: Expression) -> int | Any:
    ((monomial, coefficient), *others) = dim.terms.items()
    is_multiple = not others and coefficient > 0 and coefficient != 1
    return ceil_div(polynomial({monomial: 1}), None) if is_multiple else CeilDiv(dim, None)


def at_least_one(dim: Any) -> int | Any:
    """Return 1 if ``dim`` is positive, else 0."""
    return ceil_div(dim, None)

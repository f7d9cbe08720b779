"""Expressions of sizes that data decide: sums and products of symbols and roundings.

A program makes thousands of expressions, so they only collect terms and factors. Other algebra is
left to sympy, which takes long to import.

Source of roundings: Streaming Tensor Programs, arXiv 2511.07776v2, Table 7 (Reshape, Promote).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction

# Any: sympy has no types.
from typing import Any, Final, TypeAlias

from typing_extensions import override

from fabric.messages.telling.wording import ceiling_text, flag_text

Number: TypeAlias = int | Fraction
"""An ``int`` where it is whole."""

Value: TypeAlias = "Number | Expression"
"""A size: known, or not."""


def _operation(combine: Callable[[Expression, Value], Value]) -> Callable[[Any, object], Value]:
    """Return the method of an operator: sizes are combined, anything else is not known."""

    def method(self: Expression, other: object) -> Value:
        value = _value(other)
        return NotImplemented if value is None else combine(self, value)

    return method


def _value(other: object) -> Value | None:
    """Return an operand of arithmetic; None if it is not a size."""
    if isinstance(other, Expression | int | Fraction):
        return other
    if isinstance(other, float) and math.isfinite(other):
        return _number(Fraction(other))
    try:
        return operator.index(other)  # type: ignore[arg-type]
    except TypeError:
        return None


_NONE: Final[frozenset[Symbol]] = frozenset()


class Expression:
    """An immutable size that is not known while a program is wired."""

    __slots__ = ("_hash", "_key", "free_symbols", "is_whole")

    def __init__(self, key: Hashable, parts: Iterable[Expression], *, is_whole: bool) -> None:
        self._key: Final = key
        self._hash: Final = hash((self.__class__, key))
        first, *others = [part.free_symbols for part in parts] or [_NONE]
        self.free_symbols: frozenset[Symbol] = first.union(*others) if others else first
        self.is_whole: Final = is_whole

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
    def __str__(self) -> str:
        return str(self._sympy_())

    __repr__ = __str__

    def _sympy_(self) -> Any:
        raise NotImplementedError

    def __neg__(self) -> Value:
        """Return the negative."""
        return product_of((-1, self))

    def __pow__(self, exponent: int) -> Value:
        """Return an integer power."""
        if not isinstance(exponent, int):
            return NotImplemented
        if exponent == 1:
            return self
        coefficient, powers = factors_of(self)
        return _product(
            Fraction(coefficient) ** exponent,
            {base: power * exponent for base, power in powers.items()},
        )

    __add__ = __radd__ = _operation(lambda left, right: sum_of((left, right)))
    __mul__ = __rmul__ = _operation(lambda left, right: product_of((left, right)))
    __sub__ = _operation(lambda left, right: sum_of((left, product_of((-1, right)))))
    __rsub__ = _operation(lambda left, right: sum_of((product_of((-1, left)), right)))
    __truediv__ = _operation(lambda left, right: product_of((left, _inverse(right))))
    __rtruediv__ = _operation(lambda left, right: product_of((_inverse(left), right)))

    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        """Return the same with ``sizes`` in place of their symbols."""
        raise NotImplementedError


class Symbol(Expression):
    """A named size, at least 0; symbols with equal names are equal."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__(name, (), is_whole=True)
        self.name: Final = name
        self.free_symbols = frozenset((self,))

    @override
    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @override
    def _sympy_(self) -> Any:
        import sympy

        return sympy.Symbol(self.name, integer=True, nonnegative=True)

    @override
    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        return sizes.get(self, self)


class Sum(Expression):
    """Several terms, or a term and a number.

    Attributes:
        number: the term without symbols.
        terms: coefficients other than 0, by what they are of.
    """

    __slots__ = ("number", "terms")

    def __init__(self, number: Number, terms: dict[Expression, Number]) -> None:
        whole = isinstance(number, int) and all(
            isinstance(coefficient, int) and rest.is_whole for rest, coefficient in terms.items()
        )
        key = (number, frozenset(terms.items()))
        super().__init__(key, terms, is_whole=whole)
        self.number: Final = number
        self.terms: Final = terms

    @override
    def _sympy_(self) -> Any:
        import sympy

        terms = [sympy.Mul(each, rest) for rest, each in self.terms.items()]
        return sympy.Add(self.number, *terms)

    @override
    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        known = [
            product_of((coefficient, rest.with_sizes(sizes)))
            for rest, coefficient in self.terms.items()
        ]
        return sum_of((self.number, *known))


class Product(Expression):
    """A product of a coefficient and powers, whose bases are not products."""

    __slots__ = ("coefficient", "powers")

    def __init__(self, coefficient: Number, powers: dict[Expression, int]) -> None:
        whole = isinstance(coefficient, int) and all(
            exponent > 0 and base.is_whole for base, exponent in powers.items()
        )
        key = (coefficient, frozenset(powers.items()))
        super().__init__(key, powers, is_whole=whole)
        self.coefficient: Final = coefficient
        self.powers: Final = powers

    @override
    def _sympy_(self) -> Any:
        import sympy

        powers = [sympy.Pow(base, exponent) for base, exponent in self.powers.items()]
        return sympy.Mul(self.coefficient, *powers)

    @override
    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        known = [_power(base.with_sizes(sizes), exponent) for base, exponent in self.powers.items()]
        return product_of((self.coefficient, *known))


def sum_of(values: Iterable[Value]) -> Value:
    """Return the sum of ``values``, like terms together."""
    number: Number = 0
    terms: dict[Expression, Number] = {}
    for value in values:
        if not isinstance(value, Expression):
            number += value
            continue
        more, parts = terms_of(value)
        number += more
        for rest, coefficient in parts.items():
            terms[rest] = terms.get(rest, 0) + coefficient
    kept = {rest: _number(each) for rest, each in terms.items() if each}
    number = _number(number)
    if not kept:
        return number
    if len(kept) == 1 and not number:
        ((rest, coefficient),) = kept.items()
        return product_of((coefficient, rest))
    return Sum(number, kept)


def product_of(values: Iterable[Value]) -> Value:
    """Return the product of ``values``, like factors together; a sum times a number is a sum."""
    coefficient: Number = 1
    powers: dict[Expression, int] = {}
    for value in values:
        if not isinstance(value, Expression):
            coefficient *= value
            continue
        more, parts = factors_of(value)
        coefficient *= more
        for base, exponent in parts.items():
            powers[base] = powers.get(base, 0) + exponent
    return _product(coefficient, powers)


def terms_of(value: Expression) -> tuple[Number, dict[Expression, Number]]:
    """Return the constant of a sum, and its coefficients by term."""
    if isinstance(value, Sum):
        return value.number, value.terms
    if isinstance(value, Product) and value.coefficient != 1:
        rest = _product(1, value.powers)
        assert isinstance(rest, Expression)
        return 0, {rest: value.coefficient}
    return 0, {value: 1}


def factors_of(value: Expression) -> tuple[Number, dict[Expression, int]]:
    """Return ``value`` as a coefficient and exponents by bases."""
    if isinstance(value, Product):
        return value.coefficient, value.powers
    return 1, {value: 1}


def _product(coefficient: Number, powers: dict[Expression, int]) -> Value:
    coefficient = _number(coefficient)
    if not coefficient:
        return 0
    if 0 in powers.values():
        powers = {base: exponent for base, exponent in powers.items() if exponent}
    if not powers:
        return coefficient
    if len(powers) == 1:
        ((base, exponent),) = powers.items()
        if exponent == 1 and coefficient == 1:
            return base
        if exponent == 1 and isinstance(base, Sum):
            return Sum(
                _number(coefficient * base.number),
                {rest: _number(coefficient * each) for rest, each in base.terms.items()},
            )
    return Product(coefficient, powers)


def _inverse(value: Value) -> Value:
    return value**-1 if isinstance(value, Expression) else 1 / Fraction(value)


def _power(value: Value, exponent: int) -> Value:
    if isinstance(value, Expression):
        return value**exponent
    # A total of 0 has shares of 0.
    return Fraction(value) ** exponent if value else 0


def _number(value: Number) -> Number:
    return value if isinstance(value, int) or value.denominator != 1 else value.numerator


class CeilDiv(Expression):
    """``ceil(dim / divisor)`` of a non-negative ``dim``, for an integer ``divisor`` from 1 on."""

    __slots__ = ("dim", "divisor")

    def __init__(self, dim: Expression, divisor: int) -> None:
        super().__init__((dim, divisor), (dim,), is_whole=True)
        self.dim: Final = dim
        self.divisor: Final = divisor

    @override
    def __str__(self) -> str:
        return ceiling_text(str(self.dim), self.divisor, is_sum=isinstance(self.dim, Sum))

    __repr__ = __str__

    @override
    def _sympy_(self) -> Any:
        from fabric.graph.values import algebra

        return algebra.CeilDiv(self.dim, self.divisor)

    @override
    def with_sizes(self, sizes: Mapping[Symbol, Number]) -> Value:
        return ceiling(self.dim.with_sizes(sizes), self.divisor)


class AtLeastOne(Expression):
    """1 where the non-negative ``dim`` is positive, else 0."""

    __slots__ = ("dim",)

    def __init__(self, dim: Expression) -> None:
        super().__init__(dim, (dim,), is_whole=True)
        self.dim: Final = dim

    @override
    def __str__(self) -> str:
        return flag_text(str(self.dim))

    __repr__ = __str__

    @override
    def _sympy_(self) -> Any:
        from fabric.graph.values import algebra

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

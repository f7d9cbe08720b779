"""Roundings of dimensions as sympy functions that are cheap to make and print as people write.

sympy's own ``ceiling`` and ``Min`` reason about real numbers and take milliseconds each; a
program has thousands. Imported only where a dimension is symbolic.
Source: Streaming Tensor Programs, arXiv 2511.07776v2, Table 7 (Reshape, Promote).
"""

from __future__ import annotations

import sympy
from sympy.printing.str import StrPrinter
from typing_extensions import override

__all__ = ["AtLeastOne", "CeilDiv", "vanishes_with"]


class CeilDiv(sympy.Function):  # type: ignore[misc]
    """``ceil(dim / divisor)`` of a non-negative ``dim``, for an integer ``divisor`` from 1 on."""

    nargs = 2
    is_integer = True
    is_nonnegative = True

    @classmethod
    @override
    def eval(cls, dim: sympy.Expr, divisor: sympy.Expr) -> sympy.Expr | None:
        if divisor == 1:
            return dim if dim.is_integer else None
        if dim.is_Rational:
            return sympy.Integer(-(-dim.p // (dim.q * int(divisor))))
        if isinstance(dim, CeilDiv):
            return CeilDiv(dim.args[0], dim.args[1] * divisor)
        if isinstance(dim, AtLeastOne):
            return dim
        whole, rest = _split(dim, int(divisor))
        if whole == 0:
            return None
        return whole + CeilDiv(rest, divisor)

    def _sympystr(self, printer: StrPrinter) -> str:
        dim, divisor = self.args
        text = printer._print(dim)
        return f"ceil(({text})/{divisor})" if dim.is_Add else f"ceil({text}/{divisor})"


class AtLeastOne(sympy.Function):  # type: ignore[misc]
    """1 where ``dim`` is positive, else 0."""

    nargs = 1
    is_integer = True
    is_nonnegative = True

    @classmethod
    @override
    def eval(cls, dim: sympy.Expr) -> sympy.Expr | None:
        if dim.is_Rational:
            return sympy.Integer(int(dim.p > 0))
        if isinstance(dim, AtLeastOne):
            return dim
        if isinstance(dim, CeilDiv):
            return AtLeastOne(dim.args[0])
        if dim.is_Mul and dim.args[0].is_Integer and len(dim.args) == 2:
            return AtLeastOne(dim.args[1])
        return None

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"min(1, {printer._print(self.args[0])})"


def vanishes_with(factor: sympy.Expr, dim: sympy.Expr) -> bool:
    """Whether ``factor`` is 0 wherever the non-negative ``dim`` is."""
    if factor == dim:
        return True
    if isinstance(factor, CeilDiv | AtLeastOne):
        return vanishes_with(factor.args[0], dim)
    return bool(factor.is_Mul) and any(vanishes_with(part, dim) for part in factor.args)


def _split(dim: sympy.Expr, divisor: int) -> tuple[sympy.Expr, sympy.Expr]:
    """Return what of ``dim`` the ``divisor`` divides, as the quotient, and the remaining terms."""
    whole, rest = [], []
    for term in sympy.Add.make_args(dim):
        coefficient, others = term.as_coeff_Mul()
        if not (coefficient.is_Integer and others.is_integer):
            rest.append(term)
            continue
        quotient, remainder = divmod(int(coefficient), divisor)
        if others != 1 and remainder:
            quotient, remainder = 0, int(coefficient)
        whole.append(quotient * others)
        rest.append(remainder * others)
    return sympy.Add(*whole), sympy.Add(*rest)

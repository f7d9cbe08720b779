"""Roundings of sizes as readable functions of sympy, and long sums folded.

The ``ceiling`` and ``Min`` of sympy take milliseconds each. Importing sympy takes a third of a
second, so only code that shows symbolic sizes imports this module.
"""

from __future__ import annotations

import sympy
from sympy.printing.str import StrPrinter

from fabric.messages.telling.wording import ceiling_text, flag_text, folded_sum


class CeilDiv(sympy.Function):  # type: ignore[misc]
    """``ceil(dim / divisor)``."""

    nargs = 2
    is_integer = True
    is_nonnegative = True

    def _sympystr(self, printer: StrPrinter) -> str:
        dim, divisor = self.args
        text: str = printer._print(dim)
        return ceiling_text(text, divisor, is_sum=dim.is_Add)


class AtLeastOne(sympy.Function):  # type: ignore[misc]
    """1 where its argument is positive, else 0."""

    nargs = 1
    is_integer = True
    is_nonnegative = True

    def _sympystr(self, printer: StrPrinter) -> str:
        text: str = printer._print(self.args[0])
        return flag_text(text)


def folded_text(value: sympy.Expr) -> str:
    """Return ``value`` as text with long sums folded: ``sum(ceil(D_route[0..31]/16))``."""
    if value.is_Add:
        return folded_sum([folded_text(term) for term in value.as_ordered_terms()])
    if value.is_Mul and any(factor.is_Add for factor in value.args):
        factors = [
            f"({folded_text(factor)})" if factor.is_Add else str(factor)
            for factor in value.as_ordered_factors()
        ]
        return "*".join(factors)
    return str(value)

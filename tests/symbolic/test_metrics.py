"""Metrics of programs, computed by hand."""

from __future__ import annotations

import sympy

from fabric import check
from tests.symbolic.programs import wired


def test_formulas_of_sympy_have_the_totals_of_the_data() -> None:
    program = wired("simplified_moe")
    known = check(program, data=True)
    sizes = {sympy.sympify(symbol): size for symbol, size in known.sizes.items()}
    formulas = check(program).formulas().items()

    assert known.formulas() == {name: sympy.sympify(each).subs(sizes) for name, each in formulas}

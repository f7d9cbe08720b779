"""Metrics of programs, worked out by hand."""

from __future__ import annotations

import numpy as np
import sympy

import operators as op
from fabric import Program, check
from fabric.analysis.symbolic.substitution import chosen_sizes
from fabric.graph.wiring.elaborate import elaborate
from tests.symbolic.programs import wired
from tests.symbolic.small_operators import HitList


def ones(rows: int, cols: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.ones((rows, cols), np.float32)


def test_formulas_of_sympy_have_the_totals_of_the_data() -> None:
    program = wired("simplified_moe")
    known = check(program, data=True)
    sizes = {sympy.sympify(symbol): size for symbol, size in known.sizes.items()}
    formulas = check(program).formulas().items()

    assert known.formulas() == {name: sympy.sympify(each).subs(sizes) for name, each in formulas}


def test_flattened_ragged_dimension_has_a_new_symbol() -> None:
    with Program("p") as program:
        chosen = HitList(((0, 1), (0,)))()
        rows = op.Flatten(0, 1)(op.LinearOffChipLoad(ones(2, 32), (1, 32))())
        y = op.Reassemble()(op.Partition(2)(rows, chosen), chosen)
        flat = op.Flatten(0, 1)(y)
        op.LinearOffChipStore("y")(flat)
    plan = elaborate(program)

    assert "[1, 2, D_reassemble_1~] of 1x32 bfloat16" == str(y.type)
    assert "[1, D_flatten_2~] of 1x32 bfloat16" == str(flat.type)
    sizes = chosen_sizes(plan, {"D_reassemble_1~": 3}, data=False)
    assert {"D_reassemble_1~": 3, "D_flatten_2~": 6} == {
        symbol.name: size for symbol, size in sizes.items()
    }

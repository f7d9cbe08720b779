"""Sizes from a program's own lists, known before it runs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import operators as op
from fabric import Program, simulate
from fabric.analysis.symbolic.check import check


def test_sizes_that_the_programs_lists_decide_are_known() -> None:
    with Program("lists") as program:
        rows = op.Flatten(0, 2)(op.LinearOffChipLoad(np.ones((6, 4)), tile=(1, 4))())
        choice = np.array([[0, 2], [2, 1], [2, 0], [0, 1], [2, 1], [0, 2]])
        route = op.Flatten(0, 1)(op.Selectors(choice, width=4)())
        for number, each in enumerate(op.Partition(4)(rows, route)):
            op.LinearOffChipStore(f"y{number}")(op.Promote(0)(each))
        lists = op.RaggedIntegers([[0, 3], [], [7, 1, 2]])()
        op.LinearOffChipStore("z")(lists)

    checked = check(program, {}, data=True)
    assert {str(symbol): size for symbol, size in checked.sizes.items()} == {
        "D_selectors_1[0]": 4,
        "D_selectors_1[1]": 3,
        "D_selectors_1[2]": 5,
        "D_selectors_1[3]": 0,
        "D_ragged_integers_1~": Fraction(5, 3),
    }
    report = simulate(program)
    assert not report.warnings
    known = checked.as_json()["metrics"]
    assert isinstance(known, dict)
    assert known["paper"]["off_chip_traffic_bytes"] == report.off_chip_traffic_bytes

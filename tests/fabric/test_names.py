from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import operators as op
from fabric import Program
from fabric.extend import Operator


@dataclass(frozen=True)
class RMSNormed(op.SiLU):
    pass


@dataclass(frozen=True)
class _Own2Steps(op.SiLU):
    pass


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (op.Map(op.Exp()), "exp_1"),
        (op.Map(op.RowSum()), "row_sum_1"),
        (op.Map(op.SiLU()), "silu_1"),
        (op.Map(RMSNormed()), "rms_normed_1"),
        (op.Map(_Own2Steps()), "own2_steps_1"),
        (op.Accum(op.Sum()), "sum_1"),
        (op.Scan(op.Sum()), "sum_1"),
        (op.FlatMap(op.SplitRows()), "split_rows_1"),
        (op.Consumer(), "consumer_1"),
        (op.Map(op.Exp(), name="powers"), "powers"),
    ],
)
def test_operator_is_named_after_its_function(operator: Operator, name: str) -> None:
    with Program("one") as program:
        operator.wire(op.LinearOffChipLoad(np.ones((4, 4)), tile=(1, 4))())
    assert name == program.nodes[-1].name


def test_names_of_equal_functions_are_numbered() -> None:
    with Program("several") as program:
        tiles = op.LinearOffChipLoad(np.ones((4, 4)), tile=(1, 4), name="load")()
        one = op.Map(op.Exp(), name="exp_2")(tiles)
        two = op.Map(op.Exp())(tiles)
        three = op.Map(op.Add())(op.Map(op.Exp())(one), two)
        op.Consumer()(three)
    assert ["load", "exp_2", "exp_1", "exp_3", "add_1", "consumer_1"] == [
        node.name for node in program.nodes
    ]

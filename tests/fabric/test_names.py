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

"""Names that the fabric gives to operators: what each does, and a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fabric import Program
from fabric.extend import Operator
from operators import (
    Accum,
    Add,
    Consumer,
    Exp,
    FlatMap,
    LinearOffChipLoad,
    Map,
    RowSum,
    Scan,
    SiLU,
    SplitRows,
    Sum,
)


@dataclass(frozen=True)
class RMSNormed(SiLU):
    pass


@dataclass(frozen=True)
class _Own2Steps(SiLU):
    pass


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (Map(Exp()), "exp_1"),
        (Map(RowSum()), "row_sum_1"),
        (Map(SiLU()), "silu_1"),
        (Map(RMSNormed()), "rms_normed_1"),
        (Map(_Own2Steps()), "own2_steps_1"),
        (Accum(Sum()), "sum_1"),
        (Scan(Sum()), "sum_1"),
        (FlatMap(SplitRows()), "split_rows_1"),
        (Consumer(), "consumer_1"),
        (Map(Exp(), name="powers"), "powers"),
    ],
)
def test_operator_is_named_after_its_function(operator: Operator, name: str) -> None:
    with Program("one") as program:
        operator.wire(LinearOffChipLoad(np.ones((4, 4)), tile=(1, 4))())
    assert name == program.nodes[-1].name


def test_names_of_equal_functions_are_numbered() -> None:
    with Program("several") as program:
        tiles = LinearOffChipLoad(np.ones((4, 4)), tile=(1, 4), name="load")()
        one = Map(Exp(), name="exp_2")(tiles)
        two = Map(Exp())(tiles)
        three = Map(Add())(Map(Exp())(one), two)
        Consumer()(three)
    assert ["load", "exp_2", "exp_1", "exp_3", "add_1", "consumer_1"] == [
        node.name for node in program.nodes
    ]


TENSOR, OTHER = [0], [0]

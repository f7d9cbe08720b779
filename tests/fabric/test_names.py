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
    """A user's function."""


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (Map(Exp()), "exp_1"),
        (Map(RowSum()), "row_sum_1"),
        (Map(SiLU()), "silu_1"),
        (Map(RMSNormed()), "rms_normed_1"),
        (Accum(Sum()), "sum_1"),
        (Scan(Sum()), "sum_1"),
        (FlatMap(SplitRows()), "split_rows_1"),
        (Consumer(), "consumer_1"),
        (Map(Exp(), name="powers"), "powers"),
    ],
)
def test_operator(operator: Operator, name: str) -> None:
    """An operator is named after its function, or else its class, and numbered."""
    with Program("one") as program:
        operator.wire(LinearOffChipLoad(np.ones((4, 4)), tile=(1, 4))())
    assert name == program.nodes[-1].name


def test_numbers() -> None:
    """Names count what does the same; one that the program gave away is left out."""
    with Program("several") as program:
        tiles = LinearOffChipLoad(np.ones((4, 4)), tile=(1, 4), name="load")()
        one = Map(Exp(), name="exp_2")(tiles)
        two = Map(Exp())(tiles)
        three = Map(Add())(Map(Exp())(one), two)
        Consumer()(three)
    assert ["load", "exp_2", "exp_1", "exp_3", "add_1", "consumer_1"] == [
        node.name for node in program.nodes
    ]

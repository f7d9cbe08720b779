"""Names that the fabric gives to operators: what each does, and a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fabric import Program, ProgramError
from fabric.extend import Operator
from fabric.graph.wiring.names import Names
from fabric.messages.telling.place import Place
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


@dataclass(frozen=True)
class _Own2Steps(SiLU):
    """Another one, which its module keeps to itself."""


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


TENSOR, OTHER = [0], [0]


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ((TENSOR, "tiles"), (TENSOR, "tiles"), None),
        ((TENSOR, "tiles"), (TENSOR, "rows"), "the same tensor object and tiles as there, or "),
        ((TENSOR, "tiles"), (OTHER, "tiles"), "the same tensor object and tiles as there, or "),
        ((TENSOR, "tiles"), (None, "tiles"), ""),
        ((None, "tiles"), (TENSOR, "tiles"), ""),
        ((None, "tiles"), (None, "tiles"), ""),
    ],
)
def test_shared_outputs(
    first: tuple[object, str], second: tuple[object, str], shared: str | None
) -> None:
    """One object in the same tiles is shared; none is with nobody but the operator itself."""
    names = Names()
    for line, name in enumerate(("c", "a", "b"), 3):
        names.take("Store", name, Place("user.py", line), "Store")
    names.store("c", "z", *first)
    names.store("c", "z", None, "others")
    names.store("c", "y", None, None)
    if shared is None:
        names.store("b", "z", *second)
    else:
        with pytest.raises(ProgramError) as caught:
            names.store("b", "z", *second)
        assert str(caught.value) == (
            f"user.py:5: b stores an output 'z', as c does at user.py:3: expected {shared}a name "
            "of its own"
        )
    assert names.outputs == ("z", "y")

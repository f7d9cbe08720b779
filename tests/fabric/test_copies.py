"""Copies of what users hold: they are as good as the original."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from fabric import Hardware, Program, ShapeError, TileType, simulate
from fabric.graph.values.dims import product, symbol
from fabric.graph.values.expression import ceiling, flag
from operators import Consumer, LinearOffChipLoad, Zip
from tests.profiles import spread
from tests.programs.loading import program

PROGRAMS: list[tuple[str, dict[str, Any]]] = [
    ("simplified_moe", {}),
    ("moe", {"batch": 4, "tiling": "dynamic"}),
    ("attention", {"requests": 4}),
    ("edit_distance", {"pairs": 2, "longest": 4}),
    ("own_operator", {}),
]

D, E = symbol("D"), symbol("E", ragged=True)

HELD: dict[str, Any] = {
    "symbol": D,
    "ragged symbol": E,
    "sum": 3 * D + E + 1,
    "product": product((D, E, 2)),
    "quotient": ceiling(D + 1, 4),
    "flag": flag(D),
    "type": TileType(D, 4, np.dtype(np.float32)),
    "hardware": Hardware(),
}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize(("name", "parameters"), spread(PROGRAMS, 2))
def test_programs(name: str, parameters: dict[str, Any], copied: Any) -> None:
    """A copy of a program runs as the program does."""
    original = program(name, **parameters)
    found = simulate(copied(original), mode="timing")

    assert found == simulate(original, mode="timing")


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda held: pickle.loads(pickle.dumps(held))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("held", HELD)
def test_values(held: str, copied: Any) -> None:
    """A copy of a size, a type or a description is equal to it, and hashes as it does."""
    found = copied(HELD[held])

    assert found == HELD[held]
    assert hash(found) == hash(HELD[held])
    assert str(found) == str(HELD[held])


def test_reports() -> None:
    """A report goes to another process and back."""
    report = simulate(program("simplified_moe"), mode="timing")

    assert pickle.loads(pickle.dumps(report)) == report


def test_tuples_in_tuples() -> None:
    """Each Zip of a stream with itself doubles the values of an element: that ends somewhere."""
    with Program("nested"):
        stream = LinearOffChipLoad(np.ones((4, 4)), (2, 2))()
        for _ in range(8):
            stream = Zip()(stream, stream)
        Consumer()(stream)
        with pytest.raises(ShapeError, match=r"of 512 values, .*: expected at most 256"):
            Zip()(stream, stream)

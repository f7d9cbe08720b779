"""Copies of users' objects work like the originals."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from fabric import Hardware, TileType, simulate
from fabric.graph.values.dims import product, symbol
from fabric.graph.values.expression import at_least_one, ceil_div
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
    "quotient": ceil_div(D + 1, 4),
    "flag": at_least_one(D),
    "type": TileType(D, 4, np.dtype(np.float32)),
    "hardware": Hardware(),
}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize(("name", "parameters"), spread(PROGRAMS, 2))
def test_copied_program_runs_as_the_original(
    name: str, parameters: dict[str, Any], copied: Any
) -> None:
    original = program(name, **parameters)
    found = simulate(copied(original), mode="timing")

    assert found == simulate(original, mode="timing")


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda held: pickle.loads(pickle.dumps(held))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("held", HELD)
def test_copied_value_equals_the_original(held: str, copied: Any) -> None:
    found = copied(HELD[held])

    assert found == HELD[held]
    assert hash(found) == hash(HELD[held])
    assert str(found) == str(HELD[held])

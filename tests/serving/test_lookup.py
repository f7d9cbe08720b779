from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from fabric.explore.serving.measured_costs import Lookup, read_rows
from fabric.messages.errors import ConfigurationError
from tests.profiles import examples

Points = dict[tuple[float, ...], float]

AXES = ([0.0, 1.0, 4.0], [16.0, 64.0], [0.0, 2.0, 3.0, 9.0])


@given(st.integers(0, 99), st.tuples(*(st.floats(each[0], each[-1]) for each in AXES)))
@examples(quick=15, deep=300)
def test_lookup_equals_scipy(seed: int, point: tuple[float, float, float]) -> None:
    values = np.random.default_rng(seed).uniform(1, 9, tuple(map(len, AXES)))
    points: Points = dict(zip(itertools.product(*AXES), values.ravel().tolist(), strict=True))
    found = Lookup("a", ("x", "y", "z"), points, edge=False)
    theirs = RegularGridInterpolator(AXES, values)
    assert found(*point) == pytest.approx(float(theirs([point])[0]))
    assert found(1.0, 64.0, 3.0) == points[1.0, 64.0, 3.0]


def test_lookup_of_two_grids_takes_the_nearest() -> None:
    fine: Points = {(x, y): x + y for x in (0.0, 4.0, 8.0) for y in (0.0, 10.0)}
    coarse: Points = {(x, y): 100 + x + y for x in (1.0, 5.0) for y in (5.0, 10.0)}
    found = Lookup("two", ("x", "y"), fine | coarse, edge=False)
    assert found(1.0, 2.0) == 3.0
    assert found(1.0, 7.0) == 108.0
    assert found(2.0, 7.0) == pytest.approx(108 + (11 - 108) / 3)


def test_lookup_outside_is_refused_or_at_the_edge() -> None:
    points: Points = {(0.0, 1.0): 3.0, (0.0, 2.0): 4.0, (1.0, 1.0): 5.0}
    refused = Lookup("small", ("tokens", "cache"), {**points, (1.0, 2.0): 7.0}, edge=False)
    with pytest.raises(ConfigurationError) as raised:
        refused(2.0, 1.5)
    assert raised.value.message == (
        "table small does not cover tokens=2, cache=1.5: expected values on both sides, or "
        'outside = "edge" to take the nearest value'
    )
    taken = Lookup("small", ("tokens", "cache"), {**points, (1.0, 2.0): 7.0}, edge=True)
    assert taken(2.0, 1.5) == 6.0
    assert taken(-1.0, 9.0) == 4.0
    assert taken(0.5, 1.0) == 4.0
    assert taken.taken_outside() == 2
    assert taken.taken_outside() == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tokens,time\n1,2\n", "has no column time_us: expected tokens, time_us"),
        ("tokens,time_us\n1,\n", "a cell is not a number: expected a number in each column"),
        ("tokens,time_us\n1,x\n", "a cell is not a number: expected a number in each column"),
        ("tokens,time_us\n1,-2\n", "a point takes -2 μs: expected each point once, with a finite"),
        ("tokens,time_us\n1,2\n1,2\n", "a point is repeated: expected each point once"),
    ],
)
def test_damaged_table_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        read_rows(file, ("tokens",))
    assert raised.value.message.startswith(said)
    assert raised.value.file == str(file)


def test_empty_table_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("tokens,time_us\n")
    with pytest.raises(ConfigurationError, match="table empty has no rows: expected at least one"):
        Lookup("empty", ("tokens",), read_rows(file, ("tokens",)).get("", {}), edge=False)

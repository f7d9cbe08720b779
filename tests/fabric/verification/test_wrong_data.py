"""Wrong data are refused for every element type, and right data pass: the table ``wrong_data``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fabric import Hardware, Program, dtype_named, simulate
from fabric.extend import dtype_name
from fabric.graph.hardware.description import TileDescription
from fabric.graph.loading.program_file import load_program
from operators import Add, LinearOffChipLoad, LinearOffChipStore, Map, Tensor
from tests.fabric.verification import wrong_data
from tests.fabric.verification.storing import Array, judged, random_numbers
from tests.profiles import spread
from tests.programs.loading import PROGRAMS, program

FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
INTEGERS = ("int8", "int32", "uint64", "bool")

CASES = [
    (name, dtype)
    for dtype in (*FLOATS, *INTEGERS)
    for name in wrong_data.FAULTS
    if (dtype in FLOATS or name not in wrong_data.NEEDS_FLOATS)
    and (dtype not in ("uint64", "bool") or name not in wrong_data.NEEDS_SIGNS)
    and (dtype != "bool" or name not in wrong_data.NEEDS_NUMBERS)
]


def verified(found: Array, wanted: Array, dtype: np.dtype[Any]) -> bool | None:
    numbers = dtype_name(dtype)
    with np.errstate(all="ignore"), Program("sum", mode="functional") as program:
        halves = [
            LinearOffChipLoad(Tensor(each.shape, each, dtype=numbers), tile=each.shape)()
            for each in _summands(found, dtype)
        ]
        LinearOffChipStore("y")(Map(Add())(*halves))
    program.expect(y=lambda: wanted)
    return simulate(program).verified


def _summands(found: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    if dtype_name(dtype) in FLOATS:
        return found * 0.375, found * 0.625
    return found, np.zeros_like(found)


BELOW_ITS_ROUNDING = {
    "scaled_by_1_02": FLOATS[3:],
    "rounded_to_8_bits": FLOATS[3:4],
}
"""Faults that pass after three roundings, because roundings can be as large."""


@pytest.mark.parametrize(("name", "dtype"), spread(CASES, 6))
def test_wrong_data_are_refused(name: str, dtype: str) -> None:
    kind = dtype_named(dtype)
    for seed in range(5):
        wanted, found = wrong_data.FAULTS[name](random_numbers(np.random.default_rng(seed), kind))
        if dtype == "float8_e4m3" and np.isinf(found).any():
            continue  # the type has no infinity
        if dtype not in BELOW_ITS_ROUNDING.get(name, ()):
            assert verified(found, wanted, kind) is not True
        if np.isfinite(wanted).all():
            assert verified(wanted, wanted, kind) is True


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, kind) for name, kinds in BELOW_ITS_ROUNDING.items() for kind in kinds],
)
def test_faults_below_the_rounding_pass_in_some_draws(name: str, dtype: str) -> None:
    kind = dtype_named(dtype)
    passed = []
    for seed in range(5):
        wanted, found = wrong_data.FAULTS[name](random_numbers(np.random.default_rng(seed), kind))
        passed.append(verified(found, wanted, kind))
    assert any(passed)


SHIPPED: dict[str, dict[str, Any]] = {
    "simplified_moe": {},
    "swiglu": {"tile_batch": 64, "tile_inter": 64},
    "moe": {"model": "tiny", "batch": 24, "tile_n": 4},
    "attention": {"requests": 6},
    "decoder": {"model": "tiny", "batch": 3},
    "ragged_attention": {},
    "dynamic_tiling": {},
    "buffer_twice": {},
    "top2_moe": {},
    "graph_layer": {},
    "own_function": {},
    "own_operator": {},
    "matrix_vector": {"tiling": "dynamic", "header_bytes": 8},
    "sparse_matrix": {"columns": 4},
    "edit_distance": {},
}

OUT_OF_RANGE = {("attention", "float8_e4m3")}
"""Types whose largest number is exceeded by sums of weights, which are then cut off."""


@pytest.mark.parametrize("dtype", spread(FLOATS, 2))
@pytest.mark.parametrize("name", spread(SHIPPED, 2))
def test_shipped_programs_are_verified_in_every_type(name: str, dtype: str) -> None:
    hardware = Hardware(tile=TileDescription(dtype=dtype))  # type: ignore[arg-type]
    given = [f"{key}={value}" for key, value in SHIPPED[name].items()]
    wired = load_program(PROGRAMS / f"{name}.py", given, hardware).program
    report = simulate(wired, mode="functional")
    assert ("completed", (name, dtype) not in OUT_OF_RANGE) == (report.status, report.verified)


SPOILT: dict[str, Callable[[Array], Array]] = {
    "sign": lambda y: -y,
    "the largest row of zeros": lambda y: y * (np.arange(len(y)) != _largest_row(y))[:, np.newaxis],
    "off by one row": lambda y: np.roll(y, 1, axis=0),
    "twice": lambda y: 2 * y,
    "a bias": lambda y: y + np.median(np.abs(y[y != 0])),
}


def _largest_row(y: Array) -> int:
    return int(np.abs(y).max(axis=1).argmax())


@pytest.mark.parametrize("name", spread(SHIPPED, 3))
def test_shipped_programs_tell_wrong_from_right(name: str) -> None:
    wired = program(name, **SHIPPED[name])
    report = simulate(wired, mode="functional")
    assert report.verified is True
    right = {output: np.asarray(each.compute()) for output, each in wired.expected.items()}
    for spoil in SPOILT.values():
        for output, each in list(wired.expected.items()):
            spoilt = spoil(right[output].astype(np.float64))
            wired.expected[output] = each._replace(compute=partial(np.asarray, spoilt))
        found = judged(wired, dict(report.outputs))
        assert [False] * len(right) == [each.agrees for each in found.outputs]

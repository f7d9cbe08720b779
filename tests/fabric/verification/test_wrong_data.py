"""Wrong data are refused for every element type, right ones pass: the table of ``wrong_data``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

import fabric.runs.simulation
from fabric import Hardware, Program, VerificationError, dtype_named, simulate
from fabric.hardware.description import TileDescription
from fabric.loading.program_file import load_program
from fabric.runs.verification import Verification
from fabric.runs.verify import verify
from tests.fabric.verification.storing import Array, random_numbers, storing
from tests.fabric.verification.wrong_data import (
    FAULTS,
    NEEDS_FLOATS,
    NEEDS_NUMBERS,
    NEEDS_SIGNS,
)
from tests.programs.loading import PROGRAMS, program

FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
INTEGERS = ("int8", "int32", "uint64", "bool")

CASES = [
    (name, dtype)
    for dtype in (*FLOATS, *INTEGERS)
    for name in FAULTS
    if (dtype in FLOATS or name not in NEEDS_FLOATS)
    and (dtype not in ("uint64", "bool") or name not in NEEDS_SIGNS)
    and (dtype != "bool" or name not in NEEDS_NUMBERS)
]


def judged(found: Array, wanted: Array, dtype: np.dtype[Any]) -> bool | None:
    """Whether ``found``, rounded to ``dtype``, is what a program wants that wants ``wanted``."""
    expecting = storing()
    expecting.expect(y=lambda: wanted)
    with np.errstate(all="ignore"):
        verification = verify(expecting, {"y": found.astype(dtype)})
    assert verification is not None
    return verification.verified


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_wrong_data_are_refused(name: str, dtype: str) -> None:
    """The fault is found; without it the same numbers, rounded to the type, pass."""
    kind = dtype_named(dtype)
    for seed in range(5):
        wanted, found = FAULTS[name](random_numbers(np.random.default_rng(seed), kind))
        assert judged(found, wanted, kind) is False
        if np.isfinite(wanted).all():
            assert judged(wanted, wanted, kind) is True


@pytest.mark.parametrize("name", FAULTS)
def test_a_run_with_wrong_data_fails(name: str) -> None:
    """It completes, is not verified, exits with 1 and raises."""
    dtype = dtype_named("bfloat16")
    wanted, found = FAULTS[name](random_numbers(np.random.default_rng(0), dtype))
    program = storing(y=found.astype(dtype))
    program.expect(y=lambda: wanted)
    report = simulate(program)
    assert ("completed", False, 1) == (report.status, report.verified, report.exit_status)
    with pytest.raises(VerificationError):
        report.raise_for_status()


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_lost_imaginary_part(dtype: str) -> None:
    """Complex numbers are not compared by their real part."""
    real = np.ones((2, 2))
    kept = storing(y=real.astype(dtype_named(dtype)))
    kept.expect(y=lambda: real + 1j)
    report = simulate(kept)
    assert ("error", None, 1) == (report.status, report.verified, report.exit_status)
    assert report.error is not None
    assert report.error["message"] == "expect(y=...) returns complex128: expected real numbers", (
        report.error
    )


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

OUT_OF_RANGE = {(name, "float8_e4m3") for name in ("swiglu", "attention", "decoder")}
"""Typical results are a hundredth of the least number of the type; sums of weights exceed its
largest, and become NaN. These runs are wrong, and have to be called so.
"""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_programs_are_verified_in_every_type(name: str, dtype: str) -> None:
    """With the defaults, whatever element type the hardware has."""
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


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_programs_tell_wrong_from_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is verified with the defaults, and is not where any of its outputs should differ."""
    kept: dict[str, Any] = {}

    def keep(wired: Program, stored: Mapping[str, Any]) -> Verification | None:
        kept.update(stored)
        return verify(wired, stored)

    monkeypatch.setattr(fabric.runs.simulation, "verify", keep)
    wired = program(name, **SHIPPED[name])
    assert simulate(wired, mode="functional").verified is True
    right = {output: np.asarray(each.compute()) for output, each in wired.expected.items()}
    for spoil in SPOILT.values():
        for output, each in list(wired.expected.items()):
            spoilt = spoil(right[output].astype(np.float64))
            wired.expected[output] = each._replace(compute=partial(np.asarray, spoilt))
        found = verify(wired, kept)
        assert found is not None
        assert [False] * len(right) == [each.agrees for each in found.outputs]

"""Vectors times matrices, against numpy; what tiles cost, and what headers add."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, Report, simulate
from tests.profiles import examples
from tests.programs.loading import program

SMALL = {"inner": 32, "outer": 64, "tile_f": 32}
DYNAMIC = {"tiling": "dynamic"}


def run(**parameters: Any) -> Report:
    return simulate(program("matrix_vector", **{**SMALL, **parameters}))


@examples(quick=10, deep=20)
@given(
    batch=st.integers(1, 12),
    matrices=st.integers(1, 6),
    skew=st.floats(0, 16),
    tiling=st.sampled_from(["static", "dynamic"]),
    tile_n=st.integers(1, 6),
    header_bytes=st.none() | st.integers(0, 40).map(lambda half: 2 * half),
    seed=st.integers(0, 99),
)
def test_is_verified(**parameters: Any) -> None:
    if parameters["header_bytes"] is None:
        del parameters["header_bytes"]
    report = run(**parameters)
    timing = simulate(program("matrix_vector", **{**SMALL, **parameters}), mode="timing")

    assert ("completed", True, ()) == (report.status, report.verified, report.warnings)
    assert (timing.cycles, timing.units) == (report.cycles, report.units)


@pytest.mark.parametrize("tile_n", [1, 4, 16])
def test_costs_of_one_matrix(tile_n: int) -> None:
    tiles = -(-9 // tile_n)
    report = run(batch=9, matrices=1, tile_n=tile_n)

    assert 2 * tiles * tile_n * 32 * 64 == report.flops
    assert 2 * (tiles * 32 * 64 + 9 * (32 + 64)) == report.off_chip_traffic_bytes


def test_a_dynamic_tile_reads_a_matrix_once() -> None:
    dynamic, large, small = (
        run(batch=24, **given) for given in (DYNAMIC, {"tile_n": 24}, {"tile_n": 1})
    )

    assert large.off_chip_traffic_bytes == dynamic.off_chip_traffic_bytes
    assert small.flops == dynamic.flops
    assert (dynamic.cycles or 0) <= (large.cycles or 0)


def test_the_skew_decides_how_many_matrices_are_read() -> None:
    even, uneven = (run(batch=32, matrices=64, skew=skew, **DYNAMIC) for skew in (0, 16))

    assert even.flops == uneven.flops
    assert (even.off_chip_traffic_bytes or 0) > 10 * (uneven.off_chip_traffic_bytes or 0)


class TestHeaders:
    def test_bytes(self) -> None:
        without = run(batch=9, **DYNAMIC)
        for header_bytes in (0, 8, 96):
            report = run(batch=9, header_bytes=header_bytes, **DYNAMIC)

            moved = (report.off_chip_traffic_bytes or 0) - (without.off_chip_traffic_bytes or 0)
            assert 2 * 9 * header_bytes == moved
            assert without.flops == report.flops

    def test_cycles_are_those_of_the_slowest_stage(self) -> None:
        sizes = {"batch": 1, "matrices": 1, "outer": 640, "tile_f": 32}
        first, second = (
            run(header_bytes=size, **sizes, **DYNAMIC).cycles for size in (6400, 12800)
        )

        assert first is not None
        assert second is not None
        assert 100 * (1 + 21 + 1) + 100 * 3 == second - first

    def test_static_tiles_have_none(self) -> None:
        assert run(tile_n=4).cycles == run(tile_n=4, header_bytes=64).cycles


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(
            ({name: 0}, f"{name} is 0: expected at least 1")
            for name in ("batch", "matrices", "tile_n", "inner", "outer")
        ),
        ({"seed": -1}, "seed is -1: expected at least 0"),
        ({"skew": -0.5}, "skew is -0.5: expected a number from 0 to 16"),
        ({"skew": "nan"}, "skew is nan: expected a number from 0 to 16"),
        ({"tile_f": 48}, "tile_f is 48: expected a divisor of outer, 64"),
        (
            {"header_bytes": 7, **DYNAMIC},
            "header_bytes is 7: expected a multiple of 2, the bytes of one bfloat16",
        ),
    ],
)
def test_values_that_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        program("matrix_vector", **{**SMALL, **given})
    assert message == caught.value.message

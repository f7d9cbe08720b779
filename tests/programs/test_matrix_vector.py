from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Report, simulate
from tests.profiles import examples
from tests.programs.loading import program

SMALL = {"inner": 32, "outer": 64, "tile_f": 32}
DYNAMIC = {"tiling": "dynamic"}


def run(**parameters: Any) -> Report:
    return simulate(program("matrix_vector", **{**SMALL, **parameters}))


@examples(quick=5, deep=20)
@given(
    batch=st.integers(1, 12),
    matrices=st.integers(1, 6),
    skew=st.floats(0, 16),
    tiling=st.sampled_from(["static", "dynamic"]),
    tile_n=st.integers(1, 6),
    header_bytes=st.none() | st.integers(0, 40).map(lambda half: 2 * half),
    seed=st.integers(0, 99),
)
def test_matrix_vector_is_verified(**parameters: Any) -> None:
    if parameters["header_bytes"] is None:
        del parameters["header_bytes"]
    report = run(**parameters)
    timing = simulate(program("matrix_vector", **{**SMALL, **parameters}), mode="timing")

    assert ("completed", True, ()) == (report.status, report.verified, report.warnings)
    assert (timing.cycles, timing.units) == (report.cycles, report.units)


@pytest.mark.parametrize("tile_n", [4, 16])
def test_matrix_vector_costs_of_one_matrix(tile_n: int) -> None:
    tiles = -(-9 // tile_n)
    report = run(batch=9, matrices=1, tile_n=tile_n)

    assert 2 * tiles * tile_n * 32 * 64 == report.flops
    assert 2 * (tiles * 32 * 64 + 9 * (32 + 64)) == report.off_chip_traffic_bytes


def test_headers_add_their_bytes() -> None:
    without = run(batch=9, **DYNAMIC)
    for header_bytes in (0, 96):
        report = run(batch=9, header_bytes=header_bytes, **DYNAMIC)

        moved = (report.off_chip_traffic_bytes or 0) - (without.off_chip_traffic_bytes or 0)
        assert 2 * 9 * header_bytes == moved
        assert without.flops == report.flops

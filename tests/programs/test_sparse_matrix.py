from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

from fabric import Hardware, Report, simulate
from fabric.extend import TileDescription
from fabric.graph.loading.program_file import load_program
from tests.profiles import examples, spread
from tests.programs.graphs import adjacency, named
from tests.programs.loading import PROGRAMS, program

WIDE = Hardware(tile=TileDescription(dtype="float32"))


def run(**parameters: Any) -> Report:
    given = [f"{key}={value}" for key, value in parameters.items()]
    return simulate(load_program(PROGRAMS / "sparse_matrix.py", given, WIDE).program)


@examples(quick=4, deep=25)
@given(
    name=named,
    side=st.integers(2, 5),
    columns=st.integers(1, 5),
    rows=st.sampled_from(["ragged", "padded"]),
    piece=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_sparse_matrix_equals_scipy(
    name: str, side: int, columns: int, rows: str, piece: int, seed: int
) -> None:
    laplacian = csgraph.laplacian(adjacency(name, side, seed))
    x = np.random.default_rng(seed).standard_normal((laplacian.shape[0], columns))
    report = run(
        graph=name, vertices=side * side, columns=columns, rows=rows, piece=piece, seed=seed
    )

    assert report.verified is True
    np.testing.assert_allclose(np.asarray(report.outputs["y"]), laplacian @ x, 1e-4, 1e-4)


@pytest.mark.parametrize(("vertices", "rows"), [(0, "ragged"), (1, "padded"), (17, "ragged")])
def test_sparse_matrix_with_empty_rows_is_verified(vertices: int, rows: str) -> None:
    report = simulate(program("sparse_matrix", graph="random", vertices=vertices, rows=rows))

    assert ("completed", True, ()) == (report.status, report.verified, report.warnings)


@pytest.mark.parametrize("name", spread(["karate-club", "power-law"], 1))
def test_sparse_matrix_costs_follow_the_rows(name: str) -> None:
    lengths = np.diff(csgraph.laplacian(adjacency(name, 8, 0)).tocsr().indptr)
    piece, columns, count = 4, 3, len(lengths)
    for rows, held in (("ragged", lengths), ("padded", np.full(count, lengths.max()))):
        report = simulate(
            program("sparse_matrix", graph=name, vertices=64, rows=rows, columns=columns)
        )
        pieces = int((-(-held // piece)).sum())
        numbers = pieces * piece + (int(held.sum()) + count) * columns

        assert 2 * numbers == report.off_chip_traffic_bytes
        assert 2 * pieces * piece * columns == report.flops

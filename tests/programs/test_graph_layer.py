from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hardware, simulate
from fabric.extend import TileDescription
from fabric.graph.loading.program_file import load_program
from tests.profiles import examples
from tests.programs.graphs import adjacency, named
from tests.programs.loading import PROGRAMS, program

WIDE = Hardware(tile=TileDescription(dtype="float32"))
TILINGS = ["dynamic", "static", "padded"]


@examples(quick=3, deep=12)
@given(
    name=named,
    side=st.integers(2, 4),
    tiling=st.sampled_from(TILINGS),
    rows=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_graph_layer_equals_a_sparse_product(
    name: str, side: int, tiling: str, rows: int, seed: int
) -> None:
    near = adjacency(name, side, seed)
    random = np.random.default_rng(seed)
    x = random.standard_normal((near.shape[0], 32))
    own, others = random.standard_normal((2, 32, 64)) / 8
    inner = x @ others
    given = {"graph": name, "vertices": side * side, "tiling": tiling, "rows": rows, "seed": seed}
    settings = [f"{key}={value}" for key, value in given.items()]
    report = simulate(load_program(PROGRAMS / "graph_layer.py", settings, WIDE).program)

    assert report.verified is True
    wanted = x @ own + near @ (inner / (1 + np.exp(-inner)))
    np.testing.assert_allclose(np.asarray(report.outputs["y"]), wanted, 1e-3, 1e-3)


@pytest.mark.parametrize(("vertices", "tiling"), [(0, "dynamic"), (1, "static"), (6, "padded")])
def test_graph_layer_of_few_vertices_is_verified(vertices: int, tiling: str) -> None:
    report = simulate(program("graph_layer", vertices=vertices, tiling=tiling))

    assert ("completed", True, ()) == (report.status, report.verified, report.warnings)


def test_graph_layer_costs_follow_the_degrees() -> None:
    degrees = np.diff(adjacency("power-law", 4, 0).indptr)
    padded = np.full(len(degrees), degrees.max())
    multiplied = {
        "dynamic": degrees,
        "static": -(-degrees // 4) * 4,
        "padded": -(-padded // 4) * 4,
    }
    for tiling, rows in multiplied.items():
        report = simulate(program("graph_layer", graph="power-law", vertices=16, tiling=tiling))
        gathered = padded if tiling == "padded" else degrees
        own = 16 * (2 * 32 * 64 + 64)
        messages = int(rows.sum()) * (2 * 32 * 64 + 8 * 64) + int(gathered.sum()) * 64
        read = (int(gathered.sum()) + 16) * 32 + 2 * 32 * 64

        assert own + messages == report.flops
        assert 2 * (read + 16 * 64) == report.off_chip_traffic_bytes

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

from fabric import Program, Report, simulate
from tests.profiles import examples, spread
from tests.programs.graphs import adjacency, named
from tests.programs.loading import program


def search(**parameters: Any) -> Program:
    return program("breadth_first_search", **parameters)


def found(report: Report) -> Any:
    (levels,) = np.asarray(report.outputs["y"]).astype(float)
    return np.where(levels == 0, np.inf, levels - 1)


@examples(quick=3, deep=20)
@given(
    name=named,
    side=st.integers(2, 6),
    lists=st.sampled_from(["ragged", "ragged", "padded"]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_breadth_first_search_equals_scipy(
    name: str, side: int, lists: str, seed: int, data: st.DataObject
) -> None:
    near = adjacency(name, side, seed)
    start = data.draw(st.integers(0, near.shape[0] - 1))
    report = simulate(search(graph=name, vertices=side * side, lists=lists, seed=seed, start=start))

    assert ("completed", True, ()) == (report.status, report.verified, report.warnings)
    wanted = csgraph.shortest_path(near, unweighted=True, indices=start)
    assert wanted.tolist() == found(report).tolist()


@pytest.mark.parametrize("name", spread(["karate-club", "grid"], 1))
def test_breadth_first_search_reads_each_list_once(name: str) -> None:
    near = adjacency(name, 7, 0)
    degrees, count = np.diff(near.indptr), near.shape[0]
    distances = csgraph.shortest_path(near, unweighted=True, indices=0)
    levels = int(distances.max())
    read = {
        "ragged": int((1 + degrees[distances < levels]).sum()),
        "padded": levels * count * (1 + int(degrees.max())),
    }
    for lists, numbers in read.items():
        report = simulate(search(graph=name, vertices=49, lists=lists))

        assert 8 * (numbers + count) == report.off_chip_traffic_bytes
        assert 2 * count * levels == report.flops

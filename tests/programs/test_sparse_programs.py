"""The programs of sparse and updating work, against scipy, networkx and numpy, in both modes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.cluster.vq
import scipy.sparse

from fabric import ConfigurationError, Report, simulate
from tests.profiles import spread
from tests.programs.loading import program

CASES: list[tuple[str, dict[str, Any]]] = [
    *(
        ("sparse_product", {"matrix": matrix, "order": order, "rows": 16, "block": 4, "seed": 3})
        for order in ("inner", "gustavson", "dense")
        for matrix in ("banded", "power-law", "circuit")
    ),
    ("sparse_product", {"rows": 9, "block": 1}),
    ("sparse_product", {"rows": 9, "block": 1, "order": "gustavson", "banks": 3}),
    ("sampled_product", {"rows": 16, "block": 4, "matrix": "circuit"}),
    ("sampled_product", {"rows": 16, "block": 4, "order": "dense", "seed": 2}),
    ("top_k_attention", {"context": 256, "kept": 3}),
    ("top_k_attention", {"context": 128, "kept": 4, "requests": 3, "seed": 5}),
    ("top_k_attention", {"context": 128, "cache": "dense"}),
    ("pagerank", {}),
    ("pagerank", {"graph": "power-law", "vertices": 20, "iterations": 2, "banks": 2, "seed": 1}),
    ("pagerank", {"edges": "dense"}),
    ("k_means", {}),
    ("k_means", {"points": 30, "clusters": 5, "banks": 4, "iterations": 3, "seed": 2}),
    ("k_means", {"update": "dense"}),
    ("hash_join", {}),
    ("hash_join", {"orders": 1, "items": 1, "keys": 2, "buckets": 2, "seed": 4}),
    ("hash_join", {"rows": "padded"}),
    ("tpch_q6", {"rows": 512}),
    ("tpch_q6", {"rows": 512, "columns": "scan", "seed": 1}),
    ("tpch_q6", {"rows": 512, "piece": 16, "late": 0}),
]


@pytest.mark.parametrize(("name", "parameters"), spread(CASES, 9))
def test_verified_and_timed(name: str, parameters: dict[str, Any]) -> None:
    functional = simulate(program(name, None, **parameters), mode="functional")
    assert ("completed", True, ()) == (functional.status, functional.verified, functional.warnings)
    for engine in ("compiled", "tasks"):
        timing = simulate(program(name, None, **parameters), mode="timing", engine=engine)
        assert (timing.cycles, timing.units) == (functional.cycles, functional.units)


def output(name: str, wanted: str, **parameters: Any) -> np.ndarray:
    wired = program(name, None, **parameters)
    report: Report = simulate(wired, mode="functional")
    assert report.verified, report.warnings
    return np.asarray(wired.expected[wanted].compute())


class TestDefinitions:
    @pytest.mark.parametrize("matrix", ["banded", "power-law", "circuit"])
    def test_sparse_product(self, matrix: Any) -> None:
        from layers.sparse_matrices import matrix_named

        a = scipy.sparse.csr_array(matrix_named(matrix, 16, 0))
        found = output("sparse_product", "c", matrix=matrix, rows=16, block=4)
        np.testing.assert_allclose(found, (a @ a).toarray(), rtol=1e-12, atol=1e-12)

    def test_pagerank(self) -> None:
        from layers.graphs import graph_named

        found = output("pagerank", "y", edges="dense", iterations=40)
        ranks = nx.pagerank(graph_named("karate-club", 0, 0), alpha=0.85, weight=None, tol=1e-12)
        np.testing.assert_allclose(found[0], list(ranks.values()), rtol=1e-4)

    def test_k_means(self) -> None:
        random = np.random.default_rng(0)
        middles = 4 * random.standard_normal((4, 7))
        points = middles[random.integers(0, 4, 64)] + random.standard_normal((64, 7))
        centres, _ = scipy.cluster.vq.kmeans2(points, points[:4], iter=2, minit="matrix")
        found = output("k_means", "y")
        np.testing.assert_allclose(found[:, :-1], centres, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "parameters", "told"),
    [
        ("sparse_product", {"rows": 15, "block": 5}, "rows is 15: expected a square for banded"),
        (
            "sparse_product",
            {"block": 5},
            "block is 5: expected a divisor of the number of rows, 64",
        ),
        ("sampled_product", {"inner": 0}, "inner is 0: expected at least 1"),
        ("top_k_attention", {"context": 33}, "context is 33: expected a multiple of 32"),
        ("top_k_attention", {"kept": 17}, "kept is 17: expected 1 to 16, the tiles of the context"),
        ("pagerank", {"graph": "random"}, "graph is random: expected neighbours of every vertex"),
        ("k_means", {"points": 3}, "points is 3: expected at least 4"),
        (
            "hash_join",
            {"buckets": 5},
            "keys is 32: expected a multiple of the number of buckets, 5",
        ),
        ("tpch_q6", {"rows": 100}, "rows is 100: expected a multiple of 64"),
    ],
)
def test_values_that_cannot_be(name: str, parameters: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        program(name, None, **parameters)
    assert told == caught.value.message

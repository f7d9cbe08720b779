from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.cluster.vq
import scipy.sparse

from fabric import Report, simulate
from tests.programs.loading import program


def output(name: str, wanted: str, **parameters: Any) -> np.ndarray:
    wired = program(name, None, **parameters)
    report: Report = simulate(wired, mode="functional")
    assert report.verified, report.warnings
    return np.asarray(wired.expected[wanted].compute())


@pytest.mark.parametrize("matrix", ["banded", "power-law", "circuit"])
def test_sparse_product_equals_scipy(matrix: Any) -> None:
    from layers.sparse_matrices import matrix_named

    a = scipy.sparse.csr_array(matrix_named(matrix, 16, 0))
    found = output("sparse_product", "c", matrix=matrix, rows=16, block=4)
    np.testing.assert_allclose(found, (a @ a).toarray(), rtol=1e-12, atol=1e-12)


def test_pagerank_equals_networkx() -> None:
    from layers.graphs import graph_named

    found = output("pagerank", "y", edges="dense", iterations=40)
    ranks = nx.pagerank(graph_named("karate-club", 0, 0), alpha=0.85, weight=None, tol=1e-12)
    np.testing.assert_allclose(found[0], list(ranks.values()), rtol=1e-4)


def test_k_means_equals_scipy() -> None:
    random = np.random.default_rng(0)
    middles = 4 * random.standard_normal((4, 7))
    points = middles[random.integers(0, 4, 64)] + random.standard_normal((64, 7))
    centres, _ = scipy.cluster.vq.kmeans2(points, points[:4], iter=2, minit="matrix")
    found = output("k_means", "y")
    np.testing.assert_allclose(found[:, :-1], centres, rtol=1e-4)

from __future__ import annotations

import pytest

from fabric.explore.study.evaluation import Job, known_before, run_point
from tests.profiles import spread
from tests.programs.studies.made import opened

NAMES = [
    "chosen_tiles",
    "cluster_updates",
    "graph_tiles",
    "hash_buckets",
    "matrix_vector_tiles",
    "query_columns",
    "ragged_pairs",
    "rank_updates",
    "sampled_products",
    "search_frontiers",
    "sparse_products",
    "sparse_rows",
    "tile_headers",
]

METRICS = (
    "cycles",
    "off_chip_traffic_bytes",
    "hbm_bytes_moved",
    "flops",
    "on_chip_requirement_bytes",
)


@pytest.mark.parametrize("name", spread(NAMES, 1))
def test_first_and_last_point_keep_their_bounds(name: str) -> None:
    study = opened(name, "questions")
    for index in (0, len(study.space) - 1):
        point = study.point(index)
        before, outcome = known_before(Job.of(study, point)), run_point(study, point)

        assert ("completed", None) == (outcome.status, outcome.reason)
        assert set(METRICS) <= outcome.numbers.keys()
        for metric, least in before.bounds.items():
            found = outcome.numbers[metric]
            assert isinstance(found, int)
            assert least == found if metric in before.exact else least <= found

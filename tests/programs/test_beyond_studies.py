"""The studies of what the paper leaves open: their points run, their pictures are drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib.figure import Figure

from fabric import Study
from fabric.explore.study.evaluation import Job, known_before, run_point
from fabric.explore.study.opening import Asked, open_study
from fabric.explore.study.outcome import Outcome
from fabric.explore.study.result import StudyResult
from tests.profiles import spread
from tests.programs.loading import PROGRAMS

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


def opened(name: str) -> Study:
    return open_study(PROGRAMS / "questions" / f"{name}.py", Asked())


def imagined(study: Study) -> StudyResult:
    outcomes = [
        Outcome(
            index=index,
            setting=setting,
            status="completed",
            numbers=dict.fromkeys(METRICS, (index + 1) ** 2),
        )
        for index, setting in enumerate(study.space)
    ]
    return StudyResult(study, tuple(outcomes))


def heights(figure: Figure) -> Iterator[float]:
    for axes in figure.axes:
        for container in axes.containers:
            yield from (bar.get_y() + bar.get_height() for bar in container)
        for line in axes.lines:
            if line.get_marker() == "o":
                yield from np.asarray(line.get_ydata(), float).tolist()


@pytest.mark.parametrize("name", spread(NAMES, 2))
def test_first_and_last_point(name: str) -> None:
    study = opened(name)
    for index in (0, len(study.space) - 1):
        point = study.point(index)
        before, outcome = known_before(Job.of(study, point)), run_point(study, point)

        assert ("completed", None) == (outcome.status, outcome.reason)
        assert set(METRICS) <= outcome.numbers.keys()
        for metric, least in before.bounds.items():
            found = outcome.numbers[metric]
            assert isinstance(found, int)
            assert least == found if metric in before.exact else least <= found


@pytest.mark.parametrize("name", spread(NAMES, 3))
def test_pictures(name: str) -> None:
    study = opened(name)
    for picture in study.pictures:
        figure = Figure(layout="constrained")
        picture.draw(imagined(study), figure)
        drawn = list(heights(figure))

        assert len(drawn) >= 4
        assert all(map(math.isfinite, drawn))
        assert len(set(drawn)) > 1
        figure.canvas.draw()


def test_what_a_picture_shows() -> None:
    study = opened("search_frontiers")
    result = imagined(study)
    figure = Figure()
    study.pictures[0].draw(result, figure)

    graphs = ["grid", "karate-club", "les-miserables", "power-law"]
    wanted = [
        (padded.index + 1) ** 2 / (ragged.index + 1) ** 2
        for graph in graphs
        for padded in result.matching(graph=graph, lists="padded")
        for ragged in result.matching(graph=graph, lists="ragged")
    ]
    assert pytest.approx(wanted * len(METRICS), rel=1e-12) == list(heights(figure))


def test_ragged_rows_save() -> None:
    study = opened("sparse_rows")
    points = [
        study.point(index)
        for index, each in enumerate(study.space)
        if (each["graph"], each["columns"]) == ("karate-club", 8)
    ]
    ragged, padded = (run_point(study, point).numbers for point in points)

    for metric in ("cycles", "off_chip_traffic_bytes", "flops"):
        more, less = padded[metric], ragged[metric]
        assert isinstance(more, int)
        assert isinstance(less, int)
        assert more > 2 * less

"""The studies of the paper's figures: they load, know what is published, and draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from matplotlib.figure import Figure
from paper import camera_ready
from paper.published import attention, closed_forms, hdl, multiplexing, swiglu, tiling
from paper.workloads import cache_traces

from fabric.explore.study.result import StudyResult
from tests.profiles import spread
from tests.programs.studies.made import STUDIES, made, opened

FIGURES = (8, 9, 10, 12, 13, 14, 15, 19, 20, 21)
POINTS = {
    "equal_resources": 30,
    "figure_08": 15,
    "figure_09": 12,
    "figure_10": 18,
    "figure_12": 13,
    "figure_13": 6,
    "figure_14": 18,
    "figure_15": 9,
    "figure_19": 10,
    "figure_20": 16,
    "figure_21": 81,
}


def test_files() -> None:
    assert {"equal_resources", *(f"figure_{each:02}" for each in FIGURES)} <= set(STUDIES)


@pytest.mark.parametrize("name", POINTS)
def test_points(name: str) -> None:
    study = opened(name)
    points = [study.whole(setting) for setting in study.space]

    assert POINTS[name] == len(points) == len({tuple(sorted(each.items())) for each in points})
    for known in study.known:
        matching = [each for each in points if known.setting.items() <= each.items()]
        assert len(matching) == 1, known
    assert study.program.is_file()
    assert study.question
    assert study.pictures


def test_all_published_values_are_known() -> None:
    known: set[object] = {
        (name, tuple(each.setting.items()), each.metric, each.value)
        for name in POINTS
        for each in opened(name).known
    }
    wanted = {
        "figure_08": [*swiglu(), *hdl(), *camera_ready.swiglu(), *camera_ready.hdl()],
        "figure_09": [*tiling(64), *camera_ready.tiling(64)],
        "figure_10": [*tiling(1024), *camera_ready.tiling(1024)],
        "figure_12": [*multiplexing(), *camera_ready.multiplexing()],
        "figure_15": camera_ready.blocks(),
        "figure_19": camera_ready.tiling(64),
        "figure_20": camera_ready.tiling(1024),
        "figure_21": attention(),
    }

    for name, values in wanted.items():
        listed = {(name, tuple(each.setting.items()), each.metric, each.value) for each in values}
        assert listed
        assert listed <= known


def test_printed_points() -> None:
    tables = {
        "figure_08": [*camera_ready.swiglu(), *camera_ready.hdl()],
        "figures 9 and 19": list(camera_ready.tiling(64)),
        "figures 10 and 20": list(camera_ready.tiling(1024)),
        "figures 12 and 13": list(camera_ready.multiplexing()),
        "figure_15": list(camera_ready.blocks()),
    }
    assert [28, 30, 24, 17, 8] == [len(each) for each in tables.values()]
    for name, values in tables.items():
        seen = {(each.table, *sorted(each.setting.items()), each.metric) for each in values}
        # Simulator and hardware are of the same points.
        assert len(values) == len(seen) * (2 if name == "figure_08" else 1)


@pytest.mark.parametrize(
    ("name", "batch", "told"),
    [
        ("figure_19", 64, ["1.33x", "2.1x", "1.58x", "5.05x"]),
        ("figure_20", 1024, ["1.37x", "2.21x", "12.5x"]),
    ],
)
def test_annotations(name: str, batch: int, told: list[str]) -> None:
    study = opened(name)
    equations = list(closed_forms(batch))

    def numbers(setting: Mapping[str, Any]) -> dict[str, float]:
        return {
            each.metric: each.value for each in equations if each.setting.items() <= setting.items()
        }

    figure = Figure()
    study.pictures[0].draw(made(study, numbers), figure)
    texts = [each.get_text() for axes in figure.axes for each in axes.texts]

    assert told == [each for each in texts if each.endswith("x")]
    assert {"off-chip traffic (GB)"} == {axes.get_ylabel() for axes in figure.axes}


def test_cache_traces() -> None:
    for batch in (16, 64, 80):
        classes = [each.kv_class for each in cache_traces(batch)]
        assert ["low"] * 3 + ["med"] * 3 + ["high"] * 3 == classes
        assert {batch} == {each.batch for each in cache_traces(batch)}


@pytest.mark.parametrize("completed", ["all", "some", "none"])
@pytest.mark.parametrize("name", spread(POINTS, 4))
def test_pictures(name: str, completed: str) -> None:
    study = opened(name)
    metrics = {
        "cycles",
        "allocated_flops_per_cycle",
        "off_chip_bandwidth_utilization",
        "off_chip_traffic_artifact_bytes",
        "on_chip_requirement_artifact_bytes",
        "extra.flops_artifact",
        "extra.on_chip_requirement_artifact_active_bytes",
    }
    count = 0

    def numbers(_: object) -> dict[str, float] | None:
        nonlocal count
        count += 1
        missing = completed == "none" or (completed == "some" and count % 3 == 0)
        return None if missing else dict.fromkeys(metrics, 1e6 + 1e5 * count)

    result: StudyResult = made(study, numbers)
    for picture in study.pictures:
        figure = Figure(layout="constrained")
        picture.draw(result, figure)
        figure.draw_without_rendering()
        assert figure.axes[0].get_ylabel()
        assert all(axes.has_data() for axes in figure.axes)

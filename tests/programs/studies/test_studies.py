from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from matplotlib.figure import Figure
from paper import camera_ready
from paper.published import attention, closed_forms, hdl, multiplexing, swiglu, tiling

from tests.programs.studies.made import made, opened

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


@pytest.mark.parametrize("name", POINTS)
def test_points_are_different_and_have_their_published_values(name: str) -> None:
    study = opened(name)
    points = [study.whole(setting) for setting in study.space]

    assert POINTS[name] == len(points) == len({tuple(sorted(each.items())) for each in points})
    for known in study.known:
        matching = [each for each in points if known.setting.items() <= each.items()]
        assert len(matching) == 1, known
    assert study.program
    assert study.question
    assert study.pictures


def test_published_values_are_all_known() -> None:
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


@pytest.mark.parametrize(
    ("name", "batch", "expected_texts"),
    [
        ("figure_19", 64, ["1.33x", "2.1x", "1.58x", "5.05x"]),
        ("figure_20", 1024, ["1.37x", "2.21x", "12.5x"]),
    ],
)
def test_printed_annotations_follow_from_the_equations(
    name: str, batch: int, expected_texts: list[str]
) -> None:
    study = opened(name)
    equations = list(closed_forms(batch))

    def numbers(setting: Mapping[str, Any]) -> dict[str, float]:
        return {
            each.metric: each.value for each in equations if each.setting.items() <= setting.items()
        }

    figure = Figure()
    study.pictures[0].draw(made(study, numbers), figure)
    texts = [each.get_text() for axes in figure.axes for each in axes.texts]

    assert expected_texts == [each for each in texts if each.endswith("x")]
    assert {"off-chip traffic (GB)"} == {axes.get_ylabel() for axes in figure.axes}

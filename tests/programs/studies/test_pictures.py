"""Pictures of all studies and questions, drawn from made-up numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from fabric.explore.study.opening import StudyOptions, open_study
from tests.profiles import spread
from tests.programs.loading import PROGRAMS
from tests.programs.studies.made import made

BUSES = ("data", "refresh", "turnaround", "window", "conflict", "idle")
METRICS = (
    "allocated_flops_per_cycle",
    "compute_utilization",
    "cycles",
    "extra.flops_artifact",
    "extra.on_chip_requirement_artifact_active_bytes",
    "extra.on_chip_requirement_artifact_idle_bytes",
    "flops",
    "hbm_bytes_moved",
    *(f"hbm.{name}_bus_cycles" for name in BUSES),
    *(f"hbm.row_{name}" for name in ("hits", "misses", "conflicts")),
    "joules",
    "off_chip_bandwidth_utilization",
    "off_chip_traffic_artifact_bytes",
    "off_chip_traffic_bytes",
    "on_chip_requirement_artifact_bytes",
    "on_chip_requirement_bytes",
    "seconds",
)
FILES = sorted(
    file
    for folder in ("studies", "studies/long", "questions")
    for file in (PROGRAMS / folder).glob("*.py")
    if any(call in file.read_text("utf-8") for call in ("Picture(", "_study("))
)


@pytest.mark.parametrize(
    ("file", "completed"),
    spread(
        [
            (file, completed)
            for file in FILES
            for completed in ("all", "none")
            if completed == "all" or file.stem.startswith("figure_1")
        ],
        3,
    ),
)
def test_pictures_are_drawn_whichever_points_completed(file: Path, completed: str) -> None:
    study = open_study(file, StudyOptions())
    count = 0

    def numbers(_: object) -> dict[str, Any] | None:
        nonlocal count
        count += 1
        return None if completed == "none" else dict.fromkeys(METRICS, 1_000_000 + 100_000 * count)

    result = made(study, numbers)
    assert study.pictures
    for picture in study.pictures:
        figure = Figure(layout="constrained")
        picture.draw(result, figure)
        figure.draw_without_rendering()
        assert figure.axes

from __future__ import annotations

import json

import pytest

from fabric import Point, Study, grid, run_point
from tests.programs.loading import PROGRAMS


def test_study_varies_prices() -> None:
    study = Study(
        program=PROGRAMS / "simplified_moe.py",
        hardware=PROGRAMS / "hardware" / "paper_priced.toml",
        space=grid(**{"hardware.energy.hbm_picojoules_per_byte": [10, 20]}),
        minimize=("joules", "seconds"),
    )

    cheap, dear = (run_point(study, Point(at, study.space[at])) for at in range(2))

    report = json.loads(json.dumps(cheap.as_json()))
    assert report["cycles"] * 1e-9 == pytest.approx(report["seconds"])
    assert cheap.wall_seconds == report["wall_seconds"]
    moved_bytes = report["hbm_bytes_moved"]
    more = dear.numbers["joules"] - cheap.numbers["joules"]
    assert pytest.approx(10e-12 * moved_bytes) == more

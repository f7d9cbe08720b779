from __future__ import annotations

import csv
import statistics

import pytest

from fabric import simulate
from tests.programs.loading import DATA, program

HARDWARE = "hdl_validation.toml"


@pytest.mark.parametrize("row", range(10))
def test_swiglu_cycles_and_bytes_are_as_published(row: int) -> None:
    with (DATA / "published/swiglu.csv").open() as file:
        published = list(csv.DictReader(file))[row]
    tiles = {name: int(published[name]) for name in ("tile_batch", "tile_inter")}
    report = simulate(program("swiglu", HARDWARE, **tiles))

    assert report.cycles == pytest.approx(int(published["cycles"]), abs=1)
    assert float(published["off_chip_traffic_bytes"]) == report.off_chip_traffic_bytes


@pytest.mark.deep
def test_swiglu_errors_against_hardware_are_as_reported() -> None:
    with (DATA / "published/camera_ready/fig08.csv").open() as file:
        published = list(csv.DictReader(file))
    errors: dict[str, list[float]] = {"theirs": [], "flat": [], "banked": []}
    for row in published:
        tiles = {name: int(row[name]) for name in ("tile_batch", "tile_inter")}
        flat = simulate(program("swiglu", HARDWARE, **tiles))
        banked = simulate(program("swiglu", "hdl_as_run.toml", **tiles))
        assert flat.cycles is not None
        assert banked.cycles is not None
        cycles = (int(row["step_cycles"]), flat.cycles, banked.cycles)
        for found, each in zip(errors.values(), cycles, strict=True):
            found.append(100 * (each / int(row["hdl_cycles"]) - 1))

    means = {who: statistics.mean(map(abs, each)) for who, each in errors.items()}
    assert {"theirs": 4.34, "flat": 4.35, "banked": 3.24} == pytest.approx(means, abs=0.005)
    banked_errors = [-0.6, 5.6, -0.7, 7.1, 2.1, 3.3, -3.4]
    assert banked_errors == pytest.approx(errors["banked"], abs=0.05)
    assert -8.8 == pytest.approx(min(errors["theirs"]), abs=0.05)

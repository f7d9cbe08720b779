"""The SwiGLU layer, against the published cycles and bytes, and against numpy."""

from __future__ import annotations

import csv
import statistics

import pytest

from fabric import ConfigurationError, simulate
from tests.profiles import spread
from tests.programs.loading import DATA, program

HARDWARE = "hdl_validation.toml"


class TestSwiglu:
    @pytest.mark.parametrize("row", range(10))
    def test_published(self, row: int) -> None:
        with (DATA / "published/swiglu.csv").open() as file:
            published = list(csv.DictReader(file))[row]
        tiles = {name: int(published[name]) for name in ("tile_batch", "tile_inter")}
        report = simulate(program("swiglu", HARDWARE, **tiles))

        assert report.cycles == pytest.approx(int(published["cycles"]), abs=1)
        assert float(published["off_chip_traffic_bytes"]) == report.off_chip_traffic_bytes

    @pytest.mark.deep
    def test_published_hardware(self) -> None:
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

    @pytest.mark.parametrize("tile_batch", [16, 64])
    @pytest.mark.parametrize("tile_inter", spread([16, 64, 256], 2))
    @pytest.mark.parametrize("by_columns", [False, True])
    def test_functional_mode(self, tile_batch: int, tile_inter: int, *, by_columns: bool) -> None:
        given = {"tile_batch": tile_batch, "tile_inter": tile_inter, "by_columns": by_columns}
        functional = simulate(program("swiglu", HARDWARE, **given), mode="functional")
        timing = simulate(program("swiglu", HARDWARE, **given))

        assert functional.verified is True
        assert timing.cycles == functional.cycles
        assert timing.units == functional.units

    @pytest.mark.parametrize(
        ("name", "tile", "whole"),
        [
            ("tile_batch", 48, "batch=64"),
            ("tile_batch", 0, "batch=64"),
            ("tile_inter", 96, "inter=512"),
        ],
    )
    def test_tiles_that_do_not_fit(self, name: str, tile: int, whole: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            program("swiglu", None, **{name: tile})
        assert f"{name} is {tile}: expected a divisor of {whole}" == caught.value.message

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"batch": 0}, "batch is 0: expected at least 1"),
            ({"hidden": -1}, "hidden is -1: expected at least 1"),
            ({"inter": 0}, "inter is 0: expected at least 1"),
            ({"seed": -1}, "seed is -1: expected at least 0"),
            (
                {"hidden": 10**30},
                f"batch, hidden and inter are 64, {10**30} and 512: expected at most 2,147,483,647",
            ),
        ],
    )
    def test_sizes_that_cannot_be(self, given: dict[str, int], message: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            program("swiglu", None, **given)
        assert message == caught.value.message

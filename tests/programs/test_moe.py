"""The mixture-of-experts layer, against numpy, and its parameters and routing files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import ConfigurationError, Report, simulate
from fabric.shell.cli import main
from tests.profiles import crossed, spread
from tests.programs.loading import program
from tests.schedules import SCHEDULES, schedule

FILE = Path(__file__).parents[2] / "programs" / "moe.py"

SETTINGS: dict[str, dict[str, Any]] = {
    "static": {"tile_n": 4},
    "static, wide tiles": {"tile_n": 64},
    "one token, most experts empty": {"batch": 1},
    "dynamic": {"tiling": "dynamic", "tile_n": 0},
    "two regions": {"regions": 2, "tile_n": 8},
    "two regions, dynamic": {"regions": 2, "tiling": "dynamic"},
    "one region": {"regions": 1, "tile_n": 32},
    "small weight tiles, deep channels": {"tile_f": 16, "channel_depth": 64},
    "channels of one element": {"channel_depth": 1},
    "own sizes": {"experts": 6, "top_k": 3, "hidden": 24, "inter": 40, "tile_f": 20, "tile_n": 4},
}


def run(mode: str = "functional", **parameters: Any) -> Report:
    return simulate(program("moe", model="tiny", **{"batch": 24, **parameters}), mode=mode)


class TestMoe:
    @pytest.mark.parametrize("setting", spread(SETTINGS, 5))
    def test_is_verified(self, setting: str) -> None:
        functional = run(**SETTINGS[setting])
        timing = run("timing", **SETTINGS[setting])

        assert ("completed", True) == (functional.status, functional.verified)
        assert timing.verified is None
        assert (timing.cycles, timing.units) == (functional.cycles, functional.units)
        assert timing.channels_counters == functional.channels_counters

    @pytest.mark.parametrize(
        ("setting", "name"), crossed(["static", "two regions, dynamic"], SCHEDULES, 1)
    )
    def test_any_schedule(self, setting: str, name: str | int) -> None:
        with schedule(name):
            report = run(**SETTINGS[setting])

        assert replace(run(**SETTINGS[setting]), wall_seconds=report.wall_seconds) == report

    def test_weights_are_drawn_once(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        drawn: list[tuple[int, ...]] = []
        generator = np.random.default_rng

        def counted(seed: tuple[int, ...]) -> np.random.Generator:
            drawn.append(seed)
            return generator(seed)

        monkeypatch.setattr(np.random, "default_rng", counted)
        report = run(tile_n=8, routing=routing(tmp_path, np.tile([5, 2], (24, 1))))

        assert report.verified is True
        weights = sorted(each for each in drawn if len(each) == 4)
        assert [(0, 1, part, expert) for part in range(3) for expert in (2, 5)] == weights

    def test_everything_to_one_expert(self, tmp_path: Path) -> None:
        file = routing(tmp_path, np.tile([5, 2], (24, 1)))
        report = run(tile_n=8, routing=file)

        assert report.verified is True
        assert report.extra["flops_artifact"] == 48 * 128 * (14 * 64 + 1)

    @pytest.mark.deep
    def test_a_large_batch_needs_deeper_channels(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        run_it = ["run", str(FILE), "-p", "batch=256", "--log-dir", str(tmp_path), "--json"]
        assert 3 == main(run_it)
        every = json.loads(capsys.readouterr().out)["deadlock"]["remedy"]["every_channel"]
        assert {
            "before": 2,
            "after": 4,
            "cycles": 2_127_827,
            "write": "-p channel_depth=4",
        } == every
        assert 0 == main([*run_it, *every["write"].split()])

        assert 2_127_827 == json.loads(capsys.readouterr().out)["cycles"]

    def test_narrow_tiles_in_few_regions_can_deadlock(self, tmp_path: Path) -> None:
        choice = np.tile([1, 2], (64, 1))
        choice[0] = [0, 1]
        report = run("timing", batch=64, regions=1, tile_n=2, routing=routing(tmp_path, choice))

        assert (report.status, report.exit_status) == ("deadlock", 3)

    def test_numbers_of_the_artifact_without_idle_experts(self, tmp_path: Path) -> None:
        file = routing(tmp_path, np.tile([0, 3], (24, 1)))
        name = "on_chip_requirement_artifact_active_bytes"
        packed = (2 * 8 + 2 * 8) * 64 * 4
        loads = 3 * 64 * 64 * 2
        ends = 64 * 2 + 2 + 2 * 64 * 4

        assert run("timing", regions=2, tile_n=8, routing=file).extra[name] == packed + loads + ends
        assert run("timing", regions=2, tiling="dynamic", routing=file).extra[name] is None


def routing(folder: Path, choice: Any) -> Path:
    file = folder / "routing.npz"
    np.savez(file, data=choice)
    return file


class TestParameters:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"batch": 0}, "batch is 0: expected at least 1"),
            ({"tile_n": 0}, "tile_n is 0: expected at least 1"),
            ({"tile_n": 10**30}, f"tile_n is {10**30}: expected at most 2,147,483,647"),
            ({"seed": -1}, "seed is -1: expected at least 0"),
            ({"tile_f": 48}, "tile_f is 48: expected a divisor of the inner dimension, 128"),
            ({"regions": 3}, "regions is 3: expected a divisor of the number of experts, 8"),
            ({"regions": 0}, "regions is 0: expected a divisor of the number of experts, 8"),
            ({"hidden": 0}, "hidden is 0: expected 1 to 2,147,483,647"),
            ({"top_k": 9}, "top_k is 9: expected at most the number of experts, 8"),
            ({"experts": 1}, "top_k is 2: expected at most the number of experts, 1"),
        ],
    )
    def test_values_that_cannot_be(self, given: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            program("moe", model="tiny", **given)
        assert message == caught.value.message


class TestRoutingFiles:
    @pytest.mark.parametrize(
        ("choice", "message"),
        [
            (np.zeros((4, 3), int), "data has shape [4, 3]: expected [tokens, 2]"),
            (np.zeros(4, int), "data has shape [4]: expected [tokens, 2]"),
            (np.zeros((4, 2)), "data is of type float64: expected integers"),
            (np.tile([0, 1], (3, 1)), "data is [3, 2]: expected at least batch=4 rows"),
            (np.array([[0, 1]] * 3 + [[0, 8]]), "row 3 names expert 8: expected 0 to 7"),
            (np.array([[0, -1]] * 4), "row 0 names expert -1: expected 0 to 7"),
            (
                np.array([[0, 2**64 - 1]] * 4, np.uint64),
                "row 0 names expert 18446744073709551615: expected 0 to 7",
            ),
            (
                np.array([[0, 1]] * 2 + [[7, 7]] * 2),
                "row 2 names expert 7 twice: expected different experts in a row",
            ),
        ],
    )
    def test_arrays_that_are_no_routing(self, tmp_path: Path, choice: Any, message: str) -> None:
        file = routing(tmp_path, choice)
        with pytest.raises(ConfigurationError) as caught:
            program("moe", model="tiny", batch=4, routing=file)
        assert f"routing file {file}: {message}" == caught.value.message

    def test_another_array(self, tmp_path: Path) -> None:
        file = tmp_path / "other.npz"
        np.savez(file, choices=np.zeros((4, 2), int))
        with pytest.raises(ConfigurationError) as caught:
            program("moe", model="tiny", batch=4, routing=file)
        assert caught.value.message == (
            f"routing file {file}: holds choices: expected an .npz file with an array data"
        )

    def test_another_format(self, tmp_path: Path) -> None:
        file = tmp_path / "routing.npy"
        np.save(file, np.zeros((4, 2), int))
        with pytest.raises(ConfigurationError) as caught:
            program("moe", model="tiny", batch=4, routing=file)
        assert caught.value.message == (
            f"routing file {file}: holds a single array: expected an .npz file with an array data"
        )

    def test_no_file(self, tmp_path: Path) -> None:
        file = tmp_path / "none.npz"
        with pytest.raises(ConfigurationError) as caught:
            program("moe", model="tiny", batch=4, routing=file)
        assert caught.value.message == (
            f"routing file {file}: cannot be read (No such file or directory): "
            "expected an .npz file with an array data"
        )

    def test_no_array_at_all(self, tmp_path: Path) -> None:
        file = tmp_path / "text.npz"
        file.write_text("expert, expert")
        with pytest.raises(ConfigurationError) as caught:
            program("moe", model="tiny", batch=4, routing=file)
        assert caught.value.message == (
            f"routing file {file}: is no file of numbers: expected an .npz file with an array data"
        )


def test_drawn_routing_depends_on_the_seed_only() -> None:
    cycles = [run("timing", seed=seed).cycles for seed in (0, 0, 1)]
    assert cycles[0] == cycles[1] != cycles[2]

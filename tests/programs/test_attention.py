"""Decode attention, against numpy, and its parameters and cache-length files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import ConfigurationError, Report, simulate
from tests.profiles import crossed
from tests.programs.loading import program
from tests.schedules import SCHEDULES, schedule

STRATEGIES = ("coarse", "interleaved", "dynamic")

LENGTHS = {
    "one request": [5],
    "fewer requests than regions": [3, 100],
    "new tokens in new tiles": [0, 32, 64, 31, 33, 0, 96],
    "more than a block of 16": [7 * n % 90 for n in range(18)],
}


def lengths(folder: Path, values: Any) -> Path:
    file = folder / "lengths.npy"
    np.save(file, np.array(values))
    return file


def run(file: Path, strategy: str, mode: str = "functional", **parameters: Any) -> Report:
    return simulate(program("attention", strategy=strategy, kv=file, **parameters), mode=mode)


class TestAttention:
    @pytest.mark.parametrize(("values", "strategy"), crossed([*LENGTHS], STRATEGIES, 1))
    def test_is_verified(self, tmp_path: Path, strategy: str, values: str) -> None:
        file = lengths(tmp_path, LENGTHS[values])
        functional = run(file, strategy)
        timing = run(file, strategy, "timing")

        assert ("completed", True, ()) == (
            functional.status,
            functional.verified,
            functional.warnings,
        )
        assert (timing.cycles, timing.units) == (functional.cycles, functional.units)
        assert timing.channels_counters == functional.channels_counters

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_other_sizes(self, tmp_path: Path, strategy: str) -> None:
        file = lengths(tmp_path, [40, 3, 17, 9, 25])

        assert run(file, strategy, tile_n=8, channel_depth=4, regions=3).verified is True
        assert run(file, strategy, heads=3, head_dim=20).verified is True
        assert run(file, strategy, tile_n=5, regions=1, requests=4).verified is True

    @pytest.mark.parametrize(("strategy", "name"), crossed(STRATEGIES, SCHEDULES, 1))
    def test_any_schedule(self, tmp_path: Path, strategy: str, name: str | int) -> None:
        file = lengths(tmp_path, LENGTHS["more than a block of 16"])
        with schedule(name):
            report = run(file, strategy)

        assert replace(run(file, strategy), wall_seconds=report.wall_seconds) == report

    def test_coarse_closed_form(self, tmp_path: Path) -> None:
        values = [100, 200, 40]
        tiles = sum(value // 32 + 1 for value in values)

        assert run(lengths(tmp_path, values), "coarse", "timing").cycles == 82 * tiles + 169 * 3 + 4

    def test_coarse_builds_regions_with_requests_only(self, tmp_path: Path) -> None:
        two, four = (
            run(lengths(tmp_path, [9] * count), "coarse", "timing").operators for count in (17, 49)
        )
        assert two is not None
        assert two * 2 == four


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("requests", 0, "at least 1"),
            ("regions", 0, "at least 1"),
            ("tile_n", 0, "at least 1"),
            ("seed", -1, "at least 0"),
            ("regions", 2**31, "at most 2,147,483,647"),
            ("tile_n", 10**30, "at most 2,147,483,647"),
        ],
    )
    def test_values_that_cannot_be(self, name: str, value: int, expected: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            program("attention", None, **{name: value})
        assert f"{name} is {value}: expected {expected}" == caught.value.message


class TestLengthFiles:
    @pytest.mark.parametrize(
        ("values", "given", "message"),
        [
            ([3, -1], {}, "request 1 has length -1: expected 0 to 2,147,483,647"),
            (
                np.array([3, 2**64 - 1], np.uint64),
                {},
                "request 1 has length 18446744073709551615: expected 0 to 2,147,483,647",
            ),
            ([3.5], {}, "holds float64 [1]: expected integers [requests]"),
            ([[3]], {}, "holds int64 [1, 1]: expected integers [requests]"),
            ([3], {"requests": 2}, "holds an array [1]: expected a length of at least requests=2"),
            (np.zeros(0, int), {}, "holds an array [0]: expected a length of at least 1"),
        ],
    )
    def test_arrays_that_are_no_lengths(
        self, tmp_path: Path, values: Any, given: dict[str, Any], message: str
    ) -> None:
        file = lengths(tmp_path, values)
        with pytest.raises(ConfigurationError) as caught:
            program("attention", kv=file, **given)
        assert f"cache-length file {file}: {message}" == caught.value.message

    def test_no_file(self, tmp_path: Path) -> None:
        file = tmp_path / "none.npy"
        with pytest.raises(ConfigurationError) as caught:
            program("attention", kv=file)
        assert caught.value.message == (
            f"cache-length file {file}: cannot be read (No such file or directory): "
            "expected an .npy file of lengths"
        )

    def test_an_archive(self, tmp_path: Path) -> None:
        file = tmp_path / "lengths.npz"
        np.savez(file, data=np.zeros(3, int))
        with pytest.raises(ConfigurationError) as caught:
            program("attention", kv=file)
        assert caught.value.message == (
            f"cache-length file {file}: holds several arrays: expected an .npy file of lengths"
        )


def test_drawn_lengths_depend_on_the_seed_only() -> None:
    cycles = [simulate(program("attention", requests=4, seed=seed)).cycles for seed in (0, 0, 1)]
    assert cycles[0] == cycles[1] != cycles[2]

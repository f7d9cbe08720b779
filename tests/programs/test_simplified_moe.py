"""The paper's simplified mixture of experts, against numpy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabric import ConfigurationError, simulate
from tests.programs.loading import program
from tests.schedules import SCHEDULES, schedule


class TestSimplifiedMoe:
    @pytest.mark.parametrize("tokens", [0, 1, 4, 10, 97])
    @pytest.mark.parametrize("experts", [1, 2, 5])
    def test_is_verified(self, tokens: int, experts: int) -> None:
        report = simulate(program("simplified_moe", tokens=tokens, experts=experts))

        assert ("completed", "functional", True) == (report.status, report.mode, report.verified)

    def test_timing_mode(self) -> None:
        functional = simulate(program("simplified_moe"))
        timing = simulate(program("simplified_moe"), mode="timing")

        assert functional.cycles == timing.cycles
        assert functional.units == timing.units
        assert timing.verified is None

    @pytest.mark.parametrize(
        ("given", "found"),
        [
            ({"tokens": -1}, "tokens=-1, experts=2, seed=0"),
            ({"experts": 0}, "tokens=10, experts=0, seed=0"),
            ({"seed": -1}, "tokens=10, experts=2, seed=-1"),
        ],
    )
    def test_values_that_cannot_be(self, given: dict[str, int], found: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            program("simplified_moe", None, **given)
        assert f"{found}: expected at least 0, 1 and 0" == caught.value.message

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_any_schedule(self, name: str | int) -> None:
        with schedule(name):
            report = simulate(program("simplified_moe", tokens=30))

        assert (
            replace(
                simulate(program("simplified_moe", tokens=30)), wall_seconds=report.wall_seconds
            )
            == report
        )

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np

from fabric import Report, simulate
from tests.fabric.small_program import build
from tests.fabric.test_outputs import copied


class TestEqual:
    def test_reports_with_other_seconds_and_folders_are_equal(self, tmp_path: Path) -> None:
        first = simulate(build(), mode="functional")
        second = simulate(build(), mode="functional", log_dir=tmp_path)

        assert first.log_dir != second.log_dir
        assert first == second
        assert hash(first) == hash(second)
        assert 1 == len({first, second, replace(first, wall_seconds=7.0)})

    def test_reports_of_different_runs_differ(self) -> None:
        report = simulate(build(), mode="functional")
        others = [
            simulate(build(stop=4), mode="functional"),
            simulate(build(period=11), mode="functional"),
            simulate(build(), mode="timing"),
            simulate(build(fault="wrong"), mode="functional"),
            simulate(build(), mode="functional", depths={"total_1.0": 3}),
        ]
        assert all(report != other for other in others)

    def test_reports_with_different_outputs_differ(self) -> None:
        zeros, ones = (simulate(copied(each((2, 32)))) for each in (np.zeros, np.ones))

        assert zeros.cycles == ones.cycles
        assert zeros != ones
        assert zeros == simulate(copied(np.zeros((2, 32))))
        assert 2 == len({zeros, ones, simulate(copied(np.ones((2, 32))))})

    def test_reports_with_nan_outputs_are_equal(self) -> None:
        holes = np.full((2, 32), np.nan)

        assert simulate(copied(holes)) == simulate(copied(holes))

    def test_reports_with_nested_numbers_are_compared(self) -> None:
        def report(*parts: float) -> Report:
            wired = build()
            wired.extra["loss"] = lambda: [float("nan")]
            x = [np.array(parts), {"y": (np.float32("nan"), np.array([None, 1]))}]
            return simulate(wired, parameters={"x": x, "rate": float("nan")})

        assert report(1, np.nan) == report(1, np.nan)
        assert report(1, np.nan) != report(2, np.nan)
        assert report(1, np.nan) != report(1)

    def test_pickled_report_is_equal(self) -> None:
        report = simulate(copied(np.ones((2, 32))))

        for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
            assert report == again
            assert not again.outputs["y"].flags.writeable  # type: ignore[union-attr]

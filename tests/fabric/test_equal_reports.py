"""Reports are values: they compare and hash by what the run did, and are told in one line."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np

from fabric import Feedback, Program, Report, StreamType, simulate
from operators import LinearOffChipLoad, LinearOffChipStore
from tests.fabric.small_program import NUMBER, build
from tests.fabric.test_outputs import copied


class TestEqual:
    def test_seconds_and_folders(self, tmp_path: Path) -> None:
        """They do not count, whether the run was kept or not."""
        first = simulate(build(), mode="functional")
        second = simulate(build(), mode="functional", log_dir=tmp_path)

        assert first.log_dir != second.log_dir
        assert first == second
        assert hash(first) == hash(second)
        assert 1 == len({first, second, replace(first, wall_seconds=7.0)})

    def test_what_could_not_be_written(self) -> None:
        """It says where the run was kept, not what it did; another warning does."""
        report = simulate(build(), mode="functional")
        lost = ("logs/small-1: report.json could not be written: No space left on device",)

        assert report == replace(report, warnings=lost, unwritten=lost)
        assert report != replace(report, warnings=lost)

    def test_what_it_did(self) -> None:
        """Other cycles, another mode, other depths, other data: another report."""
        report = simulate(build(), mode="functional")
        others = [
            simulate(build(stop=4), mode="functional"),
            simulate(build(period=11), mode="functional"),
            simulate(build(), mode="timing"),
            simulate(build(fault="wrong"), mode="functional"),
            simulate(build(), mode="functional", depths={"total_1.0": 3}),
        ]
        assert all(report != other for other in others)

    def test_stored_data(self) -> None:
        """Programs that store other numbers in the same cycles did something else."""
        zeros, ones = (simulate(copied(each((2, 32)))) for each in (np.zeros, np.ones))

        assert zeros.cycles == ones.cycles
        assert zeros != ones
        assert zeros == simulate(copied(np.zeros((2, 32))))
        assert 2 == len({zeros, ones, simulate(copied(np.ones((2, 32))))})

    def test_not_a_number(self) -> None:
        """What is stored is compared as bytes: a NaN is equal to itself."""
        holes = np.full((2, 32), np.nan)

        assert simulate(copied(holes)) == simulate(copied(holes))

    def test_arrays_as_parameters(self) -> None:
        """Parameters may be anything."""
        one, same, other = (
            simulate(build(), parameters={"x": x, "n": 3})
            for x in (np.zeros(4), np.zeros(4), np.ones(4))
        )
        assert one == same
        assert one != other
        assert hash(one) == hash(same)

    def test_numbers_anywhere(self) -> None:
        """Arrays in lists and what is not a number are compared like all others."""

        def report(*parts: float) -> Report:
            wired = build()
            wired.extra["loss"] = lambda: [float("nan")]
            x = [np.array(parts), {"y": (np.float32("nan"), np.array([None, 1]))}]
            return simulate(wired, parameters={"x": x, "rate": float("nan")})

        assert report(1, np.nan) == report(1, np.nan)
        assert report(1, np.nan) != report(2, np.nan)
        assert report(1, np.nan) != report(1)

    def test_kinds_of_lists(self) -> None:
        """A list is no tuple, a shorter one another, and so is a dictionary with other keys."""

        def report(x: object) -> Report:
            return Report(program="", parameters={"x": x})

        nan = float("nan")
        alike = [[1, nan], (1, nan), {"a": nan}, {"b": nan}, [1, nan, 2], np.array([nan, 1]), nan]
        for at, one in enumerate(alike):
            for number, other in enumerate(alike):
                assert (report(one) == report(other)) == (at == number)

    def test_deadlocks(self) -> None:
        """Two runs that stop alike are equal."""
        reports = {simulate(build(fault="stuck")) for _ in range(2)}

        assert ["deadlock"] == [report.status for report in reports]

    def test_something_else(self) -> None:
        """A report is equal to reports only."""
        assert Report(program="") != 3
        assert Report(program="").outputs != {}

    def test_pickled(self) -> None:
        """It comes back as it was, and cannot be written to either."""
        report = simulate(copied(np.ones((2, 32))))

        for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
            assert report == again
            assert not again.outputs["y"].flags.writeable  # type: ignore[union-attr]


class TestInShort:
    def test_report(self) -> None:
        """Its outcome, in one line, whatever it is called."""
        with Program("a\nb", mode="functional") as program:
            LinearOffChipStore("y\n")(LinearOffChipLoad(np.zeros((2, 32)), (1, 32))())
        report = simulate(program)

        assert (
            f"Report(name='a\\\\nb', status='completed', cycles={report.cycles}, verified=None)"
            == repr(report)
        )
        assert "Outputs({'y\\n': [2, 32] of bfloat16})" == repr(report.outputs)

    def test_program(self) -> None:
        """Its name and how large it is; two are equal only if they are one."""
        program, same = build(), build()

        assert "Program(name='small', operators=2, symbols=0)" == repr(program)
        assert program != same
        assert 2 == len({program, same})

    def test_stream(self) -> None:
        """Name, shape and element; also of a feedback and of an assumption."""
        with Program("p"):
            loop = Feedback(StreamType((2,), NUMBER))
            x = LinearOffChipLoad(np.zeros((2, 32)), (1, 32), name="x")()

            assert "Stream(name='x.0', shape='[1, 2, 1]', value='1x32 bfloat16')" == repr(x)
            assert "Feedback(name='feedback', shape='[2]', value='1x1 uint64')" == repr(loop)
            assert repr(x.assume(1, 2, 1)).startswith("Assumed(name='x.0', shape='[1, 2, 1]'")

"""Several inputs: which points there are, what they have in common, which of them are held out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, FabricError, Program
from fabric.explore.sizing.problem import Limit, Oracle, Problem
from fabric.explore.sizing.running import (
    check_alike,
    cycles_of,
    held_out,
    programs_of,
    recorded,
    unbounded,
)
from fabric.explore.sizing.size import variables_of
from fabric.shell.cli import main
from fabric.timing.retiming.retimer import Retimer
from operators import Consumer, LinearOffChipLoad

MOE = Path("programs/moe.py")
TINY = ["model=tiny", "batch=8"]


class TestPrograms:
    """``programs_of``."""

    def test_names(self) -> None:
        """Points are named after what varies; files without their folders where that tells all."""
        traces = "programs/data/traces/kv_lengths/b16"
        files = [f"{traces}/conv_stdev0174_1845_1860.npy", f"{traces}/conv_stdev0198_1443_1458.npy"]

        found = programs_of(
            Path("programs/attention.py"),
            ["requests=2", "strategy=coarse"],
            ["tile_n=32,64", f"kv={','.join(files)}"],
        )

        assert list(found) == [
            f"tile_n={rows}, kv={file.rpartition('/')[2]}" for rows in (32, 64) for file in files
        ]

    def test_data(self) -> None:
        """Each point has its own data: as a program that is given it has."""
        found = programs_of(MOE, TINY, ["seed=1,2"])

        cycles = [cycles_of(program, {}) for program in found.values()]

        for seed, (name, taken) in enumerate(zip(found, cycles, strict=True), 1):
            (alone,) = programs_of(MOE, TINY, [f"seed={seed}"]).values()
            assert name == f"seed={seed}"
            assert cycles_of(alone, {}) == taken

    def test_hardware(self) -> None:
        """A key of the hardware may vary, too."""
        wide, narrow = programs_of(MOE, TINY, ["hardware.hbm.channels=32,2"]).values()

        assert (cycles_of(wide, {}) or 0) < (cycles_of(narrow, {}) or 0)

    @pytest.mark.parametrize(
        ("parameters", "vary", "told"),
        [
            ([], [], "is not a study: expected study"),
            (["depth.accum_1.0=3"], ["seed=1,2"], r"^depth\.accum_1\.0 is stated: depths are"),
            ([], ["depth.accum_1.0=3,4"], r"^depth\.accum_1\.0 is stated: depths are"),
            (["seed=3"], ["seed=1,2"], "seed is an input and fixed"),
            ([], ["seeds=1,2"], r"takes no parameter seeds"),
            (
                [],
                ["regions=2,4"],
                r"^regions=2 has [\d,]+ channels and regions=4 has [\d,]+ channels: "
                r"regions=2 alone has merge_0\.2, merge_0\.3, merge_1\.2 and 1 more; "
                r"regions=4 alone has .*: expected points that are wired alike, whose data differ$",
            ),
        ],
    )
    def test_wrong(self, parameters: list[str], vary: list[str], told: str) -> None:
        """What cannot be sized together is refused."""
        with pytest.raises(FabricError, match=told):
            programs_of(MOE, [*TINY, *parameters], vary)


@pytest.mark.parametrize("over", ["seed=3,1", "seed=5,4", "seed=1,3"])
def test_methods_name_the_worst_input(over: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The cycles of a row are those of the input that decides whether the goal is kept."""
    command = ["size", str(MOE), *(f"-p{each}" for each in TINY), "--over", over, "--json"]
    main(command)
    found = json.loads(capsys.readouterr().out)
    limits = {each["name"]: each["limit_cycles"] for each in found["inputs"]}
    for each in (*found["methods"], found):
        kept = each["cycles"] is not None and each["cycles"] <= limits[each["input"]]
        assert kept == each["keeps"]
    assert not all(each["keeps"] for each in found["methods"])


class TestAlike:
    """``check_alike``."""

    def test_one_more(self) -> None:
        """A channel that only one has is named."""
        one, two = _loads(1), _loads(2)

        with pytest.raises(
            ConfigurationError,
            match=r"^one has 1 channel and two has 2 channels: two alone has consumer_2\.0: exp",
        ):
            check_alike({"one": one, "two": two})

        check_alike({"two": two, "again": _loads(2)})

    @pytest.mark.parametrize(
        ("more", "told"), [(3, "consumer_4.0: exp"), (4, "consumer_4.0 and 1 m")]
    )
    def test_three_more(self, more: int, told: str) -> None:
        """Three are named, and others counted."""
        with pytest.raises(ConfigurationError) as caught:
            check_alike({"one": _loads(1), "two": _loads(1 + more)})

        assert f"two alone has consumer_2.0, consumer_3.0, {told}" in caught.value.message


class TestHeldOut:
    """``held_out``."""

    @given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
    def test_all_there(self, drawn: tuple[int, int]) -> None:
        """So many are held out, and never the first; more of them are these and others."""
        total, count = drawn
        points = {f"seed={index}": index for index in range(total)}

        sized, others = held_out(points, count)

        assert len(others) == count
        assert sized | others == points
        assert list(sized) == [name for name in points if name in sized]
        assert "seed=0" in sized
        assert others.keys() <= held_out(points, min(count + 1, total - 1))[1].keys()

    @pytest.mark.parametrize("total", [8, 12, 30, 100])
    def test_spread(self, total: int) -> None:
        """A quarter held out leaves no long stretch of either kind: the ends are not left out."""
        points = dict.fromkeys(map(str, range(total)))

        apart = sorted(int(name) for name in held_out(points, total // 4)[1])

        gaps = [b - a for a, b in zip([-1, *apart], [*apart, total], strict=True)]
        assert max(gaps) <= 6

    @pytest.mark.parametrize("inner", [2, 3, 4, 5, 8])
    def test_grids(self, inner: int) -> None:
        """Of a grid's inner axis it is not always the same value that is held out."""
        points = dict.fromkeys(map(str, range(6 * inner)))

        apart = {int(name) % inner for name in held_out(points, 2 * inner)[1]}

        assert len(apart) > 1

    @pytest.mark.parametrize("count", [-1, 3, 4])
    def test_too_many(self, count: int) -> None:
        """One at least is sized on."""
        with pytest.raises(ConfigurationError, match=f"^--hold-out {count}: of 3 points at least"):
            held_out({"a": 1, "b": 2, "c": 3}, count)


class TestSeveralRecords:
    """Problems with a record of each input."""

    @pytest.mark.parametrize("seeds", ["1..4", "4,3,2,1"])
    def test_all_of_them(self, seeds: str) -> None:
        """Depths keep all limits where they keep each: as each record says alone."""
        programs = programs_of(MOE, TINY, [f"seed={seeds}"])
        records = [recorded(each, unbounded(each)).record for each in programs.values()]
        limits = tuple(Limit(record, record.cycles) for record in records)
        problem = Problem(variables_of(records, {}, ()), limits, lambda slots, size: slots * size)
        oracle = Oracle(problem)
        kept = []
        for depth in range(1, 17):
            depths = tuple(min(depth, variable.most) for variable in problem.variables)
            options = problem.options(depths)
            alone = [
                Retimer(each).time([options[channel.option] for channel in each.channels]).cycles
                for each in records
            ]
            each_keeps = [
                cycles is not None and cycles <= limit.cycles
                for cycles, limit in zip(alone, limits, strict=True)
            ]
            kept.append(each_keeps)

            assert oracle.keeps(depths) == all(each_keeps)
            assert list(oracle.cycles(depths)) == alone

        assert {tuple(set(each)) for each in kept} == {(True,), (False,), (False, True)}


def _loads(count: int) -> Program:
    with Program("loads") as program:
        for _ in range(count):
            Consumer()(LinearOffChipLoad(np.ones((1, 1)), tile=(1, 1))())
    return program

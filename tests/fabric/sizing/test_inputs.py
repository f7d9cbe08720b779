from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ConfigurationError, FabricError, Program
from fabric.analysis.depths.problem import Limit, Oracle, Problem
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
from tests.profiles import spread

MOE = Path("programs/moe.py")
TINY = ["model=tiny", "batch=8"]


def test_points_over_a_seed_have_their_own_data() -> None:
    found = programs_of(MOE, TINY, ["seed=1,2"])

    cycles = [cycles_of(program, {}) for program in found.values()]

    for seed, (name, taken) in enumerate(zip(found, cycles, strict=True), 1):
        (alone,) = programs_of(MOE, TINY, [f"seed={seed}"]).values()
        assert name == f"seed={seed}"
        assert cycles_of(alone, {}) == taken


def test_points_over_a_hardware_key_have_their_own_hardware() -> None:
    wide, narrow = programs_of(MOE, TINY, ["hardware.hbm.channels=32,2"]).values()

    assert (cycles_of(wide, {}) or 0) < (cycles_of(narrow, {}) or 0)


@pytest.mark.parametrize(
    ("parameters", "vary", "told"),
    [
        ([], [], "is not a study: expected study"),
        (["depth.accum_1.0=3"], ["seed=1,2"], r"^depth\.accum_1\.0 is stated: sizing finds"),
        ([], ["depth.accum_1.0=3,4"], r"^depth\.accum_1\.0 is stated: sizing finds"),
        (["seed=3"], ["seed=1,2"], "seed is an input and fixed"),
        ([], ["seeds=1,2"], r"takes no parameter seeds"),
        (
            [],
            ["regions=2,4"],
            r"^regions=2 has [\d,]+ channels and regions=4 has [\d,]+ channels: "
            r"regions=2 alone has merge_0\.2, merge_0\.3, merge_1\.2 and 1 more; "
            r"regions=4 alone has .*: expected points that are wired alike, with other data$",
        ),
    ],
)
def test_points_that_differ_in_wiring_are_refused(
    parameters: list[str], vary: list[str], told: str
) -> None:
    with pytest.raises(FabricError, match=told):
        programs_of(MOE, [*TINY, *parameters], vary)


@pytest.mark.deep
@pytest.mark.parametrize("over", spread(["seed=3,1", "seed=5,4"], 1))
def test_methods_name_the_worst_input(over: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["size", str(MOE), "--method", "paper-lp", "--over", over, "--json"]
    main([*command, *(f"-p{each}" for each in TINY)])
    found = json.loads(capsys.readouterr().out)
    limits = {each["name"]: each["limit_cycles"] for each in found["inputs"]}
    for each in (*found["methods"], found):
        kept = each["cycles"] is not None and each["cycles"] <= limits[each["input"]]
        assert kept == each["keeps"]
    assert not all(each["keeps"] for each in found["methods"])


def test_programs_with_other_channels_are_refused_by_name() -> None:
    one, two = _loads(1), _loads(2)

    with pytest.raises(
        ConfigurationError,
        match=r"^one has 1 channel and two has 2 channels: two alone has consumer_2\.0: exp",
    ):
        check_alike({"one": one, "two": two})

    check_alike({"two": two, "again": _loads(2)})


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_held_out_points_are_those_asked_for_and_never_the_first(drawn: tuple[int, int]) -> None:
    total, count = drawn
    points = {f"seed={index}": index for index in range(total)}

    sized, others = held_out(points, count)

    assert len(others) == count
    assert sized | others == points
    assert list(sized) == [name for name in points if name in sized]
    assert "seed=0" in sized
    assert others.keys() <= held_out(points, min(count + 1, total - 1))[1].keys()


@pytest.mark.parametrize("count", [-1, 3, 4])
def test_holding_out_all_points_is_refused(count: int) -> None:
    with pytest.raises(ConfigurationError, match=f"^--hold-out {count}: of 3 points at least"):
        held_out({"a": 1, "b": 2, "c": 3}, count)


@pytest.mark.parametrize("seeds", ["1..4", "4,3,2,1"])
def test_depths_for_several_records_keep_each_limit(seeds: str) -> None:
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

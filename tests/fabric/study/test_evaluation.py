from __future__ import annotations

from pathlib import Path

import pytest

import fabric as fab
from fabric.explore.study.evaluation import Job, ProgramQuestion, known_before
from fabric.explore.study.outcome import metric
from fabric.explore.study.space import Scalar
from fabric.graph.hardware.latency import Hop
from fabric.graph.loading.program_file import load_program

PROGRAM = Path(__file__).parent / "program_of_points.py"


def outcome(**setting: Scalar) -> fab.Outcome:
    study = fab.Study(
        program=PROGRAM, space=fab.grid({name: [each] for name, each in setting.items()})
    )
    return fab.run_point(study, study.point(0))


def test_completed_point_has_the_numbers_of_simulate() -> None:
    study = fab.Study(program=PROGRAM, space=fab.grid(tiles=[3]), fixed={"rows": 32})
    found = fab.run_point(study, study.point(0))
    report = fab.simulate(load_program(PROGRAM, ["tiles=3", "rows=32"], fab.Hardware()).program)
    assert found.status == "completed"
    assert found.setting == {"tiles": 3}
    assert found.parameters == {"tiles": 3, "rows": 32, "fault": "none"}
    assert found.numbers["cycles"] == report.cycles
    assert found.numbers["extra.rows"] == metric(found, "extra.rows") == 96
    assert found.hardware == report.hardware
    before = known_before(Job.of(study, study.point(0)))
    for name, bound in before.bounds.items():
        assert (
            bound == found.numbers[name] if name in before.exact else bound <= found.numbers[name]
        )
    assert {"off_chip_traffic_bytes", "on_chip_requirement_bytes", "flops"} <= set(before.exact)


def test_depths_and_hops_of_a_point_override_those_of_the_study() -> None:
    study = fab.Study(
        program=PROGRAM,
        space=fab.zipped({"tiles": [2, 3], "depth.map.0": [1, 7], "hop.map.0": ["2+5", "3+4"]}),
        fixed={"rows": 4, "depth.store.0": 5, "hardware.hbm.channels": 2},
        depths={"map.0": 9, "store.0": 8},
        hops={"map.0": Hop(1, 6), "store.0": Hop(2, 1)},
    )
    loaded, options = ProgramQuestion.of(study).loaded(study.space[1])
    assert loaded.parameters == {"tiles": 3, "rows": 4, "fault": "none"}
    assert loaded.program.hardware.as_dict()["hbm"]["channels"] == 2
    assert options.depths == {"map.0": 7, "store.0": 5}
    assert options.hops == {"map.0": Hop(3, 4), "store.0": Hop(2, 1)}
    other = fab.Study(program=PROGRAM, space=fab.grid(tiles=[2]))
    _, plain = ProgramQuestion.of(other).loaded({})
    assert (plain.depths, plain.hops) == ({}, {})


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"rows": 3}, "rows is 3: expected an even number"),
        ({"tiles": "many"}, "parameter tiles of build() is 'many': expected int"),
        ({"colour": 1}, "build() takes no parameter colour (found -p colour=1): expected one of"),
        ({"fault": "raise"}, "build() raised ZeroDivisionError: on purpose"),
        ({"hardware.hbm.chanels": 3}, "[hbm] has no key chanels"),
        ({"hardware.hbm.channels": 0}, "[hbm] channels is 0: expected an integer"),
        ({"hardware.channels": 3}, "hardware.channels names no key: expected hardware.SECTION.KEY"),
        ({"hardware.dram.channels": 3}, "[dram] is not a section"),
        ({"depth.map.0": 0}, "depth.map.0 is 0: expected an integer of at least 1"),
        ({"hop.map.0": "0+1"}, "hop.map.0 is '0+1': expected cycles forward and back"),
        ({"depth.mop.0": 1}, "mop"),
    ],
)
def test_point_that_cannot_be_wired_is_refused_before_it_runs(
    setting: dict[str, Scalar], reason: str
) -> None:
    study = fab.Study(
        program=PROGRAM, space=fab.grid({name: [each] for name, each in setting.items()})
    )
    found = fab.run_point(study, study.point(0))
    assert found.status == "refused"
    assert reason in str(found.reason)
    before = known_before(Job.of(study, study.point(0)))
    if "depth.mop.0" not in setting:
        assert before.refused is not None
        assert before.refused.reason == found.reason

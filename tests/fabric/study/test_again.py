from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import pytest

from fabric import (
    ConfigurationError,
    FabricError,
    Study,
    StudySession,
    grid,
    hardware_scope,
    run_point,
    simulate,
)
from fabric.display.terminal import plain_text
from fabric.explore.study.driver import run_again
from fabric.explore.study.opening import StudyOptions, open_study
from fabric.explore.study.outcome import dominates
from fabric.explore.study.result import StudyResult
from fabric.explore.study.space import Space
from fabric.explore.study.written.folder import write_points
from fabric.graph.hardware.file import varied_hardware
from tests.fabric.study.program_of_fronts import build
from tests.programs.loading import PROGRAMS

PROGRAM: Final = Path(__file__).parent / "program_of_fronts.py"
METRICS: Final = ("cycles", "on_chip_requirement_bytes")
MODEL: Final = "hardware.hbm.model"
BANKED: Final = grid({MODEL: ["banked"]})


def run(study: Study) -> StudyResult:
    session = StudySession(study)
    while (point := session.ask()) is not None:
        session.tell(run_point(study, point))
    outcomes = tuple(session.outcomes[index] for index in sorted(session.outcomes))
    runs = tuple(session.runs[index] for index in sorted(session.runs))
    return StudyResult(study, outcomes, runs=runs if study.has_inputs else ())


def studied(again: Space | None = None) -> StudyResult:
    # Two of the designs are the same.
    space = grid(rows=[8, 16, 32, 96], flops_per_cycle=[16, 4096])
    space += grid(rows=[8], flops_per_cycle=[4096])
    study = Study(program=PROGRAM, space=space, minimize=METRICS, again=again or Space(((),)))
    return run_again(run(study), run)


def test_front_runs_again_as_the_program_does_on_the_other_memory() -> None:
    result = studied(BANKED)
    expected: dict[int, tuple[float, ...]] = {}
    for design in result.front:
        with hardware_scope(varied_hardware(None, {"hbm.model": "banked"})):
            report = simulate(build(**result.study.space[design]))  # type: ignore[arg-type]
        assert report.cycles is not None
        expected[design] = (report.cycles, report.on_chip_requirement_bytes or 0)
    ((change, outcomes),) = result.changed()
    assert change == {MODEL: "banked"}
    assert {1, 8} <= set(result.front)
    assert expected == {
        design: tuple(each.numbers[name] for name in METRICS) for design, each in outcomes.items()
    }
    assert result.front_of(outcomes) == {
        design
        for design, values in expected.items()
        if not any(dominates(other, values) for other in expected.values())
    }


def test_table_of_the_front_again_has_new_and_old_cycles(tmp_path: Path) -> None:
    result = studied(grid({MODEL: ["banked"], "hardware.hbm.channels": [16, 32]}))
    text = plain_text(result.sheet(), 200)
    before = {each.index: each.numbers.get("cycles", 0) for each in result.outcomes}
    for (change, outcomes), channels in zip(result.changed(), (16, 32), strict=True):
        assert change == {MODEL: "banked", "hardware.hbm.channels": channels}
        _, _, table = text.partition(f"{MODEL}=banked, hardware.hbm.channels={channels}")
        rows = [line.split() for line in table.partition("point ")[2].splitlines()]
        for design, each in outcomes.items():
            row = next(cells for cells in rows if cells[:1] == [str(design)])
            cycles = each.numbers["cycles"]
            ratio = f"{cycles / before[design]:.2f}"
            assert row[2:5] == [f"{cycles:,}", f"{before[design]:,}", ratio]
    assert "The memory's peak is 512 bytes per cycle, not 1,024." in text
    write_points(result, tmp_path)
    table = (tmp_path / "again.csv").read_text(encoding="utf-8")
    columns = ("design", "hardware.hbm.channels", "cycles")
    points = csv.DictReader(table.splitlines())
    assert {tuple(int(each[name]) for name in columns) for each in points} == {
        (design, change["hardware.hbm.channels"], each.numbers["cycles"])
        for change, outcomes in result.changed()
        for design, each in outcomes.items()
    }


def test_front_of_designs_over_inputs_runs_again_on_the_inputs_chosen_on() -> None:
    study = Study(
        program=PROGRAM,
        space=grid(rows=[8, 96]),
        over=grid(times=[1, 2, 3]),
        hold_out=1,
        minimize=("worst:cycles", "mean:on_chip_requirement_bytes"),
        again=BANKED,
    )
    result = run_again(run(study), run)
    ((_, outcomes),) = result.changed()
    chosen = [study.over[n]["times"] for n in range(3) if n not in study.held_out]
    for design, each in outcomes.items():
        with hardware_scope(varied_hardware(None, {"hbm.model": "banked"})):
            cycles = [simulate(build(study.space[design]["rows"], times=n)).cycles for n in chosen]  # type: ignore[arg-type]
        assert each.number("worst:cycles") == max(x for x in cycles if x is not None)


def test_summary_names_the_flat_memory_and_the_command_only_if_it_is_flat() -> None:
    advice = "These designs were chosen on the flat memory"
    result = studied()
    text = plain_text(result.sheet())
    assert advice in text
    assert 'Study(..., again=grid({"hardware.hbm.model": ["banked"]}))' in text
    for hardware in ({MODEL: "banked"}, {MODEL: "flat"}):
        study = Study(program=PROGRAM, space=grid(rows=[8, 96]), minimize=METRICS, fixed=hardware)
        assert advice not in plain_text(run(study).sheet())
    assert advice not in plain_text(studied(BANKED).sheet())


def test_value_that_the_program_does_not_take_is_refused_before_any_run() -> None:
    for again, error in (("times=many", "expected int"), (f"{MODEL}=bank", "mean banked")):
        options = StudyOptions(vary=["rows=8"], minimize=["cycles"], again=[again])
        with pytest.raises(FabricError, match=error):
            open_study(PROGRAM, options)


def test_study_file_takes_a_change() -> None:
    file = PROGRAMS / "questions/qwen_design.py"
    study = open_study(file, StudyOptions(again=["seed=2", f"{MODEL}=banked"]))
    assert study.again == grid({"seed": [2], MODEL: ["banked"]})


def test_other_memory_drops_the_keys_of_the_file_that_it_does_not_have(tmp_path: Path) -> None:
    file = tmp_path / "half.toml"
    file.write_text("[hbm]\nchannels = 16\nlatency_cycles = 9\n", encoding="utf-8")
    varied = varied_hardware(file, {"hbm.model": "banked"})
    assert varied == varied_hardware(None, {"hbm.model": "banked", "hbm.channels": 16})
    with pytest.raises(ConfigurationError, match="no key latency_cycles"):
        varied_hardware(file, {"hbm.model": "banked", "hbm.latency_cycles": 9})

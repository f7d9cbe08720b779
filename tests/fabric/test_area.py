from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fabric import Hardware, Study, grid, run_point, simulate
from fabric.explore.study.evaluation import Job, known_before
from fabric.extend import AreaDescription
from fabric.graph.hardware.latency import Mesh
from fabric.graph.loading.program_file import load_program
from fabric.runs.printing import areas
from fabric.runs.report import Report
from fabric.shell.cli import main

ROOT = Path(__file__).parents[2]
SWIGLU = Path("programs/swiglu.py")
STATED = AreaDescription(
    small_memory_mm2_per_kib=(0.5, 2.0),
    memory_mm2_per_kib=(0.125, 0.25),
    small_memory_bytes=13_000,
    slot_mm2_per_byte=(0.25, 1.0),
    bfloat16_flop_mm2=(2.0, 3.0),
)


def report_of(
    area: AreaDescription, depths: dict[str, int] | None = None, network: Mesh | None = None
) -> Report:
    program = load_program(SWIGLU, [], Hardware(area=area, network=network)).program
    return simulate(program, mode="timing", depths=depths)


def test_each_cause_is_its_amount_times_its_range() -> None:
    report = report_of(STATED)
    found = {each.cause: each.amount or 0 for each in report.area}
    assert found["small_memory"] + found["memory"] == report.on_chip_requirement_bytes
    assert found["small_memory"] > 0 < found["memory"]
    assert found["slot"] == report.channel_bytes
    assert found["bfloat16_flop"] == report.allocated_flops_per_cycle
    assert report.allocated_flops_per_cycle
    assert report.channel_bytes
    low = (
        found["small_memory"] / 1024 * 0.5
        + found["memory"] / 1024 * 0.125
        + report.channel_bytes * 0.25
        + report.allocated_flops_per_cycle * 2
    )
    assert report.area_low_mm2 == pytest.approx(low)
    assert report.area_high_mm2
    assert report.area_mm2
    assert report.area_mm2**2 == pytest.approx(low * report.area_high_mm2)
    assert report.area_by_cause == {
        each.cause: [each.low_mm2, each.high_mm2] for each in report.area
    }


def test_links_are_counted_at_their_width() -> None:
    area = AreaDescription(**{**vars(STATED), "link_mm2_per_byte_per_cycle": (0.5, 3.0)})
    mesh = Mesh(columns=3, rows=2, link_bytes_per_cycle=8, injection_bytes_per_cycle=5)
    # Links in both directions: two along each of two rows, one along each of three columns. Six
    # sites.
    width = 8 * (2 * 2 * 2 + 3 * 2) + 5 * 6 * 2
    found = {each.cause: each for each in report_of(area, network=mesh).area}
    assert (found["link"].amount, found["link"].unit) == (width, "bytes/cycle")
    assert (found["link"].low_mm2, found["link"].high_mm2) == (width / 2, width * 3)
    endless = report_of(area, network=replace(mesh, injection_bytes_per_cycle=None))
    assert (endless.area_by_cause or {})["link"] == [None, None]
    assert endless.area_mm2 is None
    assert ("links of the network", "no limit", "not stated") in areas(endless)
    assert "link" not in {each.cause for each in report_of(area).area}


def test_study_minimises_area_and_channel_bytes() -> None:
    study = Study(
        program=SWIGLU,
        space=grid({"hardware.channel.depth": [2, 4]}),
        hardware=Path("programs/hardware/paper_area.toml"),
        minimize=("area_mm2", "channel_bytes"),
    )
    assert study.shown == ("area_mm2", "area_low_mm2", "area_high_mm2", "channel_bytes")
    two, four = (run_point(study, study.point(index)) for index in range(2))
    assert 2 * two.numbers["channel_bytes"] == four.numbers["channel_bytes"]
    assert two.numbers["area_mm2"] < four.numbers["area_mm2"]
    for each, outcome in enumerate((two, four)):
        before = known_before(Job.of(study, study.point(each)))
        assert before.bounds["channel_bytes"] == outcome.numbers["channel_bytes"]
        assert before.bounds["area_mm2"] == pytest.approx(outcome.numbers["area_mm2"])
        assert before.bounds["area_mm2"] <= outcome.numbers["area_mm2"]


def test_the_report_shows_the_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", str(ROOT / SWIGLU), "--hardware", "paper_area"]
    assert main(run) == 0
    assert "area, low to high" in capsys.readouterr().out
    assert main([*run, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert 0 < fields["area_low_mm2"] < fields["area_mm2"] < fields["area_high_mm2"]
    assert fields["hardware"]["area"]["memory_mm2_per_kib"] == [0.0028, 0.028]

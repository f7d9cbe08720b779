"""Seconds and joules where people read them: the terminal, pages, notebooks and studies."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fabric import Hardware, Point, Program, Study, grid, hardware_scope, run_point, simulate
from fabric.analysis.trace.pages.page import write_page
from fabric.extend import ClockDescription, EnergyDescription
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor
from tests.programs.loading import PROGRAMS

PRICES = EnergyDescription(
    hbm_picojoules_per_byte=30,
    memory_write_picojoules_per_byte=2,
    memory_read_picojoules_per_byte=2,
    fifo_picojoules_per_byte=0,
    hop_picojoules_per_byte=1,
    static_watts=0.5,
)
PRICED = Hardware(clock=ClockDescription(frequency_hz=1e9), energy=PRICES)


def copy(hardware: Hardware = PRICED) -> Program:
    with hardware_scope(hardware), Program("copy") as program:
        tiles = LinearOffChipLoad(Tensor((1000, 512)), tile=(10, 512))()
        LinearOffChipStore("y")(tiles)
    program.tokens(10, phase="prefill")
    program.stands_for(10)
    return program


MOVED = 2 * 1000 * 512 * 2


def test_page_and_notebook(tmp_path: Path) -> None:
    report = simulate(copy(), trace="events", log_dir=tmp_path)
    page = tmp_path / "page.html"
    write_page(report.trace(), page)

    for text in (page.read_text(encoding="utf-8"), report._repr_html_() or ""):
        rows = [
            " ".join(re.findall(r"<t[dh][^>]*>([^<]*)", row))
            for row in re.findall(r"<tr>.*?</tr>", text, flags=re.DOTALL)
        ]
        assert f"moved by the HBM {MOVED:,} bytes 61.44 μJ" in " | ".join(rows)
        assert "tokens 10 prefill" in " | ".join(rows)


def test_study_varies_prices() -> None:
    study = Study(
        program=PROGRAMS / "simplified_moe.py",
        hardware=PROGRAMS / "hardware" / "paper_priced.toml",
        space=grid(**{"hardware.energy.hbm_picojoules_per_byte": [10, 20]}),
        minimize=("joules", "seconds"),
    )

    cheap, dear = (run_point(study, Point(at, study.space[at])) for at in range(2))

    report = json.loads(json.dumps(cheap.as_json()))
    assert report["cycles"] * 1e-9 == pytest.approx(report["seconds"])
    assert cheap.wall_seconds == report["wall_seconds"]
    moved_bytes = report["hbm_bytes_moved"]
    more = dear.numbers["joules"] - cheap.numbers["joules"]
    assert pytest.approx(10e-12 * moved_bytes) == more

"""Seconds and joules where people read them: the terminal, pages, notebooks and studies."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from fabric import (
    Hardware,
    Point,
    Program,
    Study,
    grid,
    hardware_scope,
    run_point,
    simulate,
)
from fabric.analysis.trace.pages.page import write_page
from fabric.extend import ClockDescription, EnergyDescription
from fabric.messages.terminal.tables import print_sheet
from fabric.runs.printing import report_sheet
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
    """Return a program that moves 1,000 KiB there and back: ten layers of it make ten tokens."""
    with hardware_scope(hardware), Program("copy") as program:
        tiles = LinearOffChipLoad(Tensor((1000, 512)), tile=(10, 512))()
        LinearOffChipStore("y")(tiles)
    program.tokens(10, phase="prefill")
    program.stands_for(10)
    return program


MOVED = 2 * 1000 * 512 * 2


def shown(program: Program, width: int) -> list[str]:
    """Return the lines of a report about time and energy, without the space between words."""
    written = io.StringIO()
    print_sheet(report_sheet(simulate(program)), Console(file=written, width=width))
    lines = [" ".join(line.split()) for line in written.getvalue().splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("elements ")) + 1
    last = next(number for number, line in enumerate(lines) if "expected measured" in line)
    return [line for line in lines[first:last] if line]


@pytest.mark.parametrize("width", [66, 100])
def test_terminal(width: int) -> None:
    """What is measured, what is multiplied, and a line for each cause that there was."""
    cycles = simulate(copy()).cycles
    assert cycles is not None
    # A load and a store each have a memory unit; one channel carries half of what is moved.
    events = MOVED * (30 + 2 + 2) + MOVED // 2
    joules = events * 1e-12 + 0.5 * cycles * 1e-9

    assert shown(copy(), width) == [
        f"time {cycles / 1000:.4g} μs",
        f"energy {joules * 1e6:.4g} μJ",
        "stands for 10 such runs",
        f"their time, multiplied {cycles / 100:.4g} μs",
        f"their energy, multiplied {joules * 1e7:.4g} μJ",
        "tokens 10 prefill",
        f"tokens per second {1e9 / cycles:,.0f}",
        f"tokens per joule {1 / joules:,.0f}",
        f"time to first token {cycles / 100:.4g} μs",
        "energy amount joules %",
        f"moved by the HBM {MOVED:,} bytes 61.44 μJ {100 * 61.44e-6 / joules:.1f}",
        f"written to memory units {MOVED:,} bytes 4.096 μJ {100 * 4.096e-6 / joules:.1f}",
        f"read from memory units {MOVED:,} bytes 4.096 μJ {100 * 4.096e-6 / joules:.1f}",
        f"in and out of channels {MOVED // 2:,} bytes 0 J 0.0",
        f"on the way in channels {MOVED // 2:,} byte hops 1.024 μJ {100 * 1.024e-6 / joules:.1f}",
        f"static {cycles / 1000:.4g} μs {cycles / 2000:.4g} μJ {50e-9 * cycles / joules:.1f}",
    ]


def test_without_a_price() -> None:
    """What has no price says so, and so does what has no clock; there is no sum and no share."""
    lines = shown(copy(Hardware(energy=EnergyDescription(hbm_picojoules_per_byte=30))), 100)

    assert not [line for line in lines if line.startswith("energy ") and "μJ" in line]
    assert f"moved by the HBM {MOVED:,} bytes 61.44 μJ" in lines
    assert f"written to memory units {MOVED:,} bytes no price" in lines
    assert lines[-1] == "static no clock no price"


def test_page_and_notebook(tmp_path: Path) -> None:
    """The page of a trace and the page of a notebook have the rows of the terminal."""
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


def test_page_of_a_run_without_prices(tmp_path: Path) -> None:
    """A page has no section of what nobody has said."""
    page = tmp_path / "page.html"
    report = simulate(copy(Hardware()), trace="events", log_dir=tmp_path)
    write_page(report.trace(), page)

    assert "Time and energy" not in page.read_text(encoding="utf-8")


def test_study() -> None:
    """Studies vary prices and minimise joules; what the host took is another number."""
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

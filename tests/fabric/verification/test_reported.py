"""Verification in the report, the terminal, JSON, exceptions and the log."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric import Report, VerificationError, simulate
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.display.terminal import plain_text
from fabric.shell.cli import main
from tests.fabric.trace.recording import program as moe
from tests.fabric.verification.storing import storing

SMALL = str(Path(__file__).parents[1] / "small_program.py")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def wrong(mode: str = "functional") -> Report:
    program = storing(a=np.array([1.0, math.nan]), b=np.arange(8), c=np.ones(3), mode=mode)
    program.expect(a=lambda: np.array([1.0, 2.0]))
    program.expect(b=lambda: np.arange(8)[::-1], c=lambda: np.ones(3))
    return simulate(program)


def text(report: Report) -> list[str]:
    return plain_text(report.sheet(), 100).splitlines()


def test_wrong_result_is_printed_first() -> None:
    assert text(wrong())[:12] == [
        "keep",
        "completed, the result is wrong in functional mode",
        "output 'a': 1 of 2 elements wrong, largest error inf, relative inf: expected at most "
        "what roundings explain (float64)",
        "  [1] is nan: expected 2 ± 3.18e-14",
        "output 'b': 8 of 8 elements wrong, largest error 7, relative 5: expected equal "
        "numbers (int64)",
        "  [0] is 0: expected 7",
        "  [1] is 1: expected 6",
        "  [2] is 2: expected 5",
        "  [3] is 3: expected 4",
        "  [4] is 4: expected 3",
        "  3 more",
        "",
    ]


def test_wrong_result_raises_verification_error() -> None:
    report = wrong()
    with pytest.raises(VerificationError) as caught:
        report.raise_for_status()
    assert report.verification is not None
    assert caught.value.message.splitlines() == [
        "program 'keep': the result is wrong",
        *report.verification.lines(),
    ]
    assert report.verification.as_json() == caught.value.verification


def test_json_of_a_run_has_no_nan(tmp_path: Path) -> None:
    program = storing(y=np.array([math.nan, math.inf]))
    program.expect(y=lambda: np.array([1.0, -math.inf]))
    program.extra["n"] = lambda: np.int64(3)
    program.extra["x"] = lambda: np.float32("nan")
    report = simulate(program, log_dir=tmp_path, parameters={"limit": math.inf})
    (folder,) = tmp_path.iterdir()

    def refuse(name: str) -> Any:
        raise AssertionError(name)

    kept = json.loads((folder / "report.json").read_text(), parse_constant=refuse)
    assert [("nan", 1.0), ("inf", "-inf")] == [
        (place["found"], place["wanted"]) for place in kept["verification"]["places"]
    ]
    assert ("inf", {"n": 3, "x": "nan"}) == (kept["parameters"]["limit"], kept["extra"])
    for line in (folder / "events.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)
    assert report.verified is False


def test_wrong_result_is_printed_by_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["run", SMALL, "--json", "--mode=functional", "-p", "fault=wrong"])
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (1, "completed", False) == (status, found["status"], found["verified"])
    assert err.splitlines() == [
        "fabric: output 'total': 1 of 1 element wrong, largest error 1, relative 0.25: "
        "expected equal numbers (int64)",
        "fabric:   [] is 3: expected 4",
    ]
    place = {"output": "total", "index": [], "found": 3, "wanted": 4, "tile": None, "allowed": 0.0}
    assert [place] == found["verification"]["places"]
    assert [] == found["warnings"]


def test_run_with_an_unusable_expectation_is_an_error(tmp_path: Path) -> None:
    program = storing(y=np.zeros(1))
    program.expect(y=lambda: 1j)
    report = simulate(program, log_dir=tmp_path, trace=TraceOptions())
    assert (report.status, report.verified) == ("error", None)
    assert report.verification is not None
    assert "the run ended as error" == report.verification.not_verified
    (folder,) = tmp_path.iterdir()
    assert Trace(folder).status == "error"


def test_timing_mode_is_not_verified() -> None:
    report = wrong("timing")
    assert (None, 0) == (report.verified, report.exit_status)
    assert text(report)[1] == "completed, not verified: timing mode"
    assert {
        "not_verified": "timing mode",
        "elements": None,
        "mismatched": None,
        "worst": None,
        "places": None,
        "streams": None,
        "outputs": None,
        "unexpected": None,
    } == report.as_json()["verification"]
    report.raise_for_status()


def test_program_without_expectation_has_no_verification() -> None:
    report = simulate(storing(y=np.zeros(1)))
    assert (None, None) == (report.verified, report.verification)
    assert text(report)[1] == "completed in functional mode"


def test_output_without_expectation_is_a_warning() -> None:
    program = storing(x=np.zeros(1), y=np.zeros(1))
    program.expect(y=lambda: np.zeros(1))
    report = simulate(program)
    assert (
        text(report)[1] == "completed, verified in functional mode, every element equal; 1 warning"
    )
    warning = "output 'x' is not verified: expected another expect(x=...)"
    assert (True, (warning,)) == (report.verified, report.warnings)
    assert text(report)[-1] == f"warning: {warning}"
    found = report.as_json()
    assert ([warning], ("x",)) == (found["warnings"], found["verification"]["unexpected"])


def test_verified_says_how_close(tmp_path: Path) -> None:
    program = storing(y=np.array([1.0, 2.0]), z=np.arange(2))
    program.expect(y=lambda: np.array([1.0, 2.001]), z=lambda: np.arange(2), atol=0.003, rtol=0)
    report = simulate(program, trace="events", log_dir=tmp_path)
    share = abs(2 - 2.001) / 0.003

    assert (
        text(report)[1] == "completed, verified in functional mode, at most 34 % of its tolerance"
    )
    assert pytest.approx(share) == report.as_json()["verification"]["worst"]["used"]
    assert report.trace().end.closeness == "at most 34 % of its tolerance"


def test_rounded_result_is_close_by_its_type() -> None:
    report = simulate(moe("simplified_moe"), mode="functional")
    (output,) = report.as_json()["verification"]["outputs"]
    used = max(output["used"].values())

    assert 0 < used < 1
    assert text(report)[1].endswith(f", at most {math.ceil(100 * used)} % of what bfloat16 allows")
    assert text(simulate(moe("simplified_moe"), exact=True))[1].endswith(" % of its bound")

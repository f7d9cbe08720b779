"""Where wrong data and what was not verified are said: report, terminal, JSON, exception, log."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fabric import FabricError, Report, VerificationError, simulate
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.extend import Deadlock
from fabric.messages.terminal.tables import print_sheet
from fabric.runs.printing import report_sheet
from fabric.runs.verification import Errors, Mismatch, OutputVerification, Verification
from fabric.shell.cli import main
from tests.fabric.trace.page_data import page_data
from tests.fabric.verification.storing import storing

SMALL = str(Path(__file__).parents[1] / "small_program.py")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def wrong(mode: str = "functional") -> Report:
    """Run a program two of whose outputs are wrong."""
    program = storing(a=np.array([1.0, math.nan]), b=np.arange(8), c=np.ones(3), mode=mode)
    program.expect(a=lambda: np.array([1.0, 2.0]))
    program.expect(b=lambda: np.arange(8)[::-1], c=lambda: np.ones(3))
    return simulate(program)


def text(report: Report) -> list[str]:
    """Return the lines a person reads."""
    written = io.StringIO()
    print_sheet(report_sheet(report), Console(file=written, width=100, highlight=False))
    return [line.rstrip() for line in written.getvalue().splitlines()]


class TestWrong:
    def test_it_is_the_first_thing_said(self) -> None:
        """In front of all numbers, which mean little then."""
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

    def test_in_colour(self) -> None:
        """What is wrong is red on a terminal, its places are not."""
        written = io.StringIO()
        print_sheet(report_sheet(wrong()), Console(file=written, width=200, force_terminal=True))
        lines = written.getvalue().splitlines()
        assert [line[:5] for line in lines[2:5]] == ["\x1b[31m", "  [1]", "\x1b[31m"]

    def test_it_raises(self) -> None:
        """A completed run is not enough."""
        report = wrong()
        with pytest.raises(VerificationError) as caught:
            report.raise_for_status()
        assert report.verification is not None
        assert caught.value.message.splitlines() == [
            "program 'keep': the result is wrong",
            *report.verification.lines(),
        ]
        assert report.verification.as_json() == caught.value.verification

    def test_it_is_in_the_object(self) -> None:
        """How many, how far off, and where."""
        found = wrong().as_json()["verification"]
        outputs = found.pop("outputs")
        places = found.pop("places")
        assert [] == found.pop("streams")
        assert found == {
            "not_verified": None,
            "elements": 13,
            "mismatched": 9,
            "worst": {"absolute_error": math.inf, "relative_error": math.inf},
            "unexpected": (),
        }
        assert places[1] == {
            "output": "b",
            "index": (0,),
            "found": 0,
            "wanted": 7,
            "tile": None,
            "allowed": 0.0,
        }
        assert 6 == len(places)
        assert [("a", 1), ("b", 8), ("c", 0)] == [(o["output"], o["mismatched"]) for o in outputs]

    def test_reports_are_equal(self) -> None:
        """Also where a NaN was found: a report is plain data."""
        first, second = wrong(), wrong()
        assert first.verification == second.verification
        assert hash(first.verification) == hash(second.verification)

    def test_json_that_every_reader_takes(self, tmp_path: Path) -> None:
        """What a run's folder keeps is the object that is printed: no NaN, no infinity in it."""
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

    def test_command_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        """With ``--json`` stderr says it, too, and the object has it with its warnings."""
        status = main(["run", SMALL, "--json", "--mode=functional", "-p", "fault=wrong"])
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert (1, "completed", False) == (status, found["status"], found["verified"])
        assert err.splitlines() == [
            "fabric: output 'total': 1 of 1 element wrong, largest error 1, relative 0.25: "
            "expected equal numbers (int64)",
            "fabric:   [] is 3: expected 4",
        ]
        place = {
            "output": "total",
            "index": [],
            "found": 3,
            "wanted": 4,
            "tile": None,
            "allowed": 0.0,
        }
        assert [place] == found["verification"]["places"]
        assert [] == found["warnings"]


class TestFolder:
    @pytest.mark.parametrize(
        ("fault", "mode", "verified", "said", "failed"),
        [
            ("wrong", "functional", False, "completed, the result is wrong", True),
            ("none", "functional", True, "completed, verified", False),
            ("wrong", "timing", None, "completed", False),
        ],
    )
    def test_says_what_the_report_says(
        self,
        capsys: pytest.CaptureFixture[str],
        fault: str,
        mode: str,
        verified: bool | None,
        said: str,
        failed: bool,
    ) -> None:
        """The log, the summary of the trace, its page and its comparison with another."""
        main(["run", SMALL, f"--mode={mode}", "-p", f"fault={fault}", "--trace", "events"])
        last = json.loads(Path("logs/small-1/events.jsonl").read_text().splitlines()[-1])
        assert ("run_ended", "completed", verified) == (
            last["event"],
            last["status"],
            last["verified"],
        )
        capsys.readouterr()
        main(["trace", "summary", "logs/small-1"])
        assert f"\n{said} in {mode} mode, 31 cycles\n" in capsys.readouterr().out
        main(["trace", "diff", "logs/small-1", "logs/small-1"])
        assert f"A  small  {said}, 31 cycles\n" in capsys.readouterr().out
        main(["trace", "report", "logs/small-1", "-o", "page.html"])
        told = page_data(Path("page.html").read_text(encoding="utf-8"))["run"]
        assert f"{said} in {mode} mode, 31 cycles" == told["ran"]
        assert failed == told["failed"]

    def test_says_that_nothing_could_be_compared(self, tmp_path: Path) -> None:
        """A run that failed after its end is an error everywhere."""
        program = storing(y=np.zeros(1))
        program.expect(y=lambda: 1j)
        report = simulate(program, log_dir=tmp_path, trace=TraceOptions())
        assert (report.status, report.verified) == ("error", None)
        assert report.verification is not None
        assert "the run ended as error" == report.verification.not_verified
        (folder,) = tmp_path.iterdir()
        assert Trace(folder).status == "error"


class TestNotVerified:
    def test_no_outputs(self) -> None:
        """Of nothing compared nothing is wrong, and no error is the largest."""
        nothing = Verification(unexpected=("y",))
        assert nothing.as_json() == {
            "not_verified": None,
            "elements": 0,
            "mismatched": 0,
            "worst": {"absolute_error": 0.0, "relative_error": None},
            "places": [],
            "streams": [],
            "outputs": [],
            "unexpected": ("y",),
        }

    def test_timing_mode(self) -> None:
        """What the program expects is not passed over without a word."""
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

    def test_nothing_expected(self) -> None:
        """There is nothing to verify."""
        report = simulate(storing(y=np.zeros(1)))
        assert (None, None) == (report.verified, report.verification)
        assert text(report)[1] == "completed in functional mode"

    @pytest.mark.parametrize(
        ("fault", "error", "status"),
        [("raises", FabricError, "error"), ("stuck", Deadlock, "deadlock")],
    )
    def test_a_run_that_did_not_complete(
        self, fault: str, error: type[FabricError], status: str
    ) -> None:
        """Nothing was compared, and the report says why."""
        from fabric.graph.hardware.description import Hardware
        from fabric.graph.loading.program_file import load_program

        program = load_program(SMALL, [f"fault={fault}"], Hardware()).program
        report = simulate(program, mode="functional")
        assert report.verification is not None
        assert f"the run ended as {status}" == report.verification.not_verified
        assert (None, ()) == (report.verified, report.verification.lines())
        with pytest.raises(error):
            report.raise_for_status()

    def test_an_interrupted_run_raises(self) -> None:
        """It has no right outputs either."""
        with pytest.raises(FabricError, match="program 'x' was interrupted"):
            Report(program="", name="x", status="interrupted").raise_for_status()


class TestWarnings:
    @pytest.mark.parametrize(
        ("arguments", "status", "warnings"),
        [
            (["-p", "fault=none"], 0, []),
            (["-p", "fault=wrong", "--mode=functional"], 1, []),
            (["-p", "fault=raises"], 1, []),
            (["-p", "fault=nonsense"], 2, None),
            (["-p", "fault=stuck"], 3, []),
        ],
    )
    def test_are_in_the_object(
        self,
        capsys: pytest.CaptureFixture[str],
        arguments: list[str],
        status: int,
        warnings: list[str] | None,
    ) -> None:
        """For every exit status; null where no program was wired."""
        assert status == main(["run", SMALL, "--json", *arguments])
        found = json.loads(capsys.readouterr().out)
        assert warnings == found["warnings"]
        assert (status == 2) is (found["verification"] is None)

    def test_an_output_of_which_nothing_is_expected(self) -> None:
        """The others are verified; that this one is not is said."""
        program = storing(x=np.zeros(1), y=np.zeros(1))
        program.expect(y=lambda: np.zeros(1))
        report = simulate(program)
        warning = "output 'x' is not verified: expected another expect(x=...)"
        assert (True, (warning,)) == (report.verified, report.warnings)
        assert text(report)[-1] == f"warning: {warning}"
        found = report.as_json()
        assert ([warning], ("x",)) == (found["warnings"], found["verification"]["unexpected"])


@pytest.mark.parametrize(
    ("figures", "lines"),
    [
        ({"misfit": "too few", "is_stream": True}, ("stream y: too few",)),
        ({"wanted_shape": (2, 4)}, ("output 'y' has shape [2, 3]: expected [2, 4]",)),
        (
            {"mismatched": 1, "absolute_error": 0.25, "places": (Mismatch((1, 2), 1.5, 2.0),)},
            (
                "output 'y': 1 of 6 elements wrong, largest error 0.25: "
                "expected equal numbers (f4)",
                "  [1, 2] is 1.5: expected 2",
            ),
        ),
        (
            {"mismatched": 3, "rtol": 0.125, "relative_error": 2.5, "absolute_error": 1.0,
             "places": (Mismatch((0, 1), 1, 2, (7,)),), "elements": 1},
            (
                "output 'y': 3 of 1 element wrong, largest error 1, relative 2.5: "
                "expected at most 0 + 0.125 * |wanted| (f4)",
                "  tile [7] at [0, 1] is 1: expected 2",
                "  2 more",
            ),
        ),
        (
            {"mismatched": 1, "atol": 0.5},
            ("output 'y': 1 of 6 elements wrong, largest error 0: "
             "expected at most 0.5 + 0 * |wanted| (f4)", "  1 more"),
        ),
        (
            {"mismatched": 1, "atol": None, "rtol": None, "used": Errors(3.0, 3.0, 3.0),
             "places": (Mismatch((1, 2), 1.5, 2.0, None, 0.25),)},
            ("output 'y': 1 of 6 elements wrong, largest error 0: expected at most what roundings "
             "explain (f4)",
             "  [1, 2] is 1.5: expected 2 ± 0.25"),
        ),
        (
            {"used": Errors(0.5, 1.5, 3.0)},
            ("output 'y': the errors of a row have a root mean square 1.5 times as large as "
             "roundings explain: expected at most 1 (f4)",),
        ),
        (
            {"used": Errors(0.5, 1.0, 3.0), "is_stream": True},
            ("stream y: the errors of its rows have a root mean square 3 times as large as "
             "roundings explain: expected at most 1 (f4)",),
        ),
    ],
)  # fmt: skip
def test_sentences(figures: dict[str, Any], lines: tuple[str, ...]) -> None:
    """Of a misfit, of a shape, of elements, of a row, of all rows; and what bounds follow from."""
    about: dict[str, Any] = {"dtype": "f4", "shape": (2, 3), "wanted_shape": (2, 3), "elements": 6}
    found = OutputVerification(output="y", **(about | figures))
    assert lines == found.lines()
    assert not found.agrees


@pytest.mark.parametrize(
    ("used", "agrees"), [((9, 1, 1), True), ((0, 1.01, 1), False), ((0, 1, 1.01), False)]
)
def test_agrees_at_the_bound(used: tuple[float, float, float], agrees: bool) -> None:
    """What has used up its bound is right; elements are counted one by one."""
    found = OutputVerification(
        output="y", dtype="f4", shape=(1,), wanted_shape=(1,), used=Errors(*used)
    )
    assert agrees is found.agrees

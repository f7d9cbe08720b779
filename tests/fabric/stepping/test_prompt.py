"""``run --break-at``: a prompt at a terminal, and commands from a pipe."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest
from typing_extensions import override

from fabric.runs.stepped import SteppedRun
from fabric.shell.cli import main

SMALL = str(Path(__file__).parents[1] / "small_program.py")


class Input(io.StringIO):
    @override
    def readline(self, *_: object) -> str:  # type: ignore[override]  # of text
        line = super().readline()
        if line == "Ctrl-C\n":
            raise KeyboardInterrupt
        return line


def ask(
    commands: str, capsys: pytest.CaptureFixture[str], place: str = "12", *options: str
) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", Input(commands))
        status = main(
            ["run", SMALL, "--mode", "functional", "-p", "stop=5", "--break-at", place, *options]
        )
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lines(text: str) -> list[str]:
    return text[: text.find("small  ")].splitlines() if "small  " in text else text.splitlines()


def test_prompt_prints_units_channels_and_tiles(capsys: pytest.CaptureFixture[str]) -> None:
    commands = "where\nunit total_1\ngo count_1:3\nchannel total_1.0\ntile total_1.0\n"
    status, out, _ = ask(commands, capsys)

    assert status == 0
    assert lines(out) == [
        "small is held at cycle 12",
        "cycle 12; units: 1 busy, 1 waiting, 0 ended; elements: 1 taken, 0 held",
        "unit     since  wired at             is",
        "count_1         small_program.py:73  busy",
        "total_1     11  small_program.py:73  empty, waits for count_1",
        "unit     since  wired at             is",
        "total_1     11  small_program.py:73  empty, waits for count_1",
        "cycles: empty 12",
        "channel                 held  sent  taken  bare stops",
        "count_1.0 -> total_1.0  0/2      1      1           0",
        "small is held at cycle 30: count_1 sends element 3",
        "channel                 held  sent  taken  bare stops",
        "count_1.0 -> total_1.0  1/2      3      2           0",
        "element  value             stop  sent  visible",
        "      2  Tile(1x1 uint64)     0    30       31",
        "element 2: Tile(1x1 uint64)",
        "[[2]]",
    ]
    assert "completed, verified in functional mode" in out


def test_step_and_go_move_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ask("step\nstep 2\ngo 1,000\nwhere\ngo\nwhere\n", capsys, "count_1:2")
    assert lines(out) == [
        "small is held at cycle 20: count_1 sends element 2",
        "small is held at cycle 21",
        "small is held at cycle 31",
        "small is held at cycle 51, its end",
        "cycle 51; units: 0 busy, 0 waiting, 2 ended; elements: 5 taken, 0 held",
    ]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("wher", "'wher': expected one of where, unit, channel, tile, step, go, quit, help"),
        ("go x", "'x': expected CYCLE or UNIT:ELEMENT, such as 1000 or matmul_1:3"),
        ("unit total", "(did you mean total_1?)"),
        ("channel", "count_1.0 -> total_1.0  0/2      1      1           0"),
        ("tile", "tile: expected the channel that holds it"),
        ("tile total_1.0", "total_1.0 holds no element: expected a channel that holds one"),
        ("tile total_1.0 7", "total_1.0 holds no element 7"),
        ("step 0", "step 0: expected a number of steps"),
        ("help", "go UNIT:ELEMENT     continue until a unit takes this number of"),
        ("Ctrl-C", "held at cycle 12; quit leaves"),
        ("", "small is held at cycle 12"),
    ],
)
def test_prompt_answers_mistakes_and_continues(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = ask(f"{command}\nwhere\n", capsys)
    assert status == 0
    assert said in out
    assert "units: " in out
    assert "Traceback" not in out + err


def test_quit_interrupts_the_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = ask("quit\n", capsys)
    assert (status, out) == (130, "small is held at cycle 12\n")
    assert '"interrupted"' in (tmp_path / "logs" / "small-1" / "report.json").read_text("utf-8")


def test_failed_and_stuck_runs_keep_their_status(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = ask("where\n", capsys, "900", "-p", "fault=raises")
    assert status == 1
    assert "small is held at cycle 31, its end" in out
    # The length of the folder in the message decides where its lines wrap.
    assert "ValueError: odd" in " ".join(out.split())
    status, out, _ = ask("unit relay_1\n", capsys, "900", "-p", "fault=stuck")
    assert status == 3
    assert "empty, waits for relay_1" in out


def test_terminated_prompt_exits_with_its_signal(capsys: pytest.CaptureFixture[str]) -> None:
    class Terminated(Input):
        @override
        def readline(self, *_: object) -> str:  # type: ignore[override]  # of text
            signal.raise_signal(signal.SIGTERM)
            return ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", Terminated())
        assert main(["run", SMALL, "--break-at", "3"]) == 128 + signal.SIGTERM
    assert "interrupted" in capsys.readouterr().err


def test_ctrl_c_holds_a_run_on_its_way_to_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["go", "go"])
    go_on, cycles = SteppedRun.until, list[int]()

    def until(run: SteppedRun, *, cycle: int) -> SteppedRun:
        cycles.append(cycle)
        if len(cycles) == 2:
            signal.raise_signal(signal.SIGINT)
        return go_on(run, cycle=cycle)

    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    monkeypatch.setattr(Input, "isatty", lambda _: True)
    monkeypatch.setattr(SteppedRun, "until", until)
    status, out, _ = ask("", capsys)
    assert status == 0
    assert "held at cycle 12; quit leaves" in out
    assert "completed, verified in functional mode" in out


@pytest.mark.parametrize("commands", ["", "go 20\n"])
def test_prompt_interrupted_twice_exits_with_130(
    commands: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, calls = SteppedRun.until, 0

    def until(run: SteppedRun, *, cycle: int) -> SteppedRun:
        nonlocal calls
        calls += 1
        if calls == 1 + bool(commands):
            run.close()
            raise KeyboardInterrupt
        return go_on(run, cycle=cycle)

    monkeypatch.setattr(SteppedRun, "until", until)
    status, out, err = ask(commands, capsys)

    assert 130 == status
    assert "quit leaves" not in out
    assert "closed" not in out + err

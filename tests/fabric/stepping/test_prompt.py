"""``run --break-at``: a prompt for people, and commands for scripts."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typing_extensions import override

from fabric import Tile, dtype_named
from fabric.graph.values.value import BufferReference
from fabric.messages.telling.causes import Operation
from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.place import Place
from fabric.runs.stepped import SteppedRun
from fabric.shell.cli import main
from fabric.shell.prompt import (
    Break,
    Prompt,
    print_channel,
    print_channels,
    print_tile,
    print_unit,
    print_where,
)
from fabric.timing.state.run_state import (
    ChannelState,
    OnChipState,
    RunState,
    UnitState,
    WaitState,
)
from fabric.timing.stepping.ledger import Held

SMALL = str(Path(__file__).parents[1] / "small_program.py")


class Input(io.StringIO):
    """Standard input: lines, among them presses of Ctrl-C."""

    @override
    def readline(self, *_: object) -> str:  # type: ignore[override]  # of text
        line = super().readline()
        if line == "Ctrl-C\n":
            raise KeyboardInterrupt
        return line


def ask(
    commands: str, capsys: pytest.CaptureFixture[str], place: str = "12", *options: str
) -> tuple[int, str, str]:
    """Hold a run at ``place``, say ``commands``; return its status and what it prints."""
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
    """Return the lines up to the report."""
    return text[: text.find("small  ")].splitlines() if "small  " in text else text.splitlines()


def test_looking(capsys: pytest.CaptureFixture[str]) -> None:
    """Where units are, what a channel and a tile are, and the report at the end of input."""
    commands = "where\nunit total_1\ngo count_1:3\nchannel total_1.0\ntile total_1.0\n"
    status, out, _ = ask(commands, capsys)

    assert status == 0
    assert lines(out) == [
        "small is held at cycle 12",
        "cycle 12; units: 1 busy, 1 waiting, 0 ended; elements: 1 taken, 0 held",
        "unit     since  wired at              is",
        "count_1         small_program.py:104  busy",
        "total_1     11  small_program.py:104  empty, waits for count_1",
        "unit     since  wired at              is",
        "total_1     11  small_program.py:104  empty, waits for count_1",
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


def test_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a stream that has ended it says since when."""
    _, out, _ = ask("channel total_1.0\ngo 50\nchannel total_1.0\n", capsys, "49")
    before, after = out.split("small is held at cycle 50\n")
    assert "its stream ended" not in before
    assert "its stream ended at cycle 50" == after.splitlines()[2]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (" 1,000 ", Break(None, 1_000)),
        ("0", Break(None, 0)),
        ("9" * 18, Break(None, 10**18 - 1)),
        ("a:b.0:1", Break("a:b.0", 1)),
        ("a:" + "9" * 18, Break("a", 10**18 - 1)),
        ("9" * 19, None),
        ("a:0", None),
        (":3", None),
        ("a:", None),
        ("-1", None),
        ("", None),
    ],
)
def test_places(text: str, found: Break | None) -> None:
    """A cycle from 0 on, or an element from 1 on of a unit that has a name."""
    if found is None:
        with pytest.raises(ConfigurationError, match="expected CYCLE or UNIT:ELEMENT"):
            Break.parse(text)
    else:
        assert found == Break.parse(text)


def test_going(capsys: pytest.CaptureFixture[str]) -> None:
    """On by what moves, to cycles and elements, and to the end."""
    _, out, _ = ask("step\nstep 2\ngo 1,000\nwhere\ngo\nwhere\n", capsys, "count_1:2")
    assert lines(out) == [
        "small is held at cycle 20: count_1 sends element 2",
        "small is held at cycle 21",
        "small is held at cycle 31",
        "small is held at cycle 51, where it is over",
        "cycle 51; units: 0 busy, 0 waiting, 2 ended; elements: 5 taken, 0 held",
    ]


def test_which_input(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a unit with inputs it says from which of them the elements are counted."""
    for place in ("total_1:2", "total_1.0:2"):
        _, out, _ = ask("quit\n", capsys, place)
        assert lines(out) == [
            "small is held at cycle 21: total_1 takes element 2 from its input 0, count_1.0"
        ]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("wher", "'wher': expected one of where, unit, channel, tile, step, go, quit, help"),
        ("go x", "'x': expected CYCLE or UNIT:ELEMENT, such as 1000 or matmul_1:3"),
        ("go total_1:0", "'total_1:0': expected CYCLE or UNIT:ELEMENT"),
        ("go 5", "until: cycle 5 is past: expected one from 12 on"),
        ("go total_1:9", "until: element 9 of total_1 does not come: the run is over at cycle 51"),
        ("unit total", "(did you mean total_1?)"),
        ("unit", "unit: expected its name, such as unit count_1"),
        ("channel", "count_1.0 -> total_1.0  0/2      1      1           0"),
        ("tile", "tile: expected the channel that holds it"),
        ("channel total_1", "(did you mean total_1.0?)"),
        ("tile total_1.0", "total_1.0 holds no element: expected a channel that holds one"),
        ("tile total_1.0 7", "total_1.0 holds no element 7"),
        ("tile total_1.0 x", "no channel"),
        ("step 0", "step 0: expected a number of steps"),
        ("step x", "step x: expected a number of steps"),
        (f"step {'9' * 18}", f"step {'9' * 18}: expected a number of steps"),
        ("help", "go UNIT:ELEMENT     go on until a unit takes so many elements"),
        ("Ctrl-C", "held at cycle 12; quit leaves"),
        ("", "small is held at cycle 12"),
    ],
)
def test_what_is_said(command: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Mistakes are told, and the prompt goes on."""
    status, out, err = ask(f"{command}\nwhere\n", capsys)
    assert status == 0
    assert said in out
    assert "units: " in out
    assert "Traceback" not in out + err


def test_leaving(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """``quit`` abandons the run: its log says so, and there is no report."""
    status, out, _ = ask("quit\n", capsys)
    assert (status, out) == (130, "small is held at cycle 12\n")
    assert '"interrupted"' in (tmp_path / "logs" / "small-1" / "report.json").read_text("utf-8")


def test_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """A run that fails, or is stuck, can be looked at where it did; its status is the usual one."""
    status, out, _ = ask("where\n", capsys, "900", "-p", "fault=raises")
    assert status == 1
    assert "small is held at cycle 31, where it is over" in out
    # Where lines are wrapped depends on the folder that the message names.
    assert "ValueError: odd" in " ".join(out.split())
    status, out, _ = ask("unit relay_1\n", capsys, "900", "-p", "fault=stuck")
    assert status == 3
    assert "empty, waits for relay_1" in out


@pytest.mark.parametrize(
    ("place", "options", "said"),
    [
        ("x", (), "--break-at: 'x': expected CYCLE or UNIT:ELEMENT"),
        ("totl_1:3", (), "--break-at: no unit is called 'totl_1'"),
        ("3", ("--json",), "expected it without --json"),
        ("3", ("--depth", "x.0=2"), "--depth x.0: no channel has that name"),
    ],
)
def test_wrong_options(
    place: str, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before anything runs."""
    status, _, err = ask("", capsys, place, *options)
    assert status == 2
    assert said in err


def test_a_terminal_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where somebody types, the prompt has the cycle; names of commands are completed."""
    asked: list[str] = []
    answers = iter(["step", "quit"])

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return next(answers)

    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr(Input, "isatty", lambda _: True)
    assert ask("", capsys)[0] == 130
    assert asked == ["(cycle 12) ", "(cycle 20) "]
    assert Prompt.completenames(None, "ch") == ["channel"]  # type: ignore[arg-type]


def test_termination_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """SIGTERM is not Ctrl-C: it ends the command, also at the prompt."""

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
    """``go`` at a terminal: the prompt comes back, and the run can go on."""
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
def test_interrupted_twice(
    commands: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second Ctrl-C abandons a run that goes on, to where it is held first or from there."""
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


def _unit(
    number: int, name: str, cycle: int, wait: Operation | None = None, *channels: int
) -> UnitState:
    waits = None if wait is None else WaitState(wait, channels, cycle, True, None)
    return UnitState(
        number, name, "Map", "compute", Place("in/p.py", number + 1), 8, cycle, name == "e", waits,
        2, 3, 5, None,
    )  # fmt: skip


def _channel(number: int, ends: tuple[int, int], held: int, name: str = "") -> ChannelState:
    return ChannelState(
        number, name or f"c{number}", "", *ends, "tile", 4, 1, 1, held, 300 + number, 200 + number,
        number, 70 if number == 1 else None, None, None, 2, number + 1, 20, 30, 0,
    )  # fmt: skip


def _by_hand() -> Any:
    """Return a run of eight units in cycle 50, two of which work and one of which has ended."""
    receive, reach = Operation.RECEIVE, Operation.REACH
    units = (
        _unit(0, "a", 5), _unit(1, "b", 9), _unit(2, "c", 20, receive, 0, 1, 2, 3),
        _unit(3, "d", 30, Operation.SEND, 4), _unit(4, "t", 25, reach), _unit(5, "e", 40),
        _unit(6, "m", 7, receive, 0, 1, 2), _unit(7, "h", 45, Operation.OFF_CHIP),
    )  # fmt: skip
    ends = ((0, 2), (1, 2), (3, 2), (4, 2), (3, 5))
    channels = tuple(map(_channel, range(5), ends, (1, 3, 0, 2, 1)))
    state = RunState("by hand", 50, units, channels, OnChipState(None, (), None), 0, None)
    return SimpleNamespace(
        cycle=1_234, state=state, until=lambda **_: None,
        unit=lambda name: next(each for each in units if each.name == name),
        channel=lambda name: next(each for each in channels if each.name == name),
    )  # fmt: skip


def _printed(show: Callable[..., None], run: Any, *more: object, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(run, console, *more)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_many_units() -> None:
    """Who works comes first, the latest first; three peers are named; thirty units are shown."""
    run = _by_hand()
    assert _printed(print_where, run) == [
        "cycle 1,234; units: 2 busy, 5 waiting, 1 ended; elements: 1,010 taken, 7 held",
        "unit  since  wired at  is",
        "b            p.py:2    busy",
        "a            p.py:1    busy",
        "h        45  p.py:8    HBM, waits for the HBM",
        "d        30  p.py:4    full, waits for e",
        "t        25  p.py:5    waits for its turn",
        "c        20  p.py:3    empty, waits for a or b or d or 1 more",
        "m         7  p.py:7    empty, waits for a or b or d",
    ]
    assert _printed(print_unit, run, "c") == [
        "unit  since  wired at  is",
        "c        20  p.py:3    empty, waits for a or b or d or 1 more",
        "cycles: busy 2, empty 40, HBM 3, capacity 5",
        "channel  held  sent  taken  bare stops",
        "c0       1/4    300    200           0",
        "c1       3/4    301    201           1",
        "c2       0/4    302    202           2",
        "c3       2/4    303    203           3",
    ]
    assert [line.split()[0] for line in _printed(print_unit, run, "d")[4:]] == ["c2", "c4"]
    assert [line.split()[0] for line in _printed(print_channels, run)[1:]] == [
        "c1", "c3", "c0", "c4", "c2",
    ]  # fmt: skip
    for count, more in ((30, []), (31, ["and 1 more"])):
        units = tuple(_unit(number, f"u{number}", number) for number in range(count))
        run.state = replace(run.state, units=units)
        lines = _printed(print_where, run)
        assert (["u1"] if count == 31 else ["u0"]) == lines[31].split()[:1]
        assert more == lines[32:]


def test_what_is_held() -> None:
    """Thirty elements are told of, tiles with four digits, and thirty tiles of a buffer."""
    run, float32 = _by_hand(), np.dtype(np.float32)
    nowhere: Any = None
    third = Tile(1, 2, dtype_named("bfloat16"), np.array([[1 / 3, 2.0]], dtype_named("bfloat16")))
    tiles = [Tile(1, 1, float32, np.array([[number]], float32)) for number in range(31)]
    values: list[object] = [
        third,
        Tile(1, 2, np.dtype(np.uint8), np.array([[7, 8]], np.uint8)),
        Tile(1, 2, np.dtype(bool), np.array([[True, False]])),
        Tile(2, 3, float32),
        BufferReference([(tile, 0) for tile in tiles], 1, nowhere),
        True,
        *[False] * 25,
    ]
    held = [
        Held(3 + at, each, at % 2, 10 * at, None if at else 4) for at, each in enumerate(values)
    ]
    run.held = lambda _: tuple(held)

    lines = _printed(print_channel, run, "c1")
    assert lines[2] == "its stream ended at cycle 70"
    assert [line.split() for line in (*lines[3:5], lines[9], lines[33], lines[34])] == [
        ["element", "value", "stop", "sent", "visible"],
        ["3", *repr(third).split(), "0", "0", "4"],
        ["8", "True", "1", "50", "on", "links"],
        ["32", "False", "1", "290", "on", "links"],
        ["and", "1", "more"],
    ]
    assert len(_printed(print_channel, run, "c0")) == 2 + 1 + 30 + 1
    assert [
        _printed(print_tile, run, "c1", number)[1:] for number in (None, 3, 4, 5, 6, 8)
    ] == [
        ["[[0.334 2.   ]]"], ["[[0.334 2.   ]]"], ["[[7 8]]"], ["[[ True False]]"],
        ["no data in timing mode"], [],
    ]  # fmt: skip
    assert _printed(print_tile, run, "c1", 7)[1:] == [f"[[{number}.]]" for number in range(30)]
    assert _printed(print_tile, run, "c1", 8) == ["element 8: True"]
    # A number is in one piece, however narrow the terminal is.
    assert _printed(print_tile, run, "c1", 3, width=6)[1:] == ["[[0.334", "  2.   ]]"]
    there = ", ".join(map(str, range(3, 33)))
    with pytest.raises(ConfigurationError) as refused:
        _printed(print_tile, run, "c1", 2)
    assert refused.value.message == f"c1 holds no element 2: expected one of {there}"


def test_first_of_many_inputs() -> None:
    """Inputs are ordered by their numbers, not their letters; who reads nothing sends."""
    run = _by_hand()
    names = ("x.0 -> c.10", "x.1 -> c.9", "x.2 -> c.11", "x.3 -> t.0")
    ends = ((0, 2), (0, 2), (0, 2), (0, 4))
    channels = tuple(map(_channel, range(4), ends, (0, 0, 0, 0), names))
    run.state = replace(run.state, channels=channels)
    assert [Break(unit, 1_000).go(run) for unit in ("c", "c.11", "a", None)] == [
        "c takes element 1,000 from its input 9, x.1",
        "c takes element 1,000 from its input 11, x.2",
        "a sends element 1,000",
        "",
    ]

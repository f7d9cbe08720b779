"""What structlog's loggers are told of a run."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable, MutableMapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest
import structlog
from structlog.testing import LogCapture, capture_logs

from fabric import (
    ConfigurationError,
    Hardware,
    Program,
    ProgramError,
    hardware_scope,
    open_run,
    simulate,
)
from fabric.analysis.trace.analysis.moment import state_in
from fabric.extend import FlatDescription
from fabric.messages.telling.vocabulary import EVENTS, LEVELS
from fabric.messages.terminal.standard_error import console_processors
from fabric.runs import story
from fabric.runs.story import new_run_folder
from operators import Exp, LinearOffChipLoad, LinearOffChipStore, Map, Tensor
from tests.deadlock.cases import CASES, ring
from tests.deadlock.parts import Script, sink, source
from tests.docs.warm import folder_of_python
from tests.fabric import small_program
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import record
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule
from tests.telling import LIVE, captured

_SMALL = str(Path(small_program.__file__))
_RUN = ("-m", "fabric", "run", _SMALL, "--mode", "functional")


def test_folders_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the largest number that is there, and after what others make at the same time."""
    logs = tmp_path / "some" / "logs"
    assert logs / "run-1" == new_run_folder(logs, "run")
    for other in ("run-x", "run-7-1", "another-40"):
        (logs / other).mkdir()
    assert "run-2" == new_run_folder(logs, "run").name
    (logs / "run-10").mkdir()
    assert "run-11" == new_run_folder(logs, "run").name
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    assert "run-3" == new_run_folder(logs, "run").name


def _python() -> str:
    """Return a Python that has imported the fabric."""
    return str(folder_of_python() / "python")


def _completes() -> Program:
    with Program("exp") as program:
        x = LinearOffChipLoad(np.eye(32), tile=(1, 32))()
        LinearOffChipStore("y")(Map(Exp())(x))
    return program


def _leaves_over() -> Program:
    with Program("left-over") as program:
        Script(("r0",), rounds=2, counts=(), name="y")(source("x", 5))
    return program


def _takes_long() -> Program:
    """Wire a ring that stands still beside loads that take millions of cycles."""
    slow = Hardware(hbm=FlatDescription(latency_cycles=400_000))
    with hardware_scope(slow), Program("long") as program:
        ring("stuck", 2)
        for number, rows in enumerate((96, 112)):
            x = LinearOffChipLoad(Tensor((rows, 64)), tile=(16, 64))()
            LinearOffChipStore(f"y{number}")(x)
    return program


def _waits_long() -> Program:
    """Wire what waits for the fourth of four loads, each of which takes 400,000 cycles."""
    slow = Hardware(hbm=FlatDescription(latency_cycles=400_000))
    with hardware_scope(slow), Program("waits") as program:
        x = LinearOffChipLoad(Tensor((64, 64)), tile=(16, 64))()
        sink("y", Script(("r0",) * 4 + ("s0",), rounds=1, counts=(1,), name="fourth")(x)[0])
    return program


PROGRAMS: dict[str, Callable[[], Program]] = {
    "completes": _completes,
    "leaves over": _leaves_over,
    "takes long": _takes_long,
    "waits long": _waits_long,
    "wrong": lambda: small_program.build(fault="wrong"),
    "raises": lambda: small_program.build(fault="raises"),
    **{name: CASES[name].build for name in ("pack_rows", "ring_of_1", "two_buffers", "long_tail")},
}


def _told(program: Program, **settings: Any) -> list[dict[str, Any]]:
    """Run ``program`` and return what a user's processors are told."""
    capture = LogCapture()
    simulate(program, log=[capture], **settings)
    return captured(capture)


@pytest.mark.parametrize("name", spread(PROGRAMS, 5))
class TestEveryRun:
    def test_once_and_in_order(self, name: str, tmp_path: Path) -> None:
        """Processors see what the file has: known events with their fields, as cycles pass."""
        told = _told(PROGRAMS[name](), log_dir=tmp_path)
        text = next(tmp_path.glob("*/events.jsonl")).read_text(encoding="utf-8")

        assert told == [json.loads(line) for line in text.splitlines()]
        for each in told:
            assert {"event", "level", "run", *EVENTS[each["event"]]} == set(each)
            assert LEVELS[each["event"]] == each["level"]
        cycles = [each["cycle"] for each in told]
        assert sorted(cycles) == cycles
        ends = [each["operator"] for each in told if each["event"] == "operator_finished"]
        assert len(set(ends)) == len(ends)
        assert ("run_started", "run_ended") == (told[0]["event"], told[-1]["event"])

    def test_engines_and_schedules(self, name: str) -> None:
        """Who runs the operators, and in which order, changes nothing of what is told."""
        expected = None
        for engine in ("tasks", "compiled"):
            for order in SCHEDULES:
                with schedule(order):
                    told = _told(PROGRAMS[name](), engine=engine)
                found = [each for each in told if each["event"] not in LIVE]
                expected = expected or found
                assert expected == found


@pytest.mark.parametrize("name", spread(CASES, 4))
def test_deadlocks(name: str) -> None:
    """Who waits, on what, since when, why, and what helps: what the report has is in the events."""
    capture = LogCapture()
    report = simulate(CASES[name].build(), log=[capture], livelock_cycles=10_000)
    told: list[dict[str, Any]] = [dict(each) for each in capture.entries]
    found = report.deadlock
    assert found is not None

    units = [each for each in told if each["event"] in ("blocked", "blocked_behind")]
    names = {"operation": "waits_for", "channels": "on", "waits_for": "peers"}
    wanted = [
        {names.get(key, key): value for key, value in unit.items()}
        for unit in (*(unit for loop in found["loops"] for unit in loop["units"]), *found["behind"])
    ]
    assert wanted == [{key: each[key] for key in wanted[0]} for each in units]
    loops = [each for each in told if each["event"] == "stuck_loop"]
    assert [(loop["code"], loop["cause"], loop["hint"]) for loop in found["loops"]] == [
        (each["code"], each["root"], each["hint"]) for each in loops
    ]
    (verdict,) = (each for each in told if each["event"] == report.status)
    assert (found["code"], found["summary"]) == (verdict["code"], verdict["summary"])
    assert json.dumps(found["remedy"]) == json.dumps(verdict["remedy"])


class TestEvents:
    def test_run_again(self) -> None:
        """A run with the depths that help begins at cycle 0."""
        told = _told(CASES["pack_rows"].build(), on_deadlock="grow")
        (again,) = (at for at, each in enumerate(told) if each["event"] == "run_again")

        assert (0, "deadlock") == (told[again]["cycle"], told[again - 1]["event"])
        remedy = told[again - 1]["remedy"]
        assert {each["option"]: each["after"] for each in remedy["depths"]} == told[again]["depths"]

    def test_long_stall(self) -> None:
        """Who waits for over a million cycles, on what, and since when, is a warning, once."""
        told = _told(_waits_long())
        (found,) = (each for each in told if each["event"] == "long_stall")

        assert ("warning", "y", ["fourth.0 -> y.0"], ["fourth"], 0) == tuple(
            found[name] for name in ("level", "unit", "on", "peers", "since_cycle")
        )
        assert found["cycle"] == found["cycles"] >= 1_000_000

    @pytest.mark.parametrize(("cycles", "times"), [(7, 1), (8, 0)])
    def test_how_long(
        self, cycles: int, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A wait is long from so many cycles on, and is told of once: in cycle 20 one since 13."""
        wired = chain(("s0",), ("r0", "s0"), ("r0", "c10"), elements=5)
        state = state_in(record(wired, tmp_path)[1], 20)
        monkeypatch.setattr(story, "HEARTBEAT_CYCLES", cycles)
        events: list[dict[str, object]] = []
        log: Any = SimpleNamespace(
            event=lambda name, cycle, **more: events.append({"event": name, "cycle": cycle, **more})
        )
        known: set[tuple[int, ...]] = set()
        for _ in range(2):
            story.tell_waits(log, state, 20, known)
        expected = {
            "event": "long_stall", "cycle": 20, "unit": "unit_1", "waits_for": "send",
            "on": ["unit_1.0 -> unit_2.0"], "peers": ["unit_2"], "since_cycle": 13, "cycles": 7,
        }  # fmt: skip
        assert [expected] * times == events

    def test_left_over(self) -> None:
        """Elements that nobody took are a warning with their channel."""
        (found,) = (each for each in _told(_leaves_over()) if each["event"] == "left_over")

        assert ("warning", "x.0 -> y.0", "y", 3) == (
            found["level"], found["channel"], found["unit"], found["left_over"],
        )  # fmt: skip

    @pytest.mark.parametrize(("fault", "event"), [("wrong", "wrong_output"), ("raises", "failure")])
    def test_faults(self, fault: Any, event: str) -> None:
        """Wrong results and failures are errors."""
        told = _told(small_program.build(fault=fault), mode="functional")

        assert [event] == [each["event"] for each in told if each["level"] == "error"]


class TestLoggers:
    def test_captured(self) -> None:
        """Structlog's own test helper sees a logger of the user's, with what they have bound."""
        with capture_logs() as events:
            simulate(_completes(), log=structlog.get_logger().bind(job=17))

        assert [17] * 5 == [each["job"] for each in events]
        assert "run_started" == events[0]["event"]

    def test_configuration(self, tmp_path: Path) -> None:
        """Neither is structlog's global configuration read nor changed."""
        before = structlog.get_config()
        processors = list(before["processors"])

        def refused(*_: object) -> NoReturn:
            raise AssertionError

        structlog.configure(processors=[refused])
        configured = structlog.get_config()
        try:
            assert 5 == len(_told(_completes(), log_dir=tmp_path))
            assert configured == structlog.get_config()
        finally:
            structlog.configure(**(before | {"processors": processors}))

    def test_level(self) -> None:
        """A logger that filters by level is told of what it lets pass."""
        capture = LogCapture()
        logger = structlog.wrap_logger(
            None, [capture], structlog.make_filtering_bound_logger("info")
        )
        simulate(_completes(), log=logger)

        assert ["run_started", "run_ended"] == [each["event"] for each in capture.entries]

    def test_standard_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        """What processors make of events goes to standard error."""
        simulate(_completes(), log=[structlog.processors.JSONRenderer()])
        output = capsys.readouterr()

        assert ("", 5) == (output.out, len(list(map(json.loads, output.err.splitlines()))))

    def test_keys_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """They are written in the order in which the event has them, not by name."""
        monkeypatch.setenv("NO_COLOR", "1")
        text: Any = {"event": "moved", "to": 3, "at": 1}
        for processor in console_processors():
            text = processor(None, "info", text)

        assert text.split() == ["[info", "]", "moved", "to=3", "at=1"]

    def test_held_run(self) -> None:
        """A run that is held tells its story as well."""
        capture = LogCapture()
        with open_run(_completes(), log=[capture]) as run:
            run.finish()

        assert captured(capture) == _told(_completes())

    def test_drops(self, tmp_path: Path) -> None:
        """A processor that drops an event leaves it out, and the file has it."""

        def drop(*_: object) -> NoReturn:
            raise structlog.DropEvent

        report = simulate(_completes(), log=[drop], log_dir=tmp_path)

        assert simulate(_completes()).warnings == report.warnings == ()
        text = next(tmp_path.glob("*/events.jsonl")).read_text(encoding="utf-8")
        assert 5 == len(text.splitlines())

    @pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(0), OSError(28, "full")])
    @pytest.mark.parametrize("at", [0, 2, 4])
    def test_raises(self, error: BaseException, at: int, tmp_path: Path) -> None:
        """The run goes on without it; the report, the caller and the file are told."""
        seen: list[str] = []
        notices: list[str] = []

        def fail(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
            seen.append(event["event"])
            if len(seen) == at + 1:
                raise error
            return ""

        report = simulate(_completes(), log=[fail], log_dir=tmp_path, notify=notices.append)

        assert (at + 1, "completed", 4) == (len(seen), report.status, report.exit_status)
        (sentence,) = report.unwritten
        assert [sentence] == notices
        line = fail.__code__.co_firstlineno + 3
        assert sentence.startswith(f"{__file__}:{line}: log raised {type(error).__name__}: ")
        assert f", at event {seen[-1]} of cycle " in sentence
        assert simulate(_completes()).cycles == report.cycles
        text = next(tmp_path.glob("*/events.jsonl")).read_text(encoding="utf-8")
        assert (sentence in text) == (seen[-1] != "run_ended")

    def test_trace_raises(self) -> None:
        """Who tells a trace to such a log gets the error."""

        def fail(*_: object) -> NoReturn:
            raise ValueError("boom")

        with pytest.raises(ProgramError, match=r"log raised ValueError: boom, at event \w+ of"):
            simulate(_completes(), trace="events").trace().tell([fail])

    @pytest.mark.parametrize("log", ["json", 3, [], [3], structlog.BoundLogger, print])
    def test_no_log(self, log: Any) -> None:
        """What is no logger, and no processors, is refused before the run."""
        with pytest.raises(ConfigurationError, match=r"simulate: log is .*: expected a logger of"):
            simulate(_completes(), log=log)

    def test_no_logger_of_a_run(self) -> None:
        """A logger that cannot be bound, or whose methods are awaited, is refused."""
        logger: Any = structlog.get_logger().bind()

        class Unbound(type(logger)):  # type: ignore[misc]
            def bind(self, **_: object) -> NoReturn:
                raise LookupError("gone")

        with pytest.raises(ConfigurationError) as refused:
            simulate(_completes(), log=Unbound(None, [], {}))
        assert refused.value.message.endswith(", whose bind() raised LookupError: gone")
        assert refused.value.file == __file__

        class Awaited(type(logger)):  # type: ignore[misc]
            async def info(self, *_: object, **__: object) -> None: ...

        with pytest.raises(ConfigurationError) as refused:
            simulate(_completes(), log=Awaited(None, [], {}))
        assert refused.value.message.endswith(
            ", whose methods are awaited: expected one whose methods are called"
        )


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.mark.usefixtures("in_a_folder")
class TestCommand:
    @pytest.mark.parametrize("level", ["debug", "info", "error"])
    def test_json(self, level: str) -> None:
        """Lines of JSON go to standard error or to a file; standard output has the report."""
        for to in ("json", "run.jsonl"):
            run = subprocess.run(
                [_python(), *_RUN, "--log", to, "--log-level", level, "--json",
                 "-p", "fault=wrong"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            text = run.stderr if to == "json" else Path(to).read_text(encoding="utf-8")
            events = [json.loads(line) for line in text.splitlines() if line[0] == "{"]
            kept = Path("logs/small-1/events.jsonl").read_text(encoding="utf-8").splitlines()
            levels = ["debug", "info", "warning", "error"][
                ["debug", "info", "", "error"].index(level) :
            ]
            assert [each for each in map(json.loads, kept) if each["level"] in levels] == events
            assert (1, "completed") == (run.returncode, json.loads(run.stdout)["status"])

    @pytest.mark.parametrize("plain", [False, True])
    def test_console(self, plain: bool) -> None:
        """On a terminal events are in colour, unless the user wants none; elsewhere never."""
        command = [_python(), *_RUN, "--log", "console"]
        piped = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        terminal, its_end = pty.openpty()
        env = os.environ | ({"NO_COLOR": "1"} if plain else {})
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=its_end, env=env) as run:
            os.close(its_end)
            written = b""
            try:
                while chunk := os.read(terminal, 4096):
                    written += chunk
            except OSError:
                pass
        os.close(terminal)

        assert 0 == run.returncode
        assert "[info     ] run_started" in piped
        assert "\x1b" not in piped
        assert (b"run_started" in written, plain) == (True, b"\x1b[" not in written)

    def test_refused(self) -> None:
        """A file that cannot be written, and a level of nothing, are mistakes."""
        for options in (["--log", "nowhere/run.jsonl"], ["--log-level", "debug"]):
            run = subprocess.run(
                [_python(), *_RUN, *options], capture_output=True, text=True, check=False
            )
            assert (2, "") == (run.returncode, run.stdout)
            assert "--log" in run.stderr

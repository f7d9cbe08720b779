from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import structlog
from structlog.testing import LogCapture, capture_logs

from fabric import ConfigurationError, Hardware, Program, hardware_scope, open_run, simulate
from fabric.extend import FlatDescription
from fabric.runs.run_log import new_run_folder
from fabric.shell.cli import main
from operators import Exp, LinearOffChipLoad, LinearOffChipStore, Map, Tensor
from tests.deadlock.cases import CASES, ring
from tests.deadlock.parts import Script, sink, source
from tests.docs.warm import folder_of_python
from tests.fabric import small_program
from tests.outcomes import LIVE, captured
from tests.profiles import spread
from tests.schedules import SCHEDULES, schedule

_PAGE = Path(__file__).parents[2] / "docs/pages/reference/log-events.md"
_EVENT = re.compile(r"^\| `(\w+)` \| (info|debug|warning|error) \| (.*) \|$", re.MULTILINE)
EVENTS = {event: about for event, *about in _EVENT.findall(_PAGE.read_text(encoding="utf-8"))}

_SMALL = str(Path(small_program.__file__))
_RUN = ("-m", "fabric", "run", _SMALL, "--mode", "functional")


def test_folders_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    slow = Hardware(hbm=FlatDescription(latency_cycles=400_000))
    with hardware_scope(slow), Program("long") as program:
        ring("stuck", 2)
        for number, rows in enumerate((96, 112)):
            x = LinearOffChipLoad(Tensor((rows, 64)), tile=(16, 64))()
            LinearOffChipStore(f"y{number}")(x)
    return program


def _waits_long() -> Program:
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


def _logged(program: Program, **settings: Any) -> list[dict[str, Any]]:
    capture = LogCapture()
    simulate(program, log=[capture], **settings)
    return captured(capture)


@pytest.mark.parametrize("name", spread(PROGRAMS, 3))
class TestEveryRun:
    def test_events_are_logged_once_and_in_order(self, name: str, tmp_path: Path) -> None:
        logged = _logged(PROGRAMS[name](), log_dir=tmp_path)
        text = next(tmp_path.glob("*/events.jsonl")).read_text(encoding="utf-8")

        assert logged == [json.loads(line) for line in text.splitlines()]
        for each in logged:
            level, fields = EVENTS[each["event"]]
            assert {"event", "level", "run", *re.findall(r"\w+", fields)} == set(each)
            assert level == each["level"]
        cycles = [each["cycle"] for each in logged]
        assert sorted(cycles) == cycles
        ends = [each["operator"] for each in logged if each["event"] == "operator_finished"]
        assert len(set(ends)) == len(ends)
        assert ("run_started", "run_ended") == (logged[0]["event"], logged[-1]["event"])

    def test_events_are_equal_in_both_engines_and_all_schedules(self, name: str) -> None:
        expected = None
        for engine in ("tasks", "compiled"):
            for order in SCHEDULES:
                with schedule(order):
                    logged = _logged(PROGRAMS[name](), engine=engine)
                found = [each for each in logged if each["event"] not in LIVE]
                expected = expected or found
                assert expected == found


@pytest.mark.parametrize("name", spread(CASES, 4))
def test_events_of_a_deadlock_have_its_report(name: str) -> None:
    capture = LogCapture()
    report = simulate(CASES[name].build(), log=[capture], livelock_cycles=10_000)
    logged: list[dict[str, Any]] = [dict(each) for each in capture.entries]
    found = report.deadlock
    assert found is not None

    units = [each for each in logged if each["event"] in ("blocked", "blocked_behind")]
    names = {"operation": "waits_for", "channels": "on", "waits_for": "peers"}
    wanted = [
        {names.get(key, key): value for key, value in unit.items()}
        for unit in (*(unit for loop in found["loops"] for unit in loop["units"]), *found["behind"])
    ]
    assert wanted == [{key: each[key] for key in wanted[0]} for each in units]
    loops = [each for each in logged if each["event"] == "stuck_loop"]
    assert [(loop["code"], loop["cause"], loop["hint"]) for loop in found["loops"]] == [
        (each["code"], each["root"], each["hint"]) for each in loops
    ]
    (verdict,) = (each for each in logged if each["event"] == report.status)
    assert (found["code"], found["summary"]) == (verdict["code"], verdict["summary"])
    assert json.dumps(found["remedy"]) == json.dumps(verdict["remedy"])


class TestEvents:
    def test_run_with_deeper_channels_begins_at_cycle_0(self) -> None:
        logged = _logged(CASES["pack_rows"].build(), on_deadlock="grow")
        (again,) = (at for at, each in enumerate(logged) if each["event"] == "run_again")

        assert (0, "deadlock") == (logged[again]["cycle"], logged[again - 1]["event"])
        depths = logged[again - 1]["remedy"]["depths"]
        assert {each["option"]: each["after"] for each in depths} == logged[again]["depths"]

    def test_wait_of_a_million_cycles_is_a_warning(self) -> None:
        logged = _logged(_waits_long())
        (found,) = (each for each in logged if each["event"] == "long_stall")

        assert ("warning", "y", ["fourth.0 -> y.0"], ["fourth"], 0) == tuple(
            found[name] for name in ("level", "unit", "on", "peers", "since_cycle")
        )
        assert found["cycle"] == found["cycles"] >= 1_000_000


class TestLoggers:
    def test_users_logger_keeps_its_bindings(self) -> None:
        with capture_logs() as events:
            simulate(_completes(), log=structlog.get_logger().bind(job=17))

        assert [17] * 5 == [each["job"] for each in events]
        assert "run_started" == events[0]["event"]

    def test_held_run_is_logged(self) -> None:
        capture = LogCapture()
        with open_run(_completes(), log=[capture]) as run:
            run.finish()

        assert captured(capture) == _logged(_completes())

    def test_dropped_event_stays_in_the_file(self, tmp_path: Path) -> None:
        def drop(*_: object) -> NoReturn:
            raise structlog.DropEvent

        report = simulate(_completes(), log=[drop], log_dir=tmp_path)

        assert simulate(_completes()).warnings == report.warnings == ()
        text = next(tmp_path.glob("*/events.jsonl")).read_text(encoding="utf-8")
        assert 5 == len(text.splitlines())

    @pytest.mark.parametrize(
        ("error", "at"), [(ValueError("boom"), 0), (SystemExit(0), 2), (OSError(28, "full"), 4)]
    )
    def test_run_continues_without_a_raising_processor(
        self, error: BaseException, at: int, tmp_path: Path
    ) -> None:
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

    @pytest.mark.parametrize("log", ["json", [], structlog.BoundLogger])
    def test_object_that_cannot_log_is_refused(self, log: Any) -> None:
        with pytest.raises(ConfigurationError, match=r"simulate: log is .*: expected a logger of"):
            simulate(_completes(), log=log)


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.mark.usefixtures("in_a_folder")
class TestCommand:
    @pytest.mark.deep
    def test_log_as_json_equals_the_file(self) -> None:
        for to in ("json", "run.jsonl"):
            run = subprocess.run(
                [_python(), *_RUN, "--log", to, "--log-level", "info", "--json",
                 "-p", "fault=wrong"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            text = run.stderr if to == "json" else Path(to).read_text(encoding="utf-8")
            events = [json.loads(line) for line in text.splitlines() if line[0] == "{"]
            kept = Path("logs/small-1/events.jsonl").read_text(encoding="utf-8").splitlines()
            assert [each for each in map(json.loads, kept) if each["level"] != "debug"] == events
            assert (1, "completed") == (run.returncode, json.loads(run.stdout)["status"])

    def test_unusable_log_options_are_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        for options in (["--log", "nowhere/run.jsonl"], ["--log-level", "debug"]):
            assert 2 == main([*_RUN[2:], *options])
            out, err = capsys.readouterr()
            assert ("", True) == (out, "--log" in err)

"""SIGTERM and SIGHUP end a command as Ctrl-C does: report, log, and status 128 + number."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import types
from pathlib import Path

import numpy as np
import pytest

from fabric import Program, Report, simulate
from fabric.shell.cli import main
from fabric.timing.machine.terminations import Terminations, uninterrupted
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.fabric.small_program import build
from tests.profiles import spread

_ROOT = Path(__file__).parents[2]
_PROGRAM = str(_ROOT / "tests" / "fabric" / "small_program.py")
_COMMAND = (sys.executable, "-m", "fabric")
_ENVIRONMENT = os.environ | {"PYTHONPATH": str(_ROOT)}

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", spread(_SIGNALS, 1))
def test_signalled_run_keeps_report_and_trace(number: signal.Signals, tmp_path: Path) -> None:
    command = [*_COMMAND, "run", _PROGRAM, "--json", "--trace", "events", "-p", "fault=endless"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=_ENVIRONMENT, cwd=tmp_path
    ) as run:
        folder = tmp_path / "logs" / "small-1"
        while not list(folder.glob("trace/operations-*.parquet")):
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(number)
        written, _ = run.communicate()

    printed = json.loads(written)
    kept = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    ended = json.loads((folder / "trace" / "end.json").read_text(encoding="utf-8"))
    assert 128 + number == run.returncode
    assert ["interrupted"] * 3 == [each["status"] for each in (printed, kept, ended)]
    assert printed["elements"] > 0
    assert printed == kept
    assert '"event": "run_ended"' in (folder / "events.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", spread(_SIGNALS, 1))
@pytest.mark.parametrize("command", ["run", "graph"])
def test_signal_while_wiring_ends_the_command(
    number: signal.Signals, command: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from __future__ import annotations\n"
        f"import os, time\nos.kill(os.getpid(), {int(number)})\ntime.sleep(600)\n",
        encoding="utf-8",
    )
    options = ["-o", "graph.svg"] if command == "graph" else ["--json"]
    run = subprocess.run(
        [*_COMMAND, command, str(program), *options],
        capture_output=True,
        text=True,
        check=False,
        env=_ENVIRONMENT,
        cwd=tmp_path,
    )

    assert (128 + number, "fabric: interrupted") == (run.returncode, run.stderr.strip())
    if command != "graph":
        assert "interrupted" == json.loads(run.stdout)["status"]


def _raising(number: signal.Signals) -> Report:
    class Raises(SiLU):
        def apply(self, *tiles: object) -> object:  # type: ignore[override]
            signal.raise_signal(number)
            return super().apply(*tiles)  # type: ignore[arg-type]

    with Program("program", mode="functional") as program:
        loaded = LinearOffChipLoad(np.ones((8, 8)), tile=(4, 4))()
        LinearOffChipStore("out")(Map(Raises())(loaded))
    return simulate(program)


@pytest.mark.parametrize("number", _SIGNALS)
def test_signal_handlers_are_restored(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in (*_SIGNALS, signal.SIGALRM)]
    report = _raising(number)

    assert ("interrupted", number, 128 + number) == (
        report.status,
        report.signal,
        report.exit_status,
    )
    assert before == [signal.getsignal(each) for each in (*_SIGNALS, signal.SIGALRM)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_handlers_of_the_user_stay(number: signal.Signals) -> None:
    came = []
    before = signal.signal(number, lambda *_: came.append(number))
    try:
        assert "completed" == _raising(number).status
        assert 4 == len(came)
        signal.signal(number, signal.SIG_IGN)
        assert "completed" == _raising(number).status
    finally:
        signal.signal(number, before)


_IMPORTING = compile("import signal; signal.raise_signal(number)", "<frozen importlib>", "exec")


@pytest.mark.parametrize("number", _SIGNALS)
def test_signal_during_an_import_ends_the_next_run(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fabric.timing.machine.terminations._SOON_SECONDS", 60.0)
    with Terminations().handled():
        exec(_IMPORTING, {"number": number})
        report = simulate(build(fault="endless"))

    assert ("interrupted", number) == (report.status, report.signal)
    assert 0.0 == signal.getitimer(signal.ITIMER_REAL)[0]


@pytest.mark.parametrize("number", _SIGNALS)
def test_signal_in_an_uninterrupted_block_waits_for_its_end(number: signal.Signals) -> None:
    done = []

    def begin() -> None:
        with Terminations().handled():
            exec(_IMPORTING, {"number": number})
            with uninterrupted():
                signal.raise_signal(signal.SIGALRM)
                done.append(number)

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert [number] == done


@pytest.mark.parametrize("name", ["sysconfig", "enum", "traceback"])
def test_handler_waits_for_an_import(name: str) -> None:
    there, source = sys.modules[name], f"{sysconfig.get_path('stdlib')}/{name}.py"
    begins = compile("import signal; signal.raise_signal(signal.SIGTERM)", source, "exec")
    around = compile("exec(begins)", "<frozen importlib>", "exec")
    came = Terminations()
    sys.modules[name] = types.ModuleType(name)
    try:
        with came.handled():
            exec(around, {"begins": begins})
            waits = came.waits
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        sys.modules[name] = there
    assert waits


_SIGNALLED = """\
import signal

import numpy as np

from fabric import Program
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU


class Raises(SiLU):
    def apply(self, *tiles):
        signal.raise_signal({number})
        return super().apply(*tiles)


def build(seed: int = 0) -> Program:
    with Program("program", mode="functional") as program:
        loaded = LinearOffChipLoad(np.ones((8, 8)), tile=(4, 4))()
        LinearOffChipStore("out")(Map(Raises())(loaded))
    return program
"""


@pytest.mark.parametrize("number", _SIGNALS)
@pytest.mark.parametrize("command", [("run",), ("size",), ("size", "--over", "seed=0,1")])
def test_signal_during_a_run_ends_the_command_with_its_status(
    command: tuple[str, ...], number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(_SIGNALLED.format(number=int(number)), encoding="utf-8")
    assert 128 + number == main([command[0], "program.py", *command[1:]])

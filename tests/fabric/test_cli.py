from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import fabric.runs.execution
import fabric.runs.simulation
from fabric.analysis.trace.opened import Trace
from fabric.runs.report import Report
from fabric.shell import cli
from fabric.shell.cli import main
from tests.profiles import spread

PROGRAM = str(Path(__file__).with_name("small_program.py"))
SIMPLIFIED_MOE = str(Path(__file__).parents[2] / "programs" / "simplified_moe.py")
COMMAND = [sys.executable, "-m", "fabric"]
ELSEWHERE = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("COLUMNS", raising=False)


class Output:
    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.status = main(arguments)
        self.out, self.err = capsys.readouterr()

    @property
    def object(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.out)
        return value


def test_base_exception_is_reported_with_its_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Odd(BaseException):
        pass

    def odd(*_: object, **__: object) -> int:
        raise Odd("why")

    monkeypatch.setattr(cli, "users_values", contextlib.nullcontext)
    monkeypatch.setattr(cli.command_line, "main", odd)
    found = Output(capsys, "run", PROGRAM, "--json")
    line = odd.__code__.co_firstlineno + 1
    assert found.err == f"fabric: {__file__}:{line}: raised Odd: why\n"
    assert (2, "raised Odd: why") == (found.status, found.object["error"]["message"])
    assert line == found.object["error"]["line"]


def _chunks(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            return
        if not chunk:
            return
        yield chunk


class TestRun:
    def test_completed_run_reports_to_stdout(self, capsys: pytest.CaptureFixture[str]) -> None:
        output = Output(capsys, "run", PROGRAM, "--mode", "functional")

        assert 0 == output.status
        assert output.out.splitlines()[:2] == [
            f"small  {PROGRAM}",
            "completed, verified in functional mode, every element equal",
        ]
        assert output.err.splitlines()[-1] == "log in logs/small-1"
        assert Path("logs/small-1/events.jsonl").is_file()

    def test_json_has_the_fields_of_a_report(self, capsys: pytest.CaptureFixture[str]) -> None:
        output = Output(capsys, "run", PROGRAM, "--json", "-p", "stop=5", "--log-dir", "elsewhere")

        found = output.object
        assert (0, "") == (output.status, output.err)
        assert list(Report(program="").as_json()) == list(found)
        assert {"stop": 5, "period": 10, "fault": "none"} == found["parameters"]
        assert ("completed", "timing", 5) == (found["status"], found["mode"], found["elements"])
        assert "elsewhere/small-1" == found["log_dir"]

    @pytest.mark.parametrize(("command", "said"), [("run", 5), ("check", 2)])
    def test_prints_of_a_program_go_to_stderr_with_json(
        self, capsys: pytest.CaptureFixture[str], command: str, said: int
    ) -> None:
        program = Path(PROGRAM).read_text(encoding="utf-8")
        program = program.replace("def build(", "print('said')\n\n\ndef build(")
        program = program.replace("    with Program(", "    print('said')\n    with Program(")
        program = program.replace(
            "            ports.unit.charge(",
            "            print('said')\n            ports.unit.charge(",
        )
        Path("talks.py").write_text(program, encoding="utf-8")
        as_json = Output(capsys, command, "talks.py", "--json")
        as_text = Output(capsys, command, "talks.py")

        assert "talks.py" == as_json.object["program"]
        assert said * ["said"] == [line for line in as_json.err.splitlines() if line == "said"]
        assert said * ["said"] == as_text.out.splitlines()[:said]


class TestStatus:
    def test_failing_operator_exits_with_1(self, capsys: pytest.CaptureFixture[str]) -> None:
        output = Output(capsys, "run", PROGRAM, "--json", "-p", "fault=raises")

        found = output.object
        assert (1, "error", 31) == (output.status, found["status"], found["cycles"])
        assert PROGRAM == found["error"]["file"]
        assert "Traceback" not in output.err

    def test_deadlock_exits_with_3(self, capsys: pytest.CaptureFixture[str]) -> None:
        output = Output(capsys, "run", PROGRAM, "-p", "fault=stuck")

        assert 3 == output.status
        assert "error[FAB-D002]: dependency deadlock at cycle 0: relay_1 waits for" in output.out

    def test_interrupt_in_compiled_code_ends_the_run(self, tmp_path: Path) -> None:
        program = tmp_path / "huge.py"
        program.write_text(
            "from fabric import Program\n"
            "from operators import Consumer, LinearOffChipLoad, Tensor\n"
            "def build():\n"
            "    with Program('huge') as program:\n"
            "        Consumer()(LinearOffChipLoad(Tensor((2**40, 8)), (2**40, 8))())\n"
            "    return program\n"
        )
        log = tmp_path / "logs" / "huge-1" / "events.jsonl"
        command = [*COMMAND, "run", str(program), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ELSEWHERE) as run:
            try:
                while run.poll() is None and not log.is_file():
                    time.sleep(0.05)
                time.sleep(0.5)
                run.send_signal(signal.SIGINT)
                written, _ = run.communicate(timeout=60)
            finally:
                run.kill()

        assert (130, "interrupted") == (run.returncode, json.loads(written)["status"])

    @pytest.mark.parametrize(
        "error", [EOFError("marshal data too short"), RuntimeError("Query interrupted")]
    )
    def test_error_without_a_signal_is_not_an_interrupt(
        self,
        error: Exception,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        assert 0 == Output(capsys, "run", PROGRAM, "--trace", "events").status
        (folder,) = Path("logs").glob("small-*")

        monkeypatch.setattr(Trace, "_segments", Mock(side_effect=error))
        output = Output(capsys, "trace", "stalls", str(folder))
        assert 1 == output.status
        assert f"a fault of the fabric: {type(error).__name__}: {error}" in output.err


class TestUnusable:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--nope"], "No such option '--nope'."),
            (["--mode", "fast"], "Invalid value for '--mode': 'fast' is not one of"),
            (
                ["--depth", "a.0"],
                "Invalid value for '--depth': 'a.0': expected CHANNEL=N with N at least 1",
            ),
        ],
    )
    def test_unusable_option_is_reported_as_text_and_object(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
    ) -> None:
        output = Output(capsys, "run", PROGRAM, "--json", *arguments)

        assert 2 == output.status
        assert output.object["error"]["message"].startswith(message)
        assert f"\nError: {output.object['error']['message']}\n" in output.err
        error = {"message": output.object["error"]["message"], "file": None, "line": None}
        assert {"status": "error", "error": error} == output.object

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["-p", "fault=no"],
                f"{PROGRAM}:67: parameter fault of build() is 'no': "
                "expected one of none, wrong, raises, stuck, endless (did you mean none?)",
            ),
            (
                ["--hardware", "nope.toml"],
                "nope.toml: cannot be read (No such file or directory): "
                "expected a hardware description in TOML",
            ),
            (
                ["--depth", "a.0=3"],
                "--depth a.0: no channel has that name: expected OPERATOR.INPUT, one of total_1.0",
            ),
        ],
    )
    def test_mistake_of_the_user_is_one_line(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
    ) -> None:
        output = Output(capsys, "run", PROGRAM, *arguments)

        assert (2, "", f"fabric: {message}\n") == (output.status, output.out, output.err)


class TestHost:
    def test_fault_of_the_fabric_shows_a_traceback(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = Mock(side_effect=LookupError("lost"))
        monkeypatch.setattr(fabric.runs.simulation, "simulate", broken)
        output = Output(capsys, "run", PROGRAM, "--json")

        message = "a fault of the fabric: LookupError: lost"
        assert 1 == output.status
        assert {"message": message, "file": None, "line": None} == output.object["error"]
        assert output.err.startswith("Traceback (most recent call last):\n")

    @pytest.mark.parametrize("closed", spread([((1,),), ((2,),), ((1, 2),)], 1))
    def test_run_without_standard_streams_keeps_its_files(self, closed: tuple[int, ...]) -> None:
        run = subprocess.run(
            [*COMMAND, "run", PROGRAM],
            capture_output=True,
            text=True,
            env=ELSEWHERE,
            preexec_fn=lambda: os.closerange(closed[0], closed[-1] + 1),
            check=False,
        )

        assert 0 == run.returncode
        assert "completed" == json.loads(Path("logs/small-1/report.json").read_text())["status"]
        assert (1 not in closed) == run.stdout.startswith(f"small  {PROGRAM}\n")
        assert (2 not in closed) == run.stderr.endswith("log in logs/small-1\n")
        assert "Traceback" not in run.stderr

    def test_progress_is_shown_on_a_terminal_and_cleared(self) -> None:
        terminal, its_end = pty.openpty()
        command = [*COMMAND, "run", PROGRAM]
        with subprocess.Popen(command, stdout=its_end, stderr=its_end, env=ELSEWHERE) as run:
            os.close(its_end)
            written = b"".join(_chunks(terminal)).decode()
        os.close(terminal)

        progress, _, report = written.partition("\x1b[2K\x1b[1msmall")
        assert 0 == run.returncode
        assert re.search(
            r"cycle \d+, (\d+ cycles/s, )?\d elements, \d running, \d waiting", progress
        )
        assert "cycles/s" not in report

    def test_ascii_output_gets_question_marks(self) -> None:
        run = subprocess.run(
            [*COMMAND, "run", "prögram.py"],
            capture_output=True,
            env=ELSEWHERE | {"PYTHONIOENCODING": "ascii"},
            check=False,
        )

        assert 2 == run.returncode
        assert b"Traceback" not in run.stderr

    @pytest.mark.parametrize(("asked", "threads"), spread([(None, 1), ("2", 2)], 1))
    def test_products_use_one_thread(self, asked: str | None, threads: int, tmp_path: Path) -> None:
        program, counted = tmp_path / "counting.py", tmp_path / "threads"
        program.write_text(
            "import os\nfrom pathlib import Path\nimport numpy as np\n"
            "from fabric import Program\n"
            "def build():\n"
            "    np.ones((256, 256)) @ np.ones((256, 256))\n"
            f"    Path({str(counted)!r}).write_text(str(len(os.listdir('/proc/self/task'))))\n"
            "    return Program('counting')\n"
        )
        name = "OPENBLAS_NUM_THREADS"
        env = {key: value for key, value in ELSEWHERE.items() if key != name}
        if asked is not None:
            env[name] = asked
        subprocess.run([*COMMAND, "check", program], env=env, capture_output=True, check=False)

        assert str(threads) == counted.read_text()

    def test_help_imports_nothing_large(self) -> None:
        large = ["duckdb", "networkx", "numba", "numpy", "rich", "structlog", "sympy", "trio"]
        large += ["fabric.runs.report"]  # importing it takes a tenth of the time

        assert "[] 0" == _imported(large, "run", "--help")
        assert "[] 0" == _imported(large, "trace", "query", "--list")

    def test_run_imports_what_it_needs(self, tmp_path: Path) -> None:
        idle = [
            "fabric.graph.hardware.memory_models",
            "fabric.timing.memories.fixed_latency",
            "fabric.analysis.deadlock.describe",
            "fabric.analysis.deadlock.text",
        ]
        idle += ["tomllib", "doctest"]

        assert "[] 0" == _imported(idle, "run", PROGRAM, "--log-dir", str(tmp_path))


def _imported(names: list[str], *arguments: str) -> str:
    script = (
        f"import sys; from fabric.shell.cli import main; status = main({list(arguments)!r}); "
        f"print([name for name in {names} if name in sys.modules], status)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=ELSEWHERE, check=True
    )
    return run.stdout.splitlines()[-1]


@pytest.mark.parametrize("module", spread(["typing", "random", "operators"], 1))
def test_a_program_with_a_library_s_name_runs(module: str, tmp_path: Path) -> None:
    file = tmp_path / f"{module}.py"
    file.write_text(Path(PROGRAM).read_text(encoding="utf-8"), encoding="utf-8")
    ran = subprocess.run(
        [*COMMAND, "run", file.name],
        capture_output=True,
        text=True,
        env=ELSEWHERE,
        cwd=tmp_path,
        check=False,
    )

    assert (0, False) == (ran.returncode, "Traceback" in ran.stderr), ran.stderr


@pytest.mark.parametrize("columns", ["1", "20"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", SIMPLIFIED_MOE, "--depth", "reassemble_1.2=2"),
        ("check", PROGRAM),
        ("operators", "Map"),
    ],
)
def test_a_terminal_of_few_columns_gets_the_whole_text(
    arguments: tuple[str, ...],
    columns: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    logs = ("--log-dir", str(tmp_path)) if arguments[0] == "run" else ()

    assert main([*arguments, *logs]) == (3 if "--depth" in arguments else 0)
    assert "fault of the fabric" not in capsys.readouterr().err

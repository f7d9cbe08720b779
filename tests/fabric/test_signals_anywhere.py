from __future__ import annotations

import collections
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.profiles import crossed

_ROOT: Final = Path(__file__).parents[2]
_PROGRAM: Final = str(_ROOT / "tests" / "fabric" / "small_program.py")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGEST_SECONDS: Final = 30.0

_COMMANDS: Final = {
    "run": ("run", _PROGRAM, "--json"),
    "endless": ("run", _PROGRAM, "--json", "-p", "fault=endless"),
    "traced": ("run", _PROGRAM, "--json", "-p", "fault=endless", "--trace", "events"),
    "check": ("check", _PROGRAM, "--json"),
    "graph": ("graph", _PROGRAM, "-o", "graph.svg"),
    "size": ("size", _PROGRAM, "--json"),
    "operators": ("operators",),
    "study": ("study", str(_ROOT / "tests/fabric/study/program_of_points.py"), "--jobs", "2",
              "--json", "--vary", "tiles=2..200+2", "--minimize", "cycles", "-o", "found"),
}  # fmt: skip


def _left(session: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(folder.name))
    return found


def signalled(name: str, number: int, seconds: float, folder: Path) -> str:
    with subprocess.Popen(
        [sys.executable, "-m", "fabric", *_COMMANDS[name]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(_ROOT), "PYTHONFAULTHANDLER": "1"},
        start_new_session=True,
    ) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        else:
            return "" if process.returncode == 0 else f"ended with {process.returncode} before"
        try:
            printed, errors = process.communicate(timeout=_LONGEST_SECONDS)
            trouble = _wrong(process.returncode, number, printed, errors)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # its traceback names where each thread is
            trouble = f"does not end: {process.communicate()[1][-5000:]}"
        until = time.monotonic() + _LONGEST_SECONDS
        while (left := _left(process.pid)) and time.monotonic() < until and not trouble:
            time.sleep(0.05)
        for each in left:
            os.kill(each, signal.SIGKILL)
        if left and not trouble:
            trouble = f"{len(left)} processes are left"
        return trouble


def _wrong(status: int, number: int, printed: str, errors: str) -> str:
    if errors.rstrip().endswith("KeyboardInterrupt") and str(_ROOT / "fabric") not in errors:
        return ""  # raised while Python starts, before it runs the fabric
    if status not in (-number, 128 + number, 0):
        return f"status {status}: {errors[-500:]}"
    if "Traceback" in errors and status != -number:
        return errors[-500:]
    if status != -number and "{" in printed:
        try:
            json.loads(printed)
        except ValueError as error:
            return f"no one object: {error}"
    return ""


@pytest.mark.parametrize(
    ("name", "seconds", "number"),
    crossed([("run", 0.15), ("study", 1.5), ("endless", 1.0)], _SIGNALS, 1),
)
def test_command_ends_at_a_signal(name: str, seconds: float, number: int, tmp_path: Path) -> None:
    assert "" == signalled(name, number, seconds, tmp_path)


@pytest.mark.exhaustive
def test_commands_end_at_signals_at_random_moments() -> None:
    assert {} == tried(2_000, 29)


def tried(tries: int, seed: int) -> dict[str, int]:
    drawn = random.Random(seed)
    troubles: collections.Counter[str] = collections.Counter()
    for attempt in range(tries):
        name = drawn.choice([*_COMMANDS, "study", "study"])
        number = drawn.choice(_SIGNALS)
        seconds = drawn.choice((0.3, 1.0, 4.0)) * drawn.random()
        with TemporaryDirectory() as folder:
            trouble = signalled(name, number, seconds, Path(folder))
        if trouble:
            print(attempt, name, signal.Signals(number).name, f"{seconds:.3f}", trouble, flush=True)  # noqa: T201
            troubles[trouble] += 1
    return dict(troubles)


if __name__ == "__main__":
    for each in _SIGNALS:  # nohup ignores SIGHUP
        signal.signal(each, signal.SIG_DFL)
    tried(int(sys.argv[1]), int(sys.argv[2]))

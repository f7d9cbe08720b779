from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from fabric import ConfigurationError
from fabric.analysis.trace.opened import Trace
from fabric.shell.cli import main
from fabric.timing.engine import log
from tests.profiles import of_profile, spread

_ROOT: Final = Path(__file__).parents[3]

_PROGRAMS: Final = {
    "moe": ("model=tiny", "batch=16", "tile_n=4"),
    "attention": ("requests=4", "regions=2"),
}

_NOTHING: Final = re.compile(
    r".*: (there is no trace here: expected the folder of a run with --trace events|"
    r"the run was killed (before it began to write|while it wrote its first tables), "
    r"there is nothing to show)"
)

_STATIC: Final = ("units", "channels", '"columns"')

# The order of the host decides the numbers of readings.
_ENTRIES: Final = f"""
SELECT unit, operation, channel, amount, cycle, waited,
    CASE WHEN operation NOT IN ({log.NOTE}, {log.LATE}) THEN stop END
FROM entries ORDER BY unit, place
"""

_EVERY: Final = 10


def _sequences(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    found = defaultdict(list)
    for first, *rest in rows:
        found[first].append(tuple(rest))
    return found


class _Whole:
    def __init__(self, trace: Trace) -> None:
        self.static = {name: trace.rows(f"FROM {name}") for name in _STATIC}
        self.entries = _sequences(trace.rows(_ENTRIES))

    def check(self, trace: Trace) -> int:
        assert self.static == {name: trace.rows(f"FROM {name}") for name in _STATIC}
        entries = _sequences(trace.rows(_ENTRIES))
        for unit, rows in entries.items():
            assert self.entries[unit][: len(rows)] == rows
        return sum(map(len, entries.values()))


def _killed(name: str, kills: int, folder: Path, seed: int) -> list[Path]:
    program = _ROOT / "programs" / f"{name}.py"
    command = [sys.executable, "-m", "tests.fabric.trace.killing", str(folder), str(kills)]
    subprocess.run([*command, str(seed), str(program), *_PROGRAMS[name]], check=True, cwd=_ROOT)
    return [folder / str(number) for number in range(kills)]


def _check(name: str, kills: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> int:
    killed = _killed(name, kills, tmp_path, seed=7)
    ((run),) = (tmp_path / "whole").iterdir()
    whole = _Whole(Trace(run))
    with_rows = 0
    for number, folder in enumerate(killed):
        runs = list(folder.glob("*"))
        trace = None
        for run in runs:
            try:
                trace = Trace(run)
            except ConfigurationError as nothing:
                said = str(nothing)
                assert _NOTHING.fullmatch(said), (folder, said)
            else:
                rows = whole.check(trace)
                assert rows or not list(run.rglob("operations-*.parquet")), folder
                with_rows += rows > 0
        if number % _EVERY == 0 and runs:
            for command in ("summary", "stalls", "deadlock"):
                status = main(["trace", command, str(runs[0])])
                assert (2 if trace is None else 0) == status, (folder, command)
                assert "Error:" not in capsys.readouterr().err
    return with_rows


@pytest.mark.deep
@pytest.mark.parametrize("name", spread(_PROGRAMS, 1))
def test_killed_runs_leave_beginnings_of_the_trace(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = of_profile(quick=6, deep=25)
    assert _check(name, kills, tmp_path, capsys) >= kills // 6

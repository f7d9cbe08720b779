from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fabric import Study, grid
from fabric.explore.study.storage import file_url
from fabric.explore.study.store import Store

PROGRAM = Path(__file__).parent / "program_of_ends.py"

POINTS = 12

STUDY = Study(
    program=PROGRAM,
    space=grid(number=range(POINTS)),
    fixed={"act": "says its number"},
    name="program_of_ends",
)


def _started(folder: Path, more: Sequence[str] = ()) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fabric", "study", str(PROGRAM), "--json", "--jobs", "2"]
    command += ["--vary", f"number=0..{POINTS - 1}", "-p", "act=says its number", *more]
    return subprocess.Popen(
        [*command, "--storage", file_url(folder / "study.db")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _runs(process: subprocess.Popen[str], most: int = 10**9) -> list[int]:
    # All processes share one standard error, which ends with the last process.
    found: list[int] = []
    assert process.stderr is not None
    while len(found) < most and (line := process.stderr.readline()):
        said = re.fullmatch(r"this is (\d+)\n|program_of_ends: [0-9.]+ s\n", line)
        assert said is not None, line
        found.extend(int(number) for number in said.groups() if number)
    return found


def _kept(folder: Path) -> set[int]:
    return {each.index for each in Store(STUDY, file_url(folder / "study.db")).known()}


@pytest.mark.deep
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 10))]
)
def test_killed_study_keeps_its_points_and_resumes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    kept: set[int] = set()
    for _ in range(2):
        process = _started(tmp_path)
        ran = _runs(process, chance.randint(1, 5))
        process.kill()
        ran += _runs(process)
        process.communicate()
        now = _kept(tmp_path)
        assert not kept & set(ran)
        assert kept <= now <= kept | set(ran)
        # Two workers lose at most the points under way and the points being written.
        assert len(ran) - len(now - kept) <= 4
        kept = now
    process = _started(tmp_path)
    ran = _runs(process)
    output, _ = process.communicate()
    assert process.returncode == 0
    assert set(ran) == set(range(POINTS)) - kept
    told = json.loads(output)
    assert [each["index"] for each in told["points"]] == list(range(POINTS))
    assert told["counts"] == {
        "total": POINTS,
        "run": POINTS - len(kept),
        "pruned": 0,
        "failed": 0,
        "resumed": len(kept),
    }


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)]
)
def test_interrupted_study_prints_the_points_it_kept(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = _started(tmp_path)
    ran = _runs(process, 5)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    ran += _runs(process)
    output, _ = process.communicate()
    assert process.returncode == 128 + number
    told = {each["index"] for each in json.loads(output)["points"]}
    assert told == _kept(tmp_path)
    assert 3 <= len(told) <= len(ran)

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
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


def _started(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fabric", "study", str(PROGRAM), "--json", "--jobs", "2"]
    command += ["--vary", f"number=0..{POINTS - 1}", "-p", "act=says its number"]
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
def test_killed_study_keeps_its_points_and_resumes(tmp_path: Path) -> None:
    chance = random.Random(0)
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
        # Two workers lose at most the points that are running and the points that are being
        # written.
        assert len(ran) - len(now - kept) <= 4
        kept = now
    process = _started(tmp_path)
    ran = _runs(process)
    output, _ = process.communicate()
    assert process.returncode == 0
    assert set(ran) == set(range(POINTS)) - kept
    result = json.loads(output)
    assert [each["index"] for each in result["points"]] == list(range(POINTS))
    assert result["counts"] == {
        "total": POINTS,
        "run": POINTS - len(kept),
        "pruned": 0,
        "failed": 0,
        "resumed": len(kept),
    }


def test_interrupted_study_prints_the_points_it_kept(tmp_path: Path) -> None:
    process = _started(tmp_path)
    ran = _runs(process, 5)
    os.killpg(process.pid, signal.SIGINT)
    ran += _runs(process)
    output, _ = process.communicate()
    assert process.returncode == 128 + signal.SIGINT
    indices = {each["index"] for each in json.loads(output)["points"]}
    assert indices == _kept(tmp_path)
    assert 3 <= len(indices) <= len(ran)

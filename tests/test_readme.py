"""The README's transcripts: every command in it prints what it says there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = [
    block
    for block in re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    if block.startswith("$ ")
]
"""Transcripts: commands after ``$``, and what they print on standard output."""


def _commands(block: str) -> list[tuple[str, str]]:
    """Return the commands of a transcript with their output."""
    found = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert found
    return found


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0][2:])
def test_transcript(block: str, tmp_path: Path) -> None:
    """Each command prints what the README shows, 100 columns wide, in a clone with no runs yet."""
    here = tmp_path / "step-fabric"
    here.mkdir()
    (here / "programs").symlink_to(ROOT / "programs")
    environment = os.environ | {
        "COLUMNS": "100",
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    status = 0
    for command, expected in _commands(block):
        if command == "echo $?":
            assert f"{status}\n" == expected
            continue
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        status = done.returncode
        assert expected == done.stdout, done.stderr


def test_set_up() -> None:
    """The README opens with the two lines that do all the set-up."""
    first = re.search(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert first is not None
    lines = first[1].splitlines()

    assert 2 == len(lines)
    assert lines[0].endswith("python -m fabric run programs/simplified_moe.py")
    assert "python -m pytest" in lines[1]

"""The README's transcripts: every command in it prints what it says there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.transcripts import (
    ROOT,
    Block,
    blocks,
    clone,
    happened,
    named,
    pictured,
    skip_without_torch,
)

FILE = ROOT / "README.md"
README = FILE.read_text(encoding="utf-8")
BLOCKS = [each for each in blocks(README) if each.text.startswith(("$ ", ">>> "))]
"""Transcripts: commands after ``$`` or ``>>>``, and what they print on standard output."""


def first_line(block: Block) -> str:
    """Return the name of the test of a block."""
    return named(block.text.splitlines()[0][2:], [block])


@pytest.mark.parametrize("block", BLOCKS, ids=first_line)
def test_transcript(block: Block, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Each command prints what the README shows, 100 columns wide, in a clone with no runs yet.

    A picture of the name of a file that the commands write is that file.
    Those with PyTorch are skipped, visibly, where that is not installed.
    """
    skip_without_torch([block])
    here = clone(tmp_path)
    found = happened(block, here, [])
    pictured(FILE, here, write=pytestconfig.getoption("--write-golden"))
    if pytestconfig.getoption("--write-golden"):
        FILE.write_text(FILE.read_text(encoding="utf-8").replace(block.text, found), "utf-8")
    else:
        assert block.text == found


def test_set_up() -> None:
    """The README opens with the two lines that do all the set-up."""
    first = re.search(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert first is not None
    lines = first[1].splitlines()

    assert 2 == len(lines)
    assert lines[0].endswith("python -m fabric run programs/simplified_moe.py")
    assert "python -m pytest" in lines[1]


def test_one_screen() -> None:
    """The README is the way in; what there is to know is in the documentation."""
    assert len(README.splitlines()) <= 200


def test_links() -> None:
    """Files that the README leads to are there, and the documentation is one of them."""
    links = re.findall(r"\]\((?!https?://)([^)#]+)", README)

    assert "docs/pages/index.md" in links
    assert [] == [link for link in links if not (ROOT / link).exists()]

"""Checks transcripts in documents: every command prints what the document shows.

In a page, ``python`` and ``toml`` blocks with a title are files, which the commands in later blocks
read. ``console`` blocks are commands after ``$`` with their output. ``pycon`` blocks are entered at
Python's prompt, in one session for each page.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.docs.warm import folder_of_python

ROOT: Final = Path(__file__).parents[2]

_BLOCK: Final = re.compile(
    r'^```(\w*)(?: title="([^"]+)")?[^\n]*\n(.*?)^```', re.MULTILINE | re.DOTALL
)
_COMMAND: Final = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)
_IMAGE: Final = re.compile(r"!\[[^\]]*\]\(([^)]*)\)")
_OF_TORCH: Final = re.compile(r"torch|own_module")
"""Names in blocks that need PyTorch: the library, ``operators.torch``, and programs that use it."""


class Block(NamedTuple):
    """A block of code in a document; ``title`` is the name of its file, or empty."""

    language: str
    title: str
    text: str


def blocks(document: str) -> Iterator[Block]:
    return (Block(*match) for match in _BLOCK.findall(document))


def named(name: str, code_blocks: Iterable[Block]) -> str:
    """Return the name of a test of blocks; ``-k torch`` selects blocks that need PyTorch."""
    return f"{name}, with torch" if any(map(_needs_torch, code_blocks)) else name


def skip_without_torch(code_blocks: Iterable[Block]) -> None:
    if any(map(_needs_torch, code_blocks)) and find_spec("torch") is None:
        pytest.skip("needs the extra torch")


def _needs_torch(block: Block) -> bool:
    entered = _COMMAND.findall(block.text) if block.language == "console" else [block.text]
    return block.language != "text" and any(map(_OF_TORCH.search, entered))


def clone(folder: Path) -> Path:
    here = folder / "step-fabric"
    here.mkdir()
    (here / "programs").symlink_to(ROOT / "programs")
    return here


def run_block(block: Block, here: Path, entered: list[str]) -> str:
    """Write the file, run the commands or enter the lines of a block. Return the actual block.

    ``entered`` are the earlier blocks at Python's prompt; this block is added.
    """
    if block.title:
        (here / block.title).write_text(block.text, encoding="utf-8")
    elif block.language == "console":
        return _commands(block.text, here)
    elif block.language == "pycon":
        entered.append(block.text)
        session = here / "session.txt"
        session.write_text("\n".join(entered), encoding="utf-8")
        done = _run([sys.executable, "-m", "doctest", str(session)], here)
        session.unlink()
        assert 0 == done.returncode, done.stdout
    else:
        assert block.language == "text", f"{block.language}: not a file, a transcript or a text"
    return block.text


def compare_images(document: Path, here: Path, *, write: bool) -> None:
    """Compare each image of ``document`` with the file that a command wrote, or replace it."""
    for image in _IMAGE.findall(document.read_text(encoding="utf-8")):
        shown, made = document.parent / image, here / Path(image).name
        if made.exists() and write:
            shown.write_bytes(made.read_bytes())
        assert not made.exists() or made.read_bytes() == shown.read_bytes()


def _run(command: list[str], here: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "COLUMNS": "100",
        "PYTHONPATH": str(ROOT),
        "PATH": os.pathsep.join(
            map(str, (folder_of_python(), Path(sys.executable).parent, os.environ["PATH"]))
        ),
    }
    return subprocess.run(
        command, cwd=here, env=environment, capture_output=True, text=True, check=False
    )


def _commands(text: str, here: Path) -> str:
    commands = _COMMAND.findall(text)
    assert commands
    status, printed = 0, ""
    for command in commands:
        printed += f"$ {command}\n"
        if command == "echo $?":
            printed += f"{status}\n"
            continue
        done = _run(["bash", "-c", command], here)
        status = done.returncode
        printed += done.stdout
        sys.stderr.write(done.stderr)
    return printed

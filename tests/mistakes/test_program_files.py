"""The mistakes of a first day in a program file, and in the shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from fabric.shell.cli import main

HEAD: Final = """\
import numpy as np
from fabric import *; from fabric.extend import *
from operators import *
"""

MISTAKES: Final = [
    (
        "def build():\n    Program('p')\n",
        [],
        "4: build() returned None: expected a Program (does it end in return program?)",
    ),
    (
        "def build():\n    return Program\n",
        [],
        "4: build() returned the class Program: expected a Program",
    ),
    (
        "def build(n, /):\n    return Program('p')\n",
        [],
        "4: parameter n of build() is positional-only: expected no / after it",
    ),
    (
        "def build():\n    Map(SiLU())(1)\n",
        [],
        "5: Map is called outside a program: expected `with Program(...)`",
    ),
    (
        "def build(tokens: int = 4):\n    return Program('p')\n",
        ["-p", "token=3"],
        "4: build() takes no parameter token (found -p token=3): "
        "expected one of tokens (did you mean tokens?)",
    ),
    (
        "def build(tokens: int = 4):\n    return Program('p')\n",
        ["-p", "tokens"],
        "-p tokens: expected NAME=VALUE",
    ),
]


@pytest.mark.parametrize(("text", "options", "expected"), MISTAKES)
def test_mistake_in_a_program_file_is_one_line_on_stderr(
    text: str,
    options: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("user.py").write_text(HEAD + text, encoding="utf-8")

    status = main(["run", "user.py", *options])

    place = "user.py:" if expected[0].isdecimal() else ""
    assert (2, ("", f"fabric: {place}{expected}\n")) == (status, tuple(capsys.readouterr()))

"""Mistakes are refused with the fabric's messages, at the user's line.

``table.txt`` has statements, each with ``=>`` and its answer. A statement of one line is inside a
program with a few streams; a statement of several lines comes after this program. Errors of a check
before the run begin with ``(checked)``, and errors of a run with ``(run)``. The answer names the
last line, the line that ends in ``# here``, or such a line of ``users.py``. An accepted stream at
the limit of a refusal has the answer ``(type)`` and the stream's type.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from fabric import FabricError, simulate
from fabric.analysis.symbolic.check import check

HERE: Final = Path(__file__).parent
USERS: Final = HERE / "users.py"


PROGRAM: Final = """\
import numpy as np
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from fabric import *; from fabric.extend import *
from operators import *
from tests.mistakes.users import *
def build():
    return Program("mistaken")
with Program("mistake") as program:
    x = np.ones((32, 32), np.float32)
    tiles = LinearOffChipLoad(x, tile=(16, 16), name="tiles")()
    selectors = Selectors(np.array([[0], [1]]), 2, name="selectors")()
    integers = Metadata(np.array([1, 2]), name="integers")()
    Consumer()(tiles), Consumer()(selectors), Consumer()(integers)
"""


def _rows() -> list[tuple[str, str]]:
    rows, lines = [], []
    for line in (HERE / "table.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        text, arrow, answer = line.partition("=> ")
        if text:
            lines.append(text.removesuffix(" ") if arrow else text)
        if arrow:
            rows.append(("\n".join(lines), answer))
            lines = []
    return rows


ROWS: Final = _rows()
MISTAKES: Final = [row for row in ROWS if not row[1].startswith("(type) ")]
ACCEPTED: Final = [row for row in ROWS if row[1].startswith("(type) ")]


def marked(path: Path) -> set[tuple[str, int]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {(str(path), at) for at, line in enumerate(lines, 1) if line.endswith("# here")}


def answer_of(path: Path) -> tuple[str, tuple[str | None, int | None]]:
    names: dict[str, Any] = {"__name__": "user"}
    when = ""
    try:
        exec(compile(path.read_bytes(), path, "exec"), names)
        when = "(checked) "
        check(names["program"], {}, data=False)
    except FabricError as error:
        return when + error.message, (error.file, error.line)
    failure = simulate(names["program"], mode="functional").error
    assert failure is not None
    # An error that does not depend on the tiles' data is the same in timing mode.
    assert simulate(names["program"], mode="timing").error in (failure, None)
    return "(run) " + failure["message"], (failure["file"], failure["line"])


@pytest.mark.parametrize(("mistake", "expected"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_mistake_is_refused_at_its_line(mistake: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "user.py"
    path.write_text(PROGRAM + (mistake if "\n" in mistake else f"    {mistake}") + "\n", "utf-8")

    message, place = answer_of(path)

    lines = PROGRAM.count("\n")
    message = re.sub(r"[^\s(]*\buser\.py:(\d+)", lambda at: f"line {int(at[1]) - lines}", message)
    message = re.sub(r"[^\s(]*\busers\.py:\d+", "users.py", message)
    assert expected == message
    last = (str(path), lines + mistake.count("\n") + 1)
    assert place in (marked(path) or {last}) | marked(USERS)


@pytest.mark.parametrize(("statement", "expected"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_accepted_stream_has_the_type(statement: str, expected: str) -> None:
    names: dict[str, Any] = {}
    exec(f"{PROGRAM}    found = {statement}\n", names)
    assert expected == f"(type) {names['found'].type}"

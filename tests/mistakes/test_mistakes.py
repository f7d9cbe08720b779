"""The mistakes of a first day: every one is told in the fabric's words, at the user's line.

``table.txt`` has one mistake a line: the statement, ``=>``, and the answer. It is made inside of a
program with a few streams; the answer names its line, or one of ``users.py`` that is marked.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

import fabric
import fabric.extend
import operators
from fabric import FabricError

HERE: Final = Path(__file__).parent
USERS: Final = HERE / "users.py"

UNCALLED: Final = {
    # raised by the fabric
    *("CapacityError", "ConfigurationError", "Deadlock", "FabricError", "OperatorError"),
    *("ProgramError", "ShapeError", "VerificationError"),
    # made by the fabric, or the words of annotations
    *("Allocation", "Arrivals", "BufferReference", "Burst", "Channel", "ComputeUnit"),
    *(
        "KnownBefore",
        "MemoryUnit",
        "Observer",
        "OffChip",
        "OutputShape",
        "Outputs",
        "Ports",
        "Rates",
        "Report",
        "Source",
        "Stream",
        "Table",
        "Trace",
        "Unit",
    ),
    *("Unit", "Wait", "Watched", "Wiring"),
    # answers of a study, and what one hands out
    *("DesignOutcome", "Findings", "Outcome", "Point", "Space", "StudySession", "run_point"),
    # what a run and its parts cost, in a report and in a sum of reports
    *("CostPart", "Spending"),
    # errors of numbers, for the operators and functions of the package
    *("TrackedArray", "carried", "one_step", "tracks_errors"),
    # the answer of sizing
    "Sizing",
    # answers of a memory: what is wrong in a user's is the memory's
    *("BusCycles", "ChannelTraffic", "ClientTraffic", "MemoryCounters"),
    # extended by a user's memory, whose mistakes it makes
    "StandIn",
    # answers of a trace
    *("CriticalPath", "Moment", "Stalls", "TraceDiff", "TraceSummary"),
    # answers about layouts
    *("Conversion", "ConvertBytes", "Loop", "Matrix", "Viewed"),
    # made by Tensor.elements
    "Elements",
    # sent or applied while a program runs: what is wrong there is the operator's, or its function's
    *(
        "Empty",
        "Selector",
        "Tile",
        "check_converts",
        "converted",
        "drop",
        "items_of",
        "kept_as",
        "number_in",
        "users_code",
        "row_bytes",
        "share",
    ),
    # true or false of anything
    *("holds_buffers", "holds_integers", "is_constant", "is_ragged", "is_static"),
    # about types: their least and largest number, without sizes that data decide, and blocks
    *("limits", "without_ragged", "block_format", "filled", "numbers_of"),
    # answers about floors: where units are, and what a fabric takes of a die
    *("Area", "FloorPlan", "Site"),
    # caught by who converts numbers
    "ValueChangedError",
    # what all of this is made with
    *("Bounds", "Described", "checked", "refuse"),
}
"""Public names that no statement of a program calls."""

MISTAKES: Final = [
    tuple(line.split(" => "))
    for line in (HERE / "table.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]

PROGRAM: Final = """\
import numpy as np
from pathlib import Path
from fabric import *; from fabric.extend import *
from operators import *
from tests.mistakes.users import *
def build():
    return Program("mistaken")
with Program("mistake") as program:
    x = np.ones((32, 32), np.float32)
    tiles = LinearOffChipLoad(Tensor((32, 32)), tile=(16, 16), name="tiles")()
    selectors = Selectors(np.array([[0], [1]]), 2, name="selectors")()
    integers = Metadata(np.array([1, 2]), name="integers")()
    Consumer()(tiles), Consumer()(selectors), Consumer()(integers)
    """


def marked(path: Path) -> set[int]:
    """Return the lines that are marked in ``path``."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# here")}


def answer(mistake: str, path: Path) -> FabricError:
    """Make ``mistake`` in a program at ``path`` and return what it is answered with."""
    path.write_text(PROGRAM + mistake + "\n", encoding="utf-8")
    with pytest.raises(FabricError) as caught:
        exec(compile(path.read_bytes(), path, "exec"), {"__name__": "user"})
    return caught.value


@pytest.mark.parametrize(("mistake", "expected"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_mistake(mistake: str, expected: str, tmp_path: Path) -> None:
    """Who, what was found, what was expected; and where."""
    path = tmp_path / "user.py"

    error = answer(mistake, path)

    assert expected == error.message
    last_line = PROGRAM.count("\n") + 1
    assert (error.file, error.line) in {(str(path), last_line)} | {
        (str(USERS), line) for line in marked(USERS)
    }


def test_every_public_class_and_function() -> None:
    """Whatever a program may call is called wrongly in the table."""
    called = {
        node.id
        for mistake, _ in MISTAKES
        for node in ast.walk(ast.parse(mistake))
        if isinstance(node, ast.Name)
    }
    public = {
        name
        for module in (fabric, fabric.extend, operators)
        for name in module.__all__
        if callable(getattr(module, name))
    }

    assert UNCALLED == public - called

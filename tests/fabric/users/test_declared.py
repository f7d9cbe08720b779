"""What is declared and what contradicts it: refused as soon as it can be known, at its line.

``declared.txt`` has a row for each declaration: sizes, types, orders, depths, names, and what
users' operators, functions and memories say of themselves. It is told when it is ``wired``, by the
line itself; when it is ``checked``, before anything runs; or by a ``run``, where only data tell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from fabric import FabricError, simulate
from fabric.analysis.symbolic.check import check

HERE: Final = Path(__file__).parent

PRELUDE: Final = """\
from dataclasses import dataclass
from fractions import Fraction
import numpy as np

from fabric import *; from fabric.extend import *
from operators import *

X = np.arange(32, dtype=np.float32).reshape(4, 8)
FLOAT = TileType(1, 1, dtype_named("float32"))


def line(count, tile=(1, 1)):
    data = np.ones((tile[0] * count, tile[1]))
    stored = Tensor(data.shape, data, dtype="float32")
    return Flatten(0, 1)(LinearOffChipLoad(stored, tile, (count,), (1,))())


def parted():
    return Partition(2)(line(3), Flatten(0, 1)(Selectors(np.array([[0], [1], [1]]), 2)()))


class Copy(Operator):
    def __call__(self, source):
        return self.wire(source)[0]

    def infer(self, wiring, source):
        return (source.type,)

    def costs(self, inputs, outputs):
        return Costs()

    async def run(self, ports):
        while (element := await ports.source.receive()) is not None:
            await ports.sink.send(element)


@dataclass(frozen=True)
class Memory(OffChipDescription):
    model = "own"
    request_bytes = 64
    peak_bytes_per_cycle = 64


def on(memory):
    with hardware_scope(Hardware(hbm=memory)), Program("on") as program:
        Consumer()(line(4))
    return program


program = Program("declared", mode="functional", channel_depth=100)
"""


class Row(NamedTuple):
    """A declaration with what contradicts it.

    Attributes:
        name: of both.
        when: it is told: ``wired``, ``checked`` or ``run``.
        body: the program behind the prelude.
        answer: what is told.
    """

    name: str
    when: str
    body: str
    answer: str


def _rows() -> list[Row]:
    found = []
    for block in (HERE / "declared.txt").read_text(encoding="utf-8").split("\n## ")[1:]:
        head, _, rest = block.partition("\n")
        name, _, when = head.rpartition(": ")
        body, _, answer = rest.partition("\n=> ")
        found.append(Row(name, when, body + "\n", answer.strip()))
    return found


ROWS: Final = _rows()


def _told(path: Path) -> tuple[str, str, str | None, int | None]:
    """Return when it is told of the program in ``path``, and what, in which file and line."""
    names: dict[str, Any] = {"__name__": "user"}
    when = "wired"
    try:
        exec(compile(path.read_bytes(), path, "exec"), names)
        when = "checked"
        check(names["program"], {}, data=False)
    except FabricError as error:
        return when, error.message, error.file, error.line
    told = simulate(names["program"]).error
    assert told is not None
    return "run", told["message"], told["file"], told["line"]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_told(row: Row, tmp_path: Path) -> None:
    """When, who, what was found, what was expected, and where: the last line, or one marked."""
    path = tmp_path / "user.py"
    text = PRELUDE + row.body
    path.write_text(text, encoding="utf-8")

    when, message, file, line = _told(path)

    lines = text.splitlines()
    marked = [number for number, each in enumerate(lines, 1) if each.endswith("# here")]
    assert (row.when, row.answer) == (when, message.replace(str(path), "user.py"))
    assert (str(path), *(marked or [len(lines)])) == (file, line)

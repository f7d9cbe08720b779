"""What the package offers by name, and to those who extend it."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import trio
from typing_extensions import override

import fabric
import operators
from fabric import Program, Report, simulate
from fabric.extend import ComputeOperator, Operator, Ports
from operators import (
    Accum,
    Add,
    Consumer,
    Flatten,
    Function,
    LinearOffChipLoad,
    Map,
    Matmul,
    PadRows,
    Partition,
    RandomOffChipLoad,
    Reduction,
    RetileRow,
    Selectors,
    SignalAllRead,
    SiLU,
    Sum,
    Tensor,
)
from tests.programs.loading import PROGRAMS

OUTSIDE = """
import numpy as np
from fabric import Program
from operators import Accum, Consumer, LinearOffChipLoad, RaggedIntegers, RandomOffChipLoad
from operators import Map, RescaledSum, RunningMaximum, Scan, ShiftedExp

def build() -> Program:
    rows = np.ones((8, 16))
    with Program("outside", mode="functional") as program:
        places = RaggedIntegers([[0, 3], [], [7]])()
        scores = RandomOffChipLoad(rows, tile=(1, 16))(places)
        running = Scan(RunningMaximum())(scores)
        weights = Map(ShiftedExp())(scores, running)
        values = RandomOffChipLoad(np.ones((128, 16)), tile=(16, 16))(places)
        Consumer()(Accum(RescaledSum())(weights, values, running))
    return program
"""


@dataclass(frozen=True)
class _Polite(Partition):
    """Let trio run something else before each sub-tensor, or await what never comes."""

    for_ever: bool = False

    @override
    async def _route(self, ports: Ports, *others: Any) -> None:
        await trio.lowlevel.checkpoint()
        if self.for_ever:
            await trio.Event().wait()
        await super()._route(ports, *others)


def _routed(partition: Partition) -> Report:
    with Program("routed") as program:
        route = Flatten(0, 1)(Selectors(np.zeros((6, 1), int), width=1)())
        tiles = Flatten(0, 2)(LinearOffChipLoad(Tensor((96, 64)), tile=(16, 64))())
        Consumer()(*partition(tiles, route))
    return simulate(program, mode="timing")


def test_star() -> None:
    """``import *`` brings the operators and functions, and leaves Python's own names alone."""
    offered = set(dir(operators))

    assert {"Map", "Zip", "Broadcast", "INTEGER", "narrow"} <= offered
    assert not offered & {"map", "zip", "functions", "annotations"}


def test_extended() -> None:
    """An operator that a user extends is trio's to run: it may await what any other may."""
    plain, polite = _routed(Partition(1)), _routed(_Polite(1))
    stuck = _routed(_Polite(1, for_ever=True))

    assert ("completed", plain.cycles) == (polite.status, polite.cycles)
    assert stuck.error is not None
    assert "awaits something outside of the fabric" in stuck.error["message"]


def test_outside_of_programs(tmp_path: Path) -> None:
    """A program anywhere has every operator and function of ``programs/``."""
    file = tmp_path / "outside.py"
    file.write_text(OUTSIDE)
    done = subprocess.run(
        [sys.executable, "-m", "fabric", "run", str(file), "--log-dir", str(tmp_path / "logs")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(operators.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    assert "completed" in done.stdout


def test_shared_pieces_of_programs() -> None:
    """They are graphs, sizes and files: what is an operator or a function is in the package."""
    kinds = (Function, Operator, Reduction)
    known = {each.__name__ for kind in kinds for each in (kind, *kind.__subclasses__())}
    found = [
        f"{path.name}: {node.name}"
        for path in sorted((PROGRAMS / "layers").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        if known & {ast.unparse(base) for base in node.bases}
    ]
    assert [] == found


CARRIERS = (
    "Broadcast Consumer Expand Flatten LinearOffChipLoad Parallelize Partition RandomOffChipStore "
    "Reassemble Repeat"
)
"""Operators that pass numbers in tiles on, or drop them, without a look."""

KINDS = {
    "compute": {"Accum", "Map", "Scan"},
    "memory": {
        "Bufferize", "LinearOffChipLoad", "LinearOffChipStore", "RandomOffChipLoad",
        "RandomOffChipStore", "Scatter", "Streamify",
    },
}  # fmt: skip
OFF_CHIP = {
    "LinearOffChipLoad": "read",
    "LinearOffChipStore": "write",
    "RandomOffChipLoad": "read",
    "RandomOffChipStore": "write",
}
UNREAD = {
    "EagerMerge": (0, 1),
    "Intersect": (0, 1, 2),
    "RandomOffChipStore": (0,),
    "Reshape": (1,),
    "Union": (0, 1, 2),
}
"""Outputs that need no reader."""


def test_what_operators_say_of_themselves() -> None:
    """Each is conducted; it takes turns where it ends them; where it is, what may stay unread."""
    exported = [getattr(module, name) for module in (operators, fabric) for name in module.__all__]
    kinds = {
        each.__name__: each
        for each in exported
        if isinstance(each, type)
        and issubclass(each, Operator)
        and each not in {Operator, ComputeOperator}
    }
    for name, kind in kinds.items():
        assert kind.conducted, name
        assert kind.turns is (".turn(" in inspect.getsource(kind)), name
        unit = next((each for each, names in KINDS.items() if name in names), "routing")
        assert unit == kind.kind, name
        assert OFF_CHIP.get(name) == kind.off_chip, name
        assert UNREAD.get(name, ()) == kind.secondary_outputs, name
        assert {"Bufferize": "write", "Streamify": "read"}.get(name) == kind.spills, name
        assert ((1,) if name == "Scatter" else ()) == kind.updates, name
    carriers = {name for name, kind in kinds.items() if kind.carries_numbers is True}
    assert carriers == set(CARRIERS.split())


def test_loads_that_carry_numbers() -> None:
    """A load by addresses does, but for one of single integers: each is what its address says."""
    loads = [RandomOffChipLoad(np.ones((2, 2), dtype), (1, 1)) for dtype in (np.float32, np.int64)]
    assert [True, False] == [each.carries_numbers for each in loads]
    assert [True, False, True] == [Map(each).has_arithmetic for each in (Add(), PadRows(3), SiLU())]
    assert [True, False, False] == [
        Map(each).joins_elements for each in (Add(), PadRows(3), Matmul())
    ]
    assert [True, False, False] == [
        Accum(each).has_arithmetic for each in (Sum(), RetileRow(), SignalAllRead())
    ]

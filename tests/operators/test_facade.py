"""What the package offers by name, and to those who extend it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import trio
from typing_extensions import override

import operators
from fabric import Program, Report, simulate
from fabric.extend import Operator, Ports
from operators import (
    Consumer,
    Flatten,
    Function,
    LinearOffChipLoad,
    Partition,
    Reduction,
    Selectors,
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

"""A program file for tests of the command line: the branches of a fork and join deadlock."""

from __future__ import annotations

from fabric import Program
from tests.deadlock.parts import Script, gather, sink, source


def build(rows: int = 64, size: int = 8) -> Program:
    with Program("pack-rows") as program:
        stream = source("rows", rows)
        tile = gather("pack", stream, size)
        steps = ("r0", *["r1"] * size, "s0", "c1")
        sink("y", Script(steps, counts=(rows // size,), name="join")(tile, stream)[0])
    return program

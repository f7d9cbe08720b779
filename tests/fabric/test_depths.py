from __future__ import annotations

import numpy as np

from fabric import Program, simulate
from operators import Add, Flatten, LinearOffChipLoad, LinearOffChipStore, Map


def _program(depth: int | None) -> Program:
    with Program("forked") as program:
        rows = Flatten(0, 1)(LinearOffChipLoad(np.ones((8, 4)), tile=(1, 4))())
        LinearOffChipStore("y")(Map(Add(), name="join")(rows, rows))
    if depth is not None:
        program.deepen("join.1", depth)
    return program


def test_run_has_the_depths_of_the_program_or_its_own() -> None:
    report = simulate(_program(5))
    depths = {each.name.split()[-1]: each.depth for each in report.channels_counters}
    assert (depths["join.0"], depths["join.1"]) == (2, 5)
    again = simulate(_program(5), depths={"join.1": 3})
    depths = {each.name.split()[-1]: each.depth for each in again.channels_counters}
    assert depths["join.1"] == 3
    assert simulate(_program(None)).cycles == report.cycles

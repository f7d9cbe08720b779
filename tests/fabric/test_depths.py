"""Depths that a program states for single channels."""

from __future__ import annotations

import numpy as np
import pytest

from fabric import Program, ProgramError, simulate
from operators import Add, Flatten, LinearOffChipLoad, LinearOffChipStore, Map


def _program(depth: int | None, option: str = "join.1") -> Program:
    with Program("forked") as program:
        rows = Flatten(0, 1)(LinearOffChipLoad(np.ones((8, 4)), tile=(1, 4))())
        LinearOffChipStore("y")(Map(Add(), name="join")(rows, rows))
    if depth is not None:
        program.deepen(option, depth)
    return program


def test_a_run_takes_them_and_another_depth_over_them() -> None:
    report = simulate(_program(5))
    depths = {each.name.split()[-1]: each.depth for each in report.channels_counters}
    assert (depths["join.0"], depths["join.1"]) == (2, 5)
    again = simulate(_program(5), depths={"join.1": 3})
    depths = {each.name.split()[-1]: each.depth for each in again.channels_counters}
    assert depths["join.1"] == 3
    assert simulate(_program(None)).cycles == report.cycles


def test_a_channel_that_is_not_there() -> None:
    with pytest.raises(ProgramError, match=r"deepen is given 'joined\.1', no channel's name"):
        simulate(_program(5, "joined.1"))

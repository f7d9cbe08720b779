from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from fabric import Hardware, Program, ProgramError
from fabric.extend import ChannelDescription
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.program import hardware_scope
from operators.rtl.hardware import Design, design, run, write
from tests.profiles import of_profile
from tests.programs.loading import REGISTERED
from tests.rtl.driving import beside
from tests.rtl.random_programs import draw, draw_in_pieces, drawn_channels

WIRES = Hardware(channel=ChannelDescription(interval_cycles=1))


def designs(drawing: Callable[[Random], Program], on: Hardware, count: int) -> list[Design]:
    random = Random(0)
    found: list[Design] = []
    while len(found) < count:
        with hardware_scope(on):
            program = drawing(random)
        keys = [edge.key for edge in elaborate(program).edges]
        try:
            found.append(design(program, **drawn_channels(random, keys)))
        except ProgramError as error:
            assert "deadlock" in str(error)  # noqa: PT017 - of any other it is a fault
    return found


@pytest.mark.parametrize("on", [pytest.param(WIRES, marks=pytest.mark.deep), REGISTERED])
@pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler is installed"
)
def test_random_programs_under_verilator_equal_their_runs(on: Hardware, tmp_path: Path) -> None:
    pieces = designs(draw_in_pieces, on, of_profile(quick=2, deep=100))
    drawn = [*pieces, *designs(draw, on, of_profile(quick=25, deep=500))]
    both = beside(drawn)
    channels = both.netlist.channels
    # All depths and hops are drawn.
    assert {each.depth for each in channels if each.depth < 512} == {1, 2, 3, 4}
    assert {each.forward_cycles for each in channels} == {1, 2, 3}
    assert {each.backward_cycles for each in channels} == {1, 2, 3}

    # A single program has exactly the widths that it needs.
    for number, each in enumerate([both, *drawn[1:3]]):
        folder = tmp_path / str(number)
        found = run(each, write(each, folder), folder)
        assert found.equal, found

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from fabric import Hardware, Program, hardware_scope, load_hardware, open_run, simulate
from fabric.analysis.trace.analysis.moment import state_in
from fabric.graph.hardware.latency import Mesh
from fabric.graph.loading.program_file import load_program
from fabric.timing.state.run_state import RunState
from tests.fabric.trace.recording import record
from tests.network.placed import TileStage
from tests.profiles import of_profile, spread
from tests.programs.loading import PROGRAMS, REGISTERED

SMALL = {
    "swiglu": ("batch=32", "hidden=64", "inter=64"),
    "simplified_moe": (),
}


def _compared(state: RunState) -> tuple[object, ...]:
    channels = [structs.replace(each, closed_cycle=None) for each in state.channels]
    return state.units, channels, state.on_chip.requests


@pytest.mark.parametrize("profile", [Hardware(), Hardware().of_wires(), REGISTERED])
@pytest.mark.parametrize("name", spread(SMALL, 1))
def test_held_run_on_a_mesh_equals_the_trace(name: str, profile: Hardware, tmp_path: Path) -> None:
    hardware = load_hardware("mesh_paper")
    hardware = replace(hardware, channel=profile.channel, registers=profile.registers)
    wired = load_program(PROGRAMS / f"{name}.py", SMALL[name], hardware).program
    report, trace = record(wired, tmp_path)
    assert report.cycles is not None
    drawn = random.Random(name).sample(range(report.cycles), of_profile(quick=8, deep=100))
    with open_run(wired) as run:
        for cycle in sorted(drawn):
            run.until(cycle=cycle)
            assert _compared(run.state) == _compared(state_in(trace, cycle))
        finished = run.finish()
    assert finished.cycles == report.cycles == simulate(wired).cycles


def test_element_on_its_way_over_links_is_not_visible() -> None:
    mesh = Mesh(columns=3, rows=2, hop_cycles=1, link_bytes_per_cycle=8)
    with hardware_scope(Hardware(network=mesh)), Program("pair") as program:
        (stream,) = TileStage(3, work_cycles=(0,), name="a", sizes=[64])()
        TileStage(3, outputs=0, work_cycles=(100,), name="b", sizes=[])(stream)
    program.put({"a": (0, 0), "b": (2, 0)})
    with open_run(program, depths={"b.0": 3}) as run:
        run.until(cycle=5)
        assert [each.sent_cycle for each in run.held("b.0")] == [0, 0, 0]
        assert [each.visible_cycle for each in run.held("b.0")] == [None] * 3
        run.until(cycle=12)
        # The first element leaves the links in cycle 8 and is taken in cycle 10; then b works for
        # 100 cycles.
        assert [each.visible_cycle for each in run.held("b.0")] == [None, None]
        run.until(cycle=30)
        assert [each.visible_cycle for each in run.held("b.0")] == [18, 26]

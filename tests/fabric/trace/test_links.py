from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hardware, Program, hardware_scope, simulate
from fabric.graph.hardware.description import FlatDescription
from fabric.graph.hardware.latency import Mesh
from fabric.graph.loading.program_file import load_program
from fabric.messages.files import programs
from fabric.shell.cli import main
from tests.deadlock.cases import CASES
from tests.deadlock.parts import Script
from tests.fabric.trace.recording import PROGRAMS, record
from tests.network.placed import Placed, TileStage, expected_clocks, placed_graphs, run_placed
from tests.profiles import examples, spread

MESH = Mesh(columns=4, rows=2, link_bytes_per_cycle=8, injection_bytes_per_cycle=16)


def shipped(name: str, mesh: Mesh) -> Program:
    file = programs() / f"{name.split(maxsplit=1)[0]}.py"
    return load_program(file, PROGRAMS[name], Hardware(network=mesh)).program


def last_cycle(placed: Placed) -> int:
    return max(clock for clocks in expected_clocks(placed) for clock in clocks)


def wider(mesh: Mesh, times: int | None) -> Mesh:
    def limit(found: int | None) -> int | None:
        return None if found is None or times is None else found * times

    return replace(
        mesh,
        link_bytes_per_cycle=limit(mesh.link_bytes_per_cycle),
        injection_bytes_per_cycle=limit(mesh.injection_bytes_per_cycle),
        crossing_bytes_per_cycle=limit(mesh.crossing_bytes_per_cycle),
    )


@pytest.mark.deep
@examples(quick=5, deep=1000)
@given(placed_graphs(), st.integers(1, 9), st.sampled_from([1, 2, None]))
def test_what_if_on_links_gives_the_cycles_of_the_model(
    placed: Placed, depth: int, times: int | None
) -> None:
    with TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"trace": "events", "log_dir": folder}
        _, report = run_placed(placed, Path(folder), **settings)
        trace = report.trace()
    links = math.inf if times is None else float(times)
    found = trace.what_if({"*": depth}, links=links if trace.shared_channels else 1)

    changed = placed._replace(
        mesh=wider(placed.mesh, times),
        wires=[wire._replace(depth=depth) for wire in placed.wires],
    )
    assert (last_cycle(changed), True) == (found.cycles, found.exact)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_what_if_of_an_ended_reader_gives_the_cycles_of_a_run(depth: int, tmp_path: Path) -> None:
    def pair() -> Program:
        mesh = Mesh(columns=3, rows=2, link_bytes_per_cycle=8)
        with hardware_scope(Hardware(network=mesh)), Program("pair") as program:
            (stream,) = TileStage(20, work_cycles=(0,), name="a", sizes=[64])()
            Script(("r0", "c1"), rounds=3, counts=(), name="b")(stream)
        program.put({"a": (0, 0), "b": (2, 0)})
        return program

    trace = record(pair(), tmp_path, depths={"b.0": 3})[1]
    again = simulate(pair(), depths={"b.0": depth})
    assert trace.what_if({"b.0": depth}).cycles == again.cycles
    ends = {unit.name: unit.after_cycle for unit in trace.what_if({"b.0": depth}).units}
    assert again.cycles is not None
    for unit in again.units:
        if unit.name in ends:
            assert ends[unit.name] == again.cycles - unit.idle_cycles


@pytest.mark.parametrize("name", spread(["simplified_moe", "moe dynamic", "attention"], 1))
def test_unchanged_record_on_links_gives_the_cycles_of_the_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The waits of units for links equal the waits in the report.
    report, trace = record(shipped(name, MESH), tmp_path)
    assert trace.shared_channels
    found = trace.what_if()
    assert (report.cycles, (), ()) == (found.cycles, found.units, found.channels)
    assert report.network is not None
    units = trace.stalls().units
    assert report.network.links_cycles == sum(unit.links_cycles for unit in units) > 0
    ((waited,),) = trace.query("SELECT sum(links_cycles) FROM waits").rows()
    assert report.network.links_cycles == waited
    assert all(unit.links_cycles <= unit.empty_cycles for unit in units)
    assert main(["trace", "stalls", str(report.log_dir)]) == 0
    assert "; for links is part of empty" in capsys.readouterr().out


def without_memory(mesh: Mesh) -> Program:
    hardware = Hardware(hbm=FlatDescription(channels=1024), network=mesh)
    file = programs() / "swiglu.py"
    return load_program(file, PROGRAMS["swiglu"], hardware).program


@pytest.mark.parametrize(("times", "given"), [(None, "unlimited"), (2, "2x")])
def test_wider_links_give_the_cycles_of_a_run(
    tmp_path: Path, times: int | None, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report, trace = record(without_memory(MESH), tmp_path)
    again = simulate(without_memory(wider(MESH, times)))
    assert report.cycles is not None
    assert again.cycles is not None
    assert again.cycles < report.cycles

    assert main(["trace", "what-if", str(report.log_dir), "--links", given]) == 0
    assert f"{again.cycles:,} after" in capsys.readouterr().out
    (gain,) = (each for each in trace.stalls().gains or () if each.kind == "links")
    assert "the links of the network were unlimited" == gain.change
    assert again.cycles == (gain.cycles if times is None else gain.half_cycles)


@pytest.mark.parametrize("name", spread(["pack_rows", "unequal_branches"], 1))
def test_what_if_of_a_deadlock_on_links_is_that_of_a_run(name: str, tmp_path: Path) -> None:
    mesh = Mesh(columns=3, rows=3, link_bytes_per_cycle=2, injection_bytes_per_cycle=3)
    with hardware_scope(Hardware(network=mesh)):
        report, trace = record(CASES[name].build(), tmp_path, depths=CASES[name].given)
    assert report.deadlock is not None
    assert trace.what_if().loop
    assert not trace.what_if().released
    full = [
        each["name"].partition(" -> ")[2]
        for loop in report.deadlock["loops"]
        for each in loop["channels"]
        if each["held"] >= each["depth"]
    ]
    depths = CASES[name].given | dict.fromkeys(full, 64)
    with hardware_scope(Hardware(network=mesh)):
        again = record(CASES[name].build(), tmp_path, depths=depths)[1]
    assert len(again.tables["transfers"]) > len(trace.tables["transfers"])
    assert trace.what_if(depths).released

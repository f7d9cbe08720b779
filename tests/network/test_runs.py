from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fabric as fab
from fabric.graph.hardware.latency import Mesh, Site
from fabric.graph.loading.program_file import load_program
from fabric.messages.files import programs
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.deadlock.cases import CASES
from tests.network.placed import (
    Placed,
    Wire,
    expected_clocks,
    placed_graphs,
    run_placed,
    way,
    write_placement,
)
from tests.profiles import examples, spread
from tests.schedules import SCHEDULES, schedule

# On channels of wires, the end of a stream comes a hop after elements that links delayed.
LATE_END = Placed(
    Mesh(columns=2, rows=2, injection_bytes_per_cycle=1),
    [Site(0, 0), Site(1, 0), Site(1, 1)],
    [(0, False), (0, False), (0, False)],
    [Wire(0, 1, 1, 1), Wire(0, 2, 1, 1)],
    rounds=2,
    interval=1,
)


@examples(quick=12, deep=2000)
@given(placed_graphs(), st.sampled_from(SCHEDULES))
@example(LATE_END, "reversed")
def test_matches_a_model_that_steps_through_cycles(placed: Placed, order: str | int) -> None:
    with TemporaryDirectory() as folder:
        clocks, report = run_placed(placed, Path(folder), order)
    assert report.status == "completed"
    assert expected_clocks(placed) == clocks


def _hops(placed: Placed) -> dict[str, fab.Hop]:
    found, ports = {}, Counter[int]()
    for wire in placed.wires:
        source, target = placed.sites[wire.producer], placed.sites[wire.consumer]
        cycles = 1 if source == target else max(1, way(placed.mesh, source, target)[0])
        found[f"n{wire.consumer}.{ports[wire.consumer]}"] = fab.Hop(cycles, cycles)
        ports[wire.consumer] += 1
    return found


@examples(quick=5, deep=2000)
@given(placed_graphs(limited=False), st.sampled_from(["compiled", "tasks"]))
def test_run_on_links_without_limits_equals_one_with_hops(
    placed: Placed, engine: Literal["compiled", "tasks"]
) -> None:
    with TemporaryDirectory() as folder:
        clocks, report = run_placed(placed, Path(folder), engine=engine)
        expected, by_hops = run_placed(placed, Path(folder), hops=_hops(placed), engine=engine)
    assert clocks == expected
    assert report.network is not None
    assert replace(report, network=None, hardware=None) == replace(by_hops, hardware=None)


TRAFFIC = Mesh(columns=4, rows=2, link_bytes_per_cycle=8, injection_bytes_per_cycle=16)


PROGRAMS = {
    "moe": ("model=tiny", "tile_n=4", "batch=16"),
    "simplified_moe": (),
    "attention": ("requests=4", "regions=2", "strategy=dynamic"),
    "top2_moe": ("tokens=8",),
    "dynamic_tiling": ("sequences=4", "longest=6"),
    "ragged_attention": ("requests=4", "longest=3"),
}


def _program(name: str, mesh: Mesh | None) -> fab.Program:
    hardware = fab.Hardware(network=mesh)
    return load_program(programs() / f"{name}.py", PROGRAMS[name], hardware).program


@pytest.mark.parametrize("order", SCHEDULES)
@pytest.mark.parametrize("name", spread(PROGRAMS, 1))
def test_report_of_a_mesh_is_equal_under_every_schedule(name: str, order: str | int) -> None:
    report = fab.simulate(_program(name, TRAFFIC))
    with schedule(order):
        assert report == fab.simulate(_program(name, TRAFFIC))
    assert report.status == "completed"
    assert report.verified is not False
    assert (report.cycles or 0) > (fab.simulate(_program(name, None)).cycles or 0)


def _pipeline(mesh: Mesh | None, depth: int = 2) -> fab.Program:
    with (
        fab.hardware_scope(fab.Hardware(network=mesh)),
        fab.Program("line", channel_depth=depth) as program,
    ):
        rows = LinearOffChipLoad(np.ones((8, 64), np.float32), tile=(1, 64), name="load")()
        LinearOffChipStore("y", name="store")(Map(SiLU(), name="map")(rows))
    return program


def _placed(folder: Path, **sites: Site) -> Path:
    return write_placement(folder / "placement.toml", "line", sites)


def test_broadcast_sends_once_over_shared_links() -> None:
    mesh = Mesh(columns=3, rows=2, link_bytes_per_cycle=8)
    with fab.hardware_scope(fab.Hardware(network=mesh)), fab.Program("fan") as program:
        rows = LinearOffChipLoad(np.ones((5, 64), np.float32), tile=(1, 64), name="load")()
        for reader, store in ("a", "x"), ("b", "y"):
            LinearOffChipStore(store, name=store)(Map(SiLU(), name=reader)(rows))
    program.put({"load": (0, 0), "y": (0, 0), "a": (1, 0), "x": (2, 0), "b": (2, 1)})
    use = fab.simulate(program).network
    assert use is not None
    assert (use.sites, use.most_units) == (4, 2)
    fan = ("broadcast_load_0.0 -> a.0", "broadcast_load_0.1 -> b.0")
    on, back = ("a.0 -> x.0",), ("b.0 -> y.0",)
    assert [(each.channel, each.source, each.target, each.hop_cycles) for each in use.routes] == [
        (fan[0], (0, 0), (1, 0), 1), (fan[1], (0, 0), (2, 1), 3),
        (*on, (1, 0), (2, 0), 1), (*back, (2, 1), (0, 0), 3),
    ]  # fmt: skip
    # The order of a site's links: east, west, south, north, out and in.
    carried = {link.name: (link.bytes // 128, link.channels) for link in use.links}
    assert carried == {
        "0,0 -> 1,0": (5, fan), "out of 0,0": (5, fan), "into 0,0": (5, back),
        "1,0 -> 2,0": (10, fan + on), "out of 1,0": (5, on), "into 1,0": (5, fan),
        "2,0 -> 2,1": (5, fan), "into 2,0": (5, on), "0,1 -> 0,0": (5, back),
        "1,1 -> 0,1": (5, back), "2,1 -> 1,1": (5, back), "out of 2,1": (5, back),
        "into 2,1": (5, fan),
    }  # fmt: skip
    names = [link.name for link in use.links]
    assert names.index("out of 0,0") < names.index("into 0,0") < names.index("1,0 -> 2,0")
    assert names.index("into 2,0") < names.index("0,1 -> 0,0") < names.index("1,1 -> 0,1")
    assert use.links_cycles == sum(route.links_cycles for route in use.routes)


def test_trace_charges_waits_for_links_to_the_network() -> None:
    report = fab.simulate(_pipeline(TRAFFIC), trace="events")
    with report.trace() as trace:
        stalls = trace.stalls()
        charged = {each.root.kind: each.cycles for each in stalls.roots}
        rows = trace.query("SELECT visible_cycle, sent_cycle FROM transfers").rows()
        assert report.network is not None
        assert charged["network"] >= report.network.links_cycles > 0
        assert all(visible > sent + 1 for visible, sent in rows)


@pytest.mark.parametrize("name", ["pack_rows", "loop_of_2"])
def test_a_deadlock_is_found_and_released(name: str) -> None:
    plain = fab.simulate(CASES[name].build()).explained
    with fab.hardware_scope(fab.Hardware(network=TRAFFIC)):
        program = CASES[name].build()
    found = fab.simulate(program).explained
    assert plain is not None
    assert found is not None
    depths = {each.option: each.after for each in found.remedy.depths}
    assert depths == {each.option: each.after for each in plain.remedy.depths}
    assert fab.simulate(program, depths=depths).status == "completed"


def test_hops_of_single_channels_are_refused() -> None:
    program = _pipeline(TRAFFIC)
    with pytest.raises(fab.ConfigurationError, match=r"hops map\.0: .* follow from its route"):
        fab.simulate(program, hops={"map.0": fab.Hop(2)})


WRONG = {
    "another program": ('program = "other"\n[units]\n', 1, "of program 'other': expected program"),
    "a unit that is none": (
        'program = "line"\n[units]\nmup = [0, 0]\n', 3, "mup is not a unit of 'line': .*mean map"
    ),
    "without a site": (
        'program = "line"\n[units]\nmap = [0, 0]\n', 2, "load, store of 'line': expected a site"
    ),
    "no site": ('program = "line"\n[units]\nmap = [0]\n', 3, "map is .*: expected .column, row."),
    "off the mesh": (
        'program = "line"\n[units]\n"map" = [4, 0]\n', 3, "at .4, 0.: expected a column below 4"
    ),
    "a port inside": (
        'program = "line"\n[units]\nmap = [0, 0]\nload = [1, 1]\nstore = [0, 0]\n',
        4, "load is at .1, 1.: expected a site of the edge",
    ),
    "two on one": (
        'program = "line"\n[units]\nmap = [0, 0]\nload = [0, 0]\nstore = [3, 2]\n',
        3, "map is at .0, 0., where load is: expected at most 1 unit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_placement_is_refused(wrong: str, tmp_path: Path) -> None:
    text, line, message = WRONG[wrong]
    file = tmp_path / "placement.toml"
    file.write_text(text, encoding="utf-8")
    program = _pipeline(Mesh(columns=4, rows=3, units_per_site=1))
    with pytest.raises(fab.ConfigurationError, match=message) as caught:
        fab.simulate(program, placement=file)
    assert (caught.value.file, caught.value.line) == (str(file), line)


def test_sites_of_a_program_equal_those_of_a_file(tmp_path: Path) -> None:
    mesh = Mesh(columns=4, rows=2, link_bytes_per_cycle=8, hop_cycles=3)
    far = _placed(tmp_path, load=Site(0, 0), map=Site(2, 0), store=Site(3, 0))
    by_file = fab.simulate(_pipeline(mesh), placement=far)
    program = _pipeline(mesh)
    program.put({"load": (0, 0), "map": Site(2, 0), "store": (3, 0)})
    said = fab.simulate(program)
    assert said.network is not None
    assert by_file.network is not None
    assert said.network.placement == __file__
    assert said == replace(by_file, network=replace(by_file.network, placement=__file__))
    near = tmp_path / "near.toml"
    near.write_text(far.read_text("utf-8").replace("[2, 0]", "[1, 0]"), encoding="utf-8")
    assert fab.simulate(program, placement=near) == fab.simulate(_pipeline(mesh), placement=near)
    plain = _pipeline(None)
    plain.put({"load": (0, 0), "map": (2, 0), "store": (3, 0)})
    assert fab.simulate(plain) == fab.simulate(_pipeline(None))


def test_placement_without_sites_or_room_is_refused(tmp_path: Path) -> None:
    file = _placed(tmp_path, load=Site(0, 0), map=Site(2, 0), store=Site(3, 0))
    with pytest.raises(
        fab.ConfigurationError, match=r"the hardware has no sites: expected \[network\]"
    ):
        fab.simulate(_pipeline(None), placement=file)
    crowded = _program("moe", Mesh(columns=2, rows=2, units_per_site=3))
    with pytest.raises(fab.ConfigurationError, match="units_per_site is 3: expected at least"):
        fab.simulate(crowded)

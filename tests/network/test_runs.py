"""Runs on a mesh: against a model that steps through cycles, and against hops given one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from fabric import (
    ConfigurationError,
    Hardware,
    Hop,
    Program,
    ProgramError,
    hardware_scope,
    load_hardware,
    simulate,
)
from fabric.analysis.placing.floor import netlist_of
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.placing import placed
from fabric.messages.telling.files import programs
from fabric.messages.terminal.tables import print_sheet
from fabric.runs.printing import report_sheet
from fabric.timing.network import Mesh, Site
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.deadlock.cases import CASES
from tests.fabric.scripted import Charge, Ticks
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

LATE_END = Placed(
    Mesh(columns=2, rows=2, injection_bytes_per_cycle=1),
    [Site(0, 0), Site(1, 0), Site(1, 1)],
    [(0, False), (0, False), (0, False)],
    [Wire(0, 1, 1, 1), Wire(0, 2, 1, 1)],
    rounds=2,
    interval=1,
)
"""With channels of wires the end of a stream takes a hop behind what links held up."""


@examples(quick=25, deep=2000)
@given(placed_graphs(), st.sampled_from(SCHEDULES))
@example(LATE_END, "reversed")
def test_matches_a_model_that_steps_through_cycles(placed: Placed, order: str | int) -> None:
    """Every operation of random placed graphs happens in the same cycle, in whatever order."""
    with TemporaryDirectory() as folder:
        clocks, report = run_placed(placed, Path(folder), order)
    assert report.status == "completed"
    assert expected_clocks(placed) == clocks


def _hops(placed: Placed) -> dict[str, Hop]:
    """Return the cycles of each channel, by the name of its reader's input."""
    found, ports = {}, Counter[int]()
    for wire in placed.wires:
        source, target = placed.sites[wire.producer], placed.sites[wire.consumer]
        cycles = 1 if source == target else max(1, way(placed.mesh, source, target)[0])
        found[f"n{wire.consumer}.{ports[wire.consumer]}"] = Hop(cycles, cycles)
        ports[wire.consumer] += 1
    return found


@examples(quick=10, deep=2000)
@given(placed_graphs(limited=False), st.sampled_from(["compiled", "tasks"]))
def test_links_without_limits_are_hops(
    placed: Placed, engine: Literal["compiled", "tasks"]
) -> None:
    """All that is said of a run is what is said of one with the same hops, given one by one."""
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


def _program(name: str, mesh: Mesh | None) -> Program:
    hardware = Hardware(network=mesh)
    return load_program(programs() / f"{name}.py", PROGRAMS[name], hardware).program


@pytest.mark.parametrize("order", SCHEDULES)
@pytest.mark.parametrize("name", spread(PROGRAMS, 1))
def test_programs_with_merges_and_memories(name: str, order: str | int) -> None:
    """One report whatever runs first: merges see arrivals, the HBM and links take turns."""
    report = simulate(_program(name, TRAFFIC))
    with schedule(order):
        assert report == simulate(_program(name, TRAFFIC))
    assert report.status == "completed"
    assert report.verified is not False
    assert (report.cycles or 0) > (simulate(_program(name, None)).cycles or 0)


@pytest.mark.parametrize("engine", ["compiled", "tasks"])
def test_a_layer_on_links_without_limits(engine: Literal["compiled", "tasks"]) -> None:
    """Its report is that of the layer with each channel's hop given, in the compiled loop, too."""
    mesh = Mesh(columns=4, rows=4, hop_cycles=3)
    plan = placed(elaborate(_program("moe", mesh)), None)
    assert plan.floor is not None
    hops = {}
    for edge in plan.edges:
        one, other = plan.floor.site_of(edge.producer), plan.floor.site_of(edge.consumer)
        apart = abs(one.column - other.column) + abs(one.row - other.row)
        hops[edge.key] = Hop(max(1, 3 * apart), max(1, 3 * apart))
    report = simulate(_program("moe", mesh), engine=engine)
    by_hops = simulate(_program("moe", None), engine=engine, hops=hops)
    assert replace(report, network=None, hardware=None) == replace(by_hops, hardware=None)


def test_both_engines_say_the_same() -> None:
    """A run with links that are shared says the same by tasks and by the compiled loop."""
    program = _pipeline(TRAFFIC)
    assert simulate(program) == simulate(program, engine="tasks")


def _pipeline(mesh: Mesh | None, depth: int = 2) -> Program:
    with hardware_scope(Hardware(network=mesh)), Program("line", channel_depth=depth) as program:
        rows = LinearOffChipLoad(np.ones((8, 64), np.float32), tile=(1, 64), name="load")()
        LinearOffChipStore("y", name="store")(Map(SiLU(), name="map")(rows))
    return program


def _placed(folder: Path, **sites: Site) -> Path:
    return write_placement(folder / "placement.toml", "line", sites)


def test_a_tile_takes_its_bytes_and_its_hops(tmp_path: Path) -> None:
    """Without others: what links take for 128 bytes, and what its head takes over the route."""
    file = _placed(tmp_path, load=Site(0, 0), map=Site(2, 0), store=Site(3, 0))
    mesh = Mesh(columns=4, rows=2, link_bytes_per_cycle=8, hop_cycles=3)
    report = simulate(_pipeline(mesh), placement=file)
    plain = simulate(_pipeline(None))
    assert report.network is not None
    first, second = report.network.routes
    assert (first.hop_cycles, second.hop_cycles) == (6, 3)
    assert (first.bytes, second.bytes) == (8 * 128, 8 * 128)
    assert (report.cycles or 0) > (plain.cycles or 0)
    assert [link.name for link in report.network.links] == [
        "0,0 -> 1,0", "out of 0,0", "1,0 -> 2,0", "2,0 -> 3,0", "out of 2,0", "into 2,0", "into 3,0"
    ]  # fmt: skip
    assert {link.bytes for link in report.network.links} == {1024}
    assert {link.bytes_per_cycle for link in report.network.links} == {8, None}
    assert report.network.placement == str(file)
    assert report.as_json()["network"]["routes"][0]["hop_cycles"] == 6
    assert "network" not in plain.as_json()


def test_what_went_over_each_link() -> None:
    """A Broadcast sends once for all its readers, and a link has what all flows bring; by number.

    The Broadcast is where the load is, and no unit that the program names.
    """
    mesh = Mesh(columns=3, rows=2, link_bytes_per_cycle=8)
    with hardware_scope(Hardware(network=mesh)), Program("fan") as program:
        rows = LinearOffChipLoad(np.ones((5, 64), np.float32), tile=(1, 64), name="load")()
        for reader, store in ("a", "x"), ("b", "y"):
            LinearOffChipStore(store, name=store)(Map(SiLU(), name=reader)(rows))
    program.put({"load": (0, 0), "y": (0, 0), "a": (1, 0), "x": (2, 0), "b": (2, 1)})
    use = simulate(program).network
    assert use is not None
    assert (use.sites, use.most_units) == (4, 2)
    fan = ("broadcast_load_0.0 -> a.0", "broadcast_load_0.1 -> b.0")
    on, back = ("a.0 -> x.0",), ("b.0 -> y.0",)
    assert [(each.channel, each.source, each.target, each.hop_cycles) for each in use.routes] == [
        (fan[0], (0, 0), (1, 0), 1), (fan[1], (0, 0), (2, 1), 3),
        (*on, (1, 0), (2, 0), 1), (*back, (2, 1), (0, 0), 3),
    ]  # fmt: skip
    # Links of a site come in the order: east, west, south, north, out and in.
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


@pytest.mark.parametrize("count", [0, 3])
def test_links_that_nothing_went_over(count: int) -> None:
    """They are not told of; the route is, with no bytes."""
    mesh = Mesh(columns=2, rows=2, link_bytes_per_cycle=8)
    with hardware_scope(Hardware(network=mesh)), Program("ticks") as program:
        Charge(name="charge")(Ticks(count, name="ticks")())
    program.put({"ticks": (0, 0), "charge": (1, 0)})
    use = simulate(program).network
    assert use is not None
    assert [(each.bytes or 0) > 0 for each in use.routes] == [count > 0]
    links = ["0,0 -> 1,0", "out of 0,0", "into 1,0"]
    assert [link.name for link in use.links] == (links if count else [])


def test_what_is_printed() -> None:
    """The table says where units are, which links are worst, and who waits for them."""
    text = StringIO()
    print_sheet(report_sheet(simulate(_pipeline(TRAFFIC))), Console(file=text, width=100))
    assert "Units are placed row by row, on 3 sites with at most 1 unit each." in text.getvalue()
    assert "busiest links" in text.getvalue()
    assert "channels whose readers wait for links" in text.getvalue()


def test_a_trace_charges_the_network() -> None:
    """Cycles in which links held elements up have a root of their own, and a visible cycle."""
    report = simulate(_pipeline(TRAFFIC), trace="events")
    with report.trace() as trace:
        stalls = trace.stalls()
        charged = {each.root.kind: each.cycles for each in stalls.roots}
        rows = trace.query("SELECT visible_cycle, sent_cycle FROM transfers").rows()
        assert report.network is not None
        assert charged["network"] >= report.network.links_cycles > 0
        assert all(visible > sent + 1 for visible, sent in rows)


@pytest.mark.parametrize("name", ["pack_rows", "loop_of_2"])
def test_a_deadlock_is_found_and_released(name: str) -> None:
    """Units get stuck on a mesh as without one, and the same depths let them go on."""
    plain = simulate(CASES[name].build()).explained
    with hardware_scope(Hardware(network=TRAFFIC)):
        program = CASES[name].build()
    found = simulate(program).explained
    assert plain is not None
    assert found is not None
    depths = {each.option: each.after for each in found.remedy.depths}
    assert depths == {each.option: each.after for each in plain.remedy.depths}
    assert simulate(program, depths=depths).status == "completed"


def test_hops_of_single_channels_are_refused() -> None:
    """Routes say what hops are."""
    program = _pipeline(TRAFFIC)
    with pytest.raises(ConfigurationError, match=r"hops map\.0: .* follow from its route"):
        simulate(program, hops={"map.0": Hop(2)})


WRONG = {
    "another program": ('program = "other"\n[units]\n', 1, "of program 'other': expected one of"),
    "no program": ("[units]\n", None, "program is missing: expected the name"),
    "a unit called program": (
        'program = "other"\n[units]\nprogram = [0, 0]\n', 1, "of program 'other': expected one of"
    ),
    "a program's table": ('[program]\n[units]\nprogram = [0, 0]\n', 1, "program is .*: expected"),
    "no units": ('program = "line"\n', None, "units is missing: expected a table"),
    "a unit that is none": (
        'program = "line"\n[units]\nmup = [0, 0]\n', 3, "mup is no unit of 'line': .*mean map"
    ),
    "without a site": (
        'program = "line"\n[units]\nmap = [0, 0]\n', 2, "load, store of 'line': expected a site"
    ),
    "a number for a site": (
        'program = "line"\n[units]\nmap = 3\n', 3, "map is 3: expected .column, row."
    ),
    "a text in a site": (
        'program = "line"\n[units]\nmap = [0, "1"]\n', 3, "map is .*: expected .column, row."
    ),
    "a truth value in a site": (
        'program = "line"\n[units]\nmap = [true, 0]\n', 3, "map is .*: expected .column, row."
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
    "another table": ('program = "line"\n[sites]\n', 2, "sites is given: expected a placement"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_placement_is_refused(wrong: str, tmp_path: Path) -> None:
    """It says what was found and expected, with the line of the file."""
    text, line, told = WRONG[wrong]
    file = tmp_path / "placement.toml"
    file.write_text(text, encoding="utf-8")
    program = _pipeline(Mesh(columns=4, rows=3, units_per_site=1))
    with pytest.raises(ConfigurationError, match=told) as caught:
        simulate(program, placement=file)
    assert (caught.value.file, caught.value.line) == (str(file), line)


def test_memory_of_a_site(tmp_path: Path) -> None:
    """A site whose units need more memory than it has is refused; the same units apart are not."""
    mesh = Mesh(columns=4, rows=2)
    sites = dict.fromkeys(("load", "store"), Site(0, 0)) | {"map": Site(1, 1)}
    apart = sites | {"store": Site(0, 1)}
    needed = {
        unit.name: unit.on_chip_bytes for unit in netlist_of(elaborate(_pipeline(mesh))).units
    }
    assert needed["load"]
    assert needed["store"]
    room = max(needed.values())
    program = _pipeline(replace(mesh, site_bytes=room))
    assert simulate(program, placement=_placed(tmp_path, **apart)).status == "completed"
    file = _placed(tmp_path, **sites)
    with pytest.raises(
        ConfigurationError,
        match=rf"load, store at \[0, 0\]: together {needed['load'] + needed['store']:,} bytes of "
        rf"on-chip memory: expected at most {room:,}, as \[network\] site_bytes says$",
    ) as caught:
        simulate(program, placement=file)
    told = file.read_text("utf-8").splitlines()[(caught.value.line or 0) - 1]
    assert (caught.value.file, told) == (str(file), '"load" = [0, 0]')


def test_a_program_says_where_its_units_are(tmp_path: Path) -> None:
    """A run is that with a file of the same sites, and a file that is given counts more."""
    mesh = Mesh(columns=4, rows=2, link_bytes_per_cycle=8, hop_cycles=3)
    far = _placed(tmp_path, load=Site(0, 0), map=Site(2, 0), store=Site(3, 0))
    by_file = simulate(_pipeline(mesh), placement=far)
    program = _pipeline(mesh)
    program.put({"load": (0, 0), "map": Site(2, 0), "store": (3, 0)})
    said = simulate(program)
    assert said.network is not None
    assert by_file.network is not None
    assert said.network.placement == __file__
    assert said == replace(by_file, network=replace(by_file.network, placement=__file__))
    near = tmp_path / "near.toml"
    near.write_text(far.read_text("utf-8").replace("[2, 0]", "[1, 0]"), encoding="utf-8")
    assert simulate(program, placement=near) == simulate(_pipeline(mesh), placement=near)
    plain = _pipeline(None)
    plain.put({"load": (0, 0), "map": (2, 0), "store": (3, 0)})
    assert simulate(plain) == simulate(_pipeline(None))


@pytest.mark.parametrize(
    ("sites", "told"),
    [
        ({"load": (0, 0), "map": (1, 0)}, "store of 'line': expected a site"),
        ({"load": (0, 0), "map": (1, 0), "stor": (0, 0)}, "stor is no unit of 'line'"),
        ({"load": (0, 0), "map": (4, 0), "store": (0, 0)}, "map is at .4, 0.: expected a column"),
        ({"load": (1, 1), "map": (1, 0), "store": (0, 0)}, "load is at .1, 1.: expected a site of"),
    ],
)
def test_a_program_that_says_it_wrongly(sites: dict[str, tuple[int, int]], told: str) -> None:
    """It is told the line where it does."""
    program = _pipeline(Mesh(columns=4, rows=3))
    program.put(sites)
    with pytest.raises(ConfigurationError, match=told) as caught:
        simulate(program)
    assert caught.value.file == __file__
    lines = Path(__file__).read_text("utf-8").splitlines()
    assert lines[(caught.value.line or 0) - 1] == "    program.put(sites)"
    with pytest.raises(ProgramError, match="expected a dict from texts to tuples of 2 integers"):
        program.put({"map": (1,)})  # type: ignore[dict-item]


def test_a_placement_needs_sites(tmp_path: Path) -> None:
    """Without a network there are none; and a mesh may have too little room."""
    file = _placed(tmp_path, load=Site(0, 0), map=Site(2, 0), store=Site(3, 0))
    with pytest.raises(
        ConfigurationError, match=r"the hardware has no sites: expected \[network\]"
    ):
        simulate(_pipeline(None), placement=file)
    crowded = _program("moe", Mesh(columns=2, rows=2, units_per_site=3))
    with pytest.raises(ConfigurationError, match="units_per_site is 3: expected at least"):
        simulate(crowded)


FILES = {
    "one row": ("columns = 4\nrows = 1", r"\[network\] rows is .*1: expected"),
    "no width": (
        "columns = 4\nrows = 2\nlink_bytes_per_cycle = 0", r"link_bytes_per_cycle is .*0: expected"
    ),
    "no crossing": (
        "columns = 4\nrows = 2\ndie_columns = 2", r"\[network\] crossing_cycles is missing"
    ),
    "no columns": ("rows = 2", r"\[network\] has no columns: expected"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", FILES)
def test_a_wrong_network_is_refused(wrong: str, tmp_path: Path) -> None:
    """A hardware file is refused with what was found and expected."""
    text, told = FILES[wrong]
    file = tmp_path / "hardware.toml"
    file.write_text(f"[network]\n{text}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=told) as caught:
        load_hardware(file)
    assert caught.value.file == str(file)


def test_hardware_files_say_what_they_have() -> None:
    """What a report says of the hardware is what a file would say, and a file is as it says."""
    hardware = load_hardware("mesh_paper")
    assert hardware.network == Mesh(
        columns=16, rows=8, link_bytes_per_cycle=64, injection_bytes_per_cycle=64
    )
    assert hardware.as_dict()["network"] == {
        "columns": 16,
        "rows": 8,
        "link_bytes_per_cycle": 64,
        "injection_bytes_per_cycle": 64,
        "hop_cycles": 1,
        "ends_cycles": 0,
    }
    assert "network" not in Hardware().as_dict()


def test_row_by_row() -> None:
    """Off-chip operators go to the edge, the others fill the sites that are free."""
    mesh = Mesh(columns=3, rows=3)
    plan = placed(elaborate(_pipeline(mesh)), None)
    assert plan.floor is not None
    assert {node.name: plan.floor.site_of(node) for node in plan.nodes} == {
        "load": Site(0, 0),
        "store": Site(1, 0),
        "map": Site(2, 0),
    }
    crowded = placed(elaborate(_program("moe", mesh)), None)
    assert crowded.floor is not None
    units = crowded.program.nodes
    most = max(len(nodes) for _, nodes in crowded.floor.units_at(units))
    assert most == -(-len(units) // 9)
    assert all(
        site in mesh.edge or not any(node.operator.off_chip for node in nodes)
        for site, nodes in crowded.floor.units_at(units)
    )


def _lines(mesh: Mesh) -> Program:
    """Return three maps side by side, with a load and a store each."""
    with hardware_scope(Hardware(network=mesh)), Program("lines") as program:
        for number in range(3):
            tiles = LinearOffChipLoad(np.ones((2, 2)), tile=(1, 2), name=f"load{number}")()
            LinearOffChipStore(f"y{number}", name=f"store{number}")(
                Map(SiLU(), name=f"map{number}")(tiles)
            )
    return program


def test_more_off_chip_operators_than_edge() -> None:
    """They stand evenly on it, and the others fill up the sites, which have to have the room."""
    mesh = Mesh(columns=2, rows=2, units_per_site=3)
    plan = placed(elaborate(_lines(mesh)), None)
    assert plan.floor is not None
    names = ("load0", "store0", "load1", "store1", "load2", "store2", "map0", "map1", "map2")
    sites = ((0, 0), (0, 0), (1, 0), (0, 1), (0, 1), (1, 1), (0, 0), (1, 0), (1, 0))
    assert {node.name: plan.floor.site_of(node) for node in plan.nodes} == dict(
        zip(names, sites, strict=True)
    )
    with pytest.raises(
        ConfigurationError,
        match=r"units_per_site is 2: expected at least 3, for 6 off-chip operators on the 4 sites "
        r"of the edge and 3 other units on 4 sites$",
    ):
        placed(elaborate(_lines(replace(mesh, units_per_site=2))), None)


@pytest.mark.parametrize(
    ("each", "said", "told"),
    [
        (9, 9, None),
        (8, 9, "store2 is at [0, 0], where load0, map0, store0, load1, map1 are: expected at most "
            "8 units, as [network] units_per_site says"),
        (2, 9, "store0 is at [0, 0], where load0, map0 are: expected at most 2 units, as "),
        (9, 4, "map1, store1, load2, map2, store2 of 'lines': expected a site, [column, row], for"),
        (9, 3, "load1, map1, store1, load2, map2 and 1 more of 'lines': expected a site, [column"),
    ],
)  # fmt: skip
def test_units_on_one_site(each: int, said: int, told: str | None) -> None:
    """It may have as many as it has room for, and of many units five are named."""
    program = _lines(Mesh(columns=2, rows=2, units_per_site=each))
    program.put({node.name: (0, 0) for node in program.nodes[:said]})
    if told is None:
        floor = placed(elaborate(program), None).floor
        assert floor is not None
        assert {floor.site_of(node) for node in program.nodes} == {(0, 0)}
        return
    with pytest.raises(ConfigurationError) as caught:
        placed(elaborate(program), None)
    assert caught.value.message.startswith(told)

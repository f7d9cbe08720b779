from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import operators as op
from fabric import Hardware, Mesh, Program, load_hardware, place, simulate
from fabric.analysis.placing.floor import netlist_of
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.errors import ConfigurationError
from fabric.shell.cli import main

PAPER = Hardware()

JOIN = "programs/hash_join.py"


def small(hardware: Hardware = PAPER) -> Program:
    return load_program(
        Path("programs/moe.py"), ["model=tiny", "batch=8", "tile_n=4"], hardware
    ).program


def join() -> Program:
    return load_program(Path(JOIN), [], PAPER).program


def test_nets_have_the_bytes_that_a_run_sends() -> None:
    program = small(load_hardware("paper_priced"))
    netlist = netlist_of(elaborate(program))
    (fifo,) = [each for each in simulate(program).spent if each.cause == "fifo"]
    assert netlist.unknown_channels == 0
    # A Broadcast receives the bytes of its net once, and sends them to each of its readers.
    copies = [len(net.targets) + (len(net.targets) > 1) for net in netlist.nets]
    sent = [net.size_bytes * count for net, count in zip(netlist.nets, copies, strict=True)]
    assert sum(sent) == fifo.amount


@pytest.mark.deep
def test_site_memory_limits_the_plan() -> None:
    needs = sorted(unit.on_chip_bytes for unit in netlist_of(elaborate(small())).units)
    mesh = Mesh(columns=8, rows=8, units_per_site=4, site_bytes=needs[-1])
    found = place(small(), mesh)
    assert found.site_bytes == needs[-1]
    assert found.floor.broken_rule(found.numbers) is None
    assert place(small(), mesh, site_bytes=2 * needs[-1]).site_bytes == 2 * needs[-1]
    with pytest.raises(ConfigurationError, match=f"expected at most {needs[-1] - 1:,}, the memory"):
        place(small(), replace(mesh, site_bytes=needs[-1] - 1))
    with pytest.raises(ConfigurationError, match="expected at most 0, the memory"):
        place(small(), mesh, site_bytes=0)
    with pytest.raises(ConfigurationError, match=r"site_bytes is -1: expected at least 0$"):
        place(small(), mesh, site_bytes=-1)


@pytest.mark.deep
def test_place_command_writes_a_site_for_each_operator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "one.toml", tmp_path / "two.toml"]
    mesh = tmp_path / "mesh.toml"
    mesh.write_text("[network]\ncolumns = 4\nrows = 3\n", encoding="utf-8")
    for file in files:
        status = main(["place", JOIN, "--hardware", str(mesh), "--json", "-o", str(file)])
        assert status == 0
        printed = json.loads(capsys.readouterr().out)
    assert files[0].read_bytes() == files[1].read_bytes()
    written = tomllib.loads(files[0].read_text(encoding="utf-8"))
    assert written["program"] == printed["name"] == join().name
    assert written["units"] == printed["units"]
    assert list(written["units"]) == [node.name for node in elaborate(join()).nodes]
    assert all(column < 4 and row < 3 for column, row in written["units"].values())
    assert printed["lower_bound_bytes"] <= printed["cost_bytes"] < printed["random_cost_bytes"]
    assert printed["cost_bytes"] == printed["byte_hops"] + printed["worst_link_bytes"]


@pytest.mark.deep
def test_simulate_reads_a_placement_file(tmp_path: Path) -> None:
    with_mesh = small(replace(PAPER, network=Mesh(columns=10, rows=10, link_bytes_per_cycle=64)))
    file = tmp_path / "placement.toml"
    place(with_mesh).write(file)
    placed = simulate(with_mesh, mode="timing", placement=file)
    by_rows = simulate(with_mesh, mode="timing")
    assert placed.status == by_rows.status == "completed"
    assert (placed.cycles or 0) < (by_rows.cycles or 0)


def test_place_command_without_a_network_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["place", JOIN]) == 2
    assert "the hardware has no sites: expected [network] in its file" in capsys.readouterr().err


def test_data_dependent_sizes_count_as_unknown_channels() -> None:
    with Program("routed") as program:
        rows = op.Flatten(0, 2)(op.LinearOffChipLoad(np.ones((3, 4)), tile=(1, 4))())
        # A list decides only the sizes of its own stream, not of streams after another operator.
        route = op.Flatten(0, 2)(
            op.Repeat(1)(op.Selectors(np.array([[0], [1], [0]]), 2, name="route")())
        )
        for number, part in enumerate(op.Partition(2)(rows, route)):
            op.LinearOffChipStore(f"y{number}")(op.Promote(0)(part))
    netlist = netlist_of(elaborate(program))
    assert netlist.unknown_channels == 4
    more = netlist_of(elaborate(program), {"D_route[0]": 50})
    assert more.unknown_channels == 2
    assert sum(net.size_bytes for net in more.nets) > sum(net.size_bytes for net in netlist.nets)

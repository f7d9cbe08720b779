from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from fabric import ConfigurationError, Hardware, Program, hardware_scope, simulate, size
from fabric.graph.hardware.latency import Mesh, Site
from tests.fabric.scripted import Stage
from tests.network.placed import TileStage, write_placement
from tests.profiles import spread

COUNT = 40


def pair(columns: int, hop_cycles: int, work_cycles: int) -> Program:
    mesh = Mesh(columns=columns, rows=2, hop_cycles=hop_cycles)
    with hardware_scope(Hardware(network=mesh)), Program("pair") as program:
        (stream,) = Stage(COUNT, work_cycles=(work_cycles,), name="a")()
        Stage(COUNT, outputs=0, work_cycles=(work_cycles,), name="b")(stream)
    program.put({"a": (0, 0), "b": (columns - 1, 0)})
    return program


@pytest.mark.parametrize(
    ("columns", "hop_cycles", "work_cycles"),
    spread([(2, 1, 1), (4, 1, 1), (4, 3, 1), (4, 3, 4), (5, 2, 3)], 1),
)
def test_depth_of_a_round_trip_covers_its_credits(
    columns: int, hop_cycles: int, work_cycles: int
) -> None:
    program = pair(columns, hop_cycles, work_cycles)
    forward_cycles = backward_cycles = (columns - 1) * hop_cycles
    found = size(program)
    assert found.depths == {"b.0": -(-(forward_cycles + backward_cycles) // work_cycles)}
    assert (found.truth, found.keeps, found.hops) == ("proved", True, {})
    cycles = [simulate(program, depths={"b.0": depth}).cycles or 0 for depth in range(1, 30)]
    assert found.depths["b.0"] == 1 + cycles.index(min(cycles))


def crossing(count: int = 12) -> Program:
    mesh = Mesh(columns=4, rows=2, hop_cycles=2, link_bytes_per_cycle=32)
    with hardware_scope(Hardware(network=mesh)), Program("crossing") as program:
        for source, target in ("ab", "cd"):
            (stream,) = TileStage(count, work_cycles=(3,), name=source, sizes=[64])()
            TileStage(count, outputs=0, work_cycles=(3,), name=target, sizes=[])(stream)
    return program


def test_depths_on_shared_links_keep_the_goal_in_a_run(tmp_path: Path) -> None:
    sites = {"a": Site(0, 0), "b": Site(3, 0), "c": Site(1, 0), "d": Site(2, 0)}
    file = write_placement(tmp_path / "placement.toml", "crossing", sites)
    program = crossing()
    found = size(program, placement=file, objective="slots")
    assert (found.truth, found.keeps) == ("validated", True)
    assert "elements share links of the network" in found.reasons

    def cycles(depths: dict[str, int]) -> int | None:
        return simulate(program, depths=depths, placement=file).cycles

    limit = found.inputs[0].limit_cycles
    assert limit is not None
    assert limit == cycles({"b.0": 100, "d.0": 100})
    taken = cycles(found.depths)
    assert taken is not None
    assert taken <= limit
    keeping = [
        b + d
        for b, d in itertools.product(range(1, 9), repeat=2)
        if (cycles({"b.0": b, "d.0": d}) or 0) <= limit
    ]
    assert found.cost == min(keeping)


def test_placement_of_another_program_is_refused(tmp_path: Path) -> None:
    file = write_placement(tmp_path / "placement.toml", "other", {"a": Site(0, 0)})
    with pytest.raises(ConfigurationError, match="a placement of program 'other'"):
        size(crossing(), placement=file)

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Hardware, Program
from fabric.extend import ChannelDescription
from fabric.graph.hardware.latency import Mesh
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.program import hardware_scope
from fabric.messages.files import programs
from tests.compiled.both import both, described
from tests.deadlock.cases import CASES as STUCK
from tests.network.placed import write_placement
from tests.operators.driving import Choices
from tests.operators.random_programs import Random
from tests.profiles import examples, spread
from tests.schedules import SCHEDULES, schedule

QUICK = examples(quick=6, deep=200)

PROGRAMS: list[tuple[str, tuple[str, ...]]] = [
    ("top2_moe", ("tokens=8",)),
    ("moe", ("model=tiny", "tile_n=4", "batch=16")),
    ("attention", ("requests=4", "regions=2", "strategy=dynamic")),
    ("simplified_moe", ()),
    ("ragged_attention", ("requests=4", "longest=3")),
]


def shipped(name: str, parameters: tuple[str, ...], mesh: Mesh, interval: int = 0) -> Program:
    file = programs() / f"{name}.py"
    channel = ChannelDescription(interval_cycles=interval)
    return load_program(file, parameters, Hardware(network=mesh, channel=channel)).program


def drawn_mesh(source: random.Random) -> Mesh:
    columns, rows = source.randint(2, 4), source.randint(2, 4)
    dies = {
        "die_columns": columns // 2,
        "crossing_cycles": source.randint(1, 9),
        "crossing_bytes_per_cycle": source.choice([None, 1, 5]),
    }
    return Mesh(
        columns=columns,
        rows=rows,
        link_bytes_per_cycle=source.choice([None, 1, 3, 8, 64]),
        injection_bytes_per_cycle=source.choice([None, 2, 7, 16]),
        hop_cycles=source.randint(1, 3),
        ends_cycles=source.randint(0, 2),
        **(dies if columns % 2 == 0 and source.random() < 0.3 else {}),
    )


def placed(build: Callable[[], Program], source: random.Random, folder: Path) -> dict[str, Any]:
    made = build()
    mesh = made.hardware.network
    assert mesh is not None
    depth = source.choice([None, 1, 2, 5, 100_000])
    depths = {edge.key: depth or source.randint(1, 4) for edge in elaborate(made).edges}
    sites = {
        node.name: source.choice(mesh.edge if node.operator.off_chip else mesh.sites)
        for node in made.nodes
    }
    return {"depths": depths, "placement": write_placement(folder / "p.toml", made.name, sites)}


def check_placed(data: bytes, folder: Path) -> None:
    seen: list[list[Any]] = []
    source = random.Random(data)
    mesh = drawn_mesh(source)
    channel = ChannelDescription(interval_cycles=source.randint(0, 1))

    def build() -> Program:
        with hardware_scope(Hardware(network=mesh, channel=channel)):
            made = Random(Choices(data), functional=False)
        seen.extend(end[0] for end in made.ends)
        return made.program

    drawn = placed(build, source, folder)
    seen.clear()
    with schedule(source.choice(SCHEDULES)):
        both(build, folder, **drawn)
    half = len(seen) // 2
    assert list(map(described, seen[:half])) == list(map(described, seen[half:]))


@QUICK
@given(data=st.binary(min_size=300, max_size=300))
def test_random_placed_programs_are_equal_in_both_engines(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_placed(data, tmp_path_factory.mktemp("placed"))


@pytest.mark.parametrize("interval", [0, 1])
@pytest.mark.parametrize(("name", "parameters"), spread(PROGRAMS, 2))
def test_shipped_placed_programs_are_equal_in_both_engines(
    name: str, parameters: tuple[str, ...], interval: int, tmp_path: Path
) -> None:
    mesh = Mesh(columns=4, rows=2, link_bytes_per_cycle=8, injection_bytes_per_cycle=16)

    def build() -> Program:
        return shipped(name, parameters, mesh, interval)

    drawn = placed(build, random.Random(name), tmp_path)
    found = both(build, tmp_path, **drawn)

    assert found.compiled
    assert not found.gave_up
    # Channels that share no links count no waits for links.
    assert found.outcome["report"].network.links_cycles


@pytest.mark.parametrize("name", spread(["pack_rows", "loop_of_2", "cut_off_sub_tensor"], 1))
def test_deadlock_reports_on_a_mesh_are_equal(name: str, tmp_path: Path) -> None:
    mesh = Mesh(columns=3, rows=3, link_bytes_per_cycle=2, injection_bytes_per_cycle=3)

    def build() -> Program:
        with hardware_scope(Hardware(network=mesh)):
            return STUCK[name].build()

    found = both(build, tmp_path, depths=STUCK[name].given)
    assert found.outcome["report"].status == "deadlock"

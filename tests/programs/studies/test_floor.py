from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest

from fabric import Hardware, Program, Study, simulate
from fabric.graph.hardware.latency import Mesh
from fabric.graph.loading.program_file import executed, load_program
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.placing import placed
from tests.profiles import spread
from tests.programs.loading import PROGRAMS
from tests.programs.studies.made import made, opened

LINK: Final = "hardware.network.link_bytes_per_cycle"
BARE: Final = {"static": 1000, "coarse": 1400, "interleaved": 1200, "dynamic": 800}
TIMES: Final = {"together": 1.0, "place": 1.25, "random": 2.5, "rows": 3.0}


@pytest.fixture(scope="module")
def study() -> Study:
    return opened("floor")


def numbers(setting: Mapping[str, Any]) -> dict[str, float]:
    design = setting["strategy"] if setting["part"] == "attention" else setting["tiling"]
    width = setting[LINK]
    above = TIMES[setting["placement"]] - 1
    times = 1 + (0.01 if width is None and above else above * 64 / width if width else 0)
    return {"cycles": BARE[design] * times * (1 + setting["placement_seed"] / 100)}


def test_points_are_different_and_name_parameters(study: Study) -> None:
    points = [study.whole(setting) for setting in study.space]
    known = inspect.signature(executed(study.program or "").build).parameters

    assert len(points) == 11 * (1 + 3 * 4 + 2 * 2)
    assert len(points) == len({tuple(sorted(each.items(), key=str)) for each in points})
    assert all(each[LINK] == each["hardware.network.injection_bytes_per_cycle"] for each in points)
    assert {
        name for each in points for name in each if not name.startswith("hardware.network.")
    } <= {*known}


def test_tables_of_made_up_points(study: Study) -> None:
    result = made(study, numbers)
    cost, saving, advantage = result.filled_tables

    assert [""] * 3 == [each.trouble for each in result.filled_tables]
    assert [33, 11, 8] == [len(each.rows) for each in (cost, saving, advantage)]
    assert ("static 16", "found", 1000, 1.0, 6.2, 12.5, 25.0) == cost.rows[0][1:]
    assert ("dynamic", "row by row", 800, 1.0, 50.0, 100.0, 200.0) == cost.rows[-1][1:]
    # 1000 x 1.25, and 2 % more; 2.5 / 1.25, and 2 % less or more.
    assert ("static 16", "1,250 to 1,275", "1.96 to 2.04", "2.35 to 2.40") == saving.rows[0][1:]
    assert ("coarse", *[1.75] * 5, "1.716 to 1.785", 1.75, 1.75) == advantage.rows[-2][1:]


def _placed(placement: str, mesh: Mesh | None, seed: int = 0) -> Program:
    given = ["model=tiny", "batch=8", "tile_n=4", f"placement={placement}"]
    given.append(f"placement_seed={seed}")
    return load_program(PROGRAMS / "placed.py", given, Hardware(network=mesh)).program


def test_units_on_one_site_take_the_cycles_without_a_network() -> None:
    mesh = Mesh(columns=3, rows=3, link_bytes_per_cycle=8, injection_bytes_per_cycle=8)
    plain = simulate(_placed("together", None), mode="timing")
    together = simulate(_placed("together", mesh), mode="timing")
    apart = simulate(_placed("rows", mesh), mode="timing")

    assert plain.cycles == together.cycles
    assert (apart.cycles or 0) > (plain.cycles or 0)


@pytest.mark.parametrize("placement", spread(["random", "place"], 1))
def test_sites_depend_on_the_seed(placement: str) -> None:
    mesh = Mesh(columns=3, rows=3)
    programs = [_placed(placement, mesh, seed) for seed in (0, 0, 1)]
    first, again, other = (placed(elaborate(each), None).floor for each in programs)
    assert first is not None
    assert again is not None
    assert other is not None

    assert first.sites == again.sites != other.sites
    units = programs[0].nodes
    held = Counter(first.sites[each.name] for each in units)
    ports = sum(each.operator.off_chip is not None for each in units)
    assert max(held.values()) == max(-(-len(units) // 9), -(-ports // 8))
    assert all(
        first.sites[each.name] in mesh.edge for each in units if each.operator.off_chip is not None
    )

"""How close lower bounds come for the paper's layers; the documentation's table has these numbers.

A bound above the cycles of its run fails here, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from decoders.points import ASSUMED, DECODERS
from paper.workloads import MIXTRAL_64, MIXTRAL_1024, QWEN_64, QWEN_1024, multiplexed

from fabric import Hardware, Hop
from fabric.analysis.symbolic.operator_bounds import Certain, certain_sizes
from fabric.extend import FlatDescription
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.elaborate import elaborate
from tests.profiles import spread
from tests.programs.loading import PROGRAMS
from tests.symbolic.bounded import compared

PAGE = Path(__file__).parents[2] / "docs/pages/reference/measurements.md"

_REGIONS = {"tile_f": 48, "flops_per_cycle": 1024}

Points = list[dict[str, Any]]


def _decoder(number: int, parallelisation: str) -> Points:
    points = [ASSUMED | each for each in DECODERS[number].space(ASSUMED)]
    return [each for each in points if each["parallelisation"] == parallelisation]


def _moe(space: Iterable[dict[str, Any]]) -> Points:
    return [dict(each) for each in space]


LAYERS: dict[str, tuple[str, Points]] = {
    "Mixtral, batch 64": ("moe", _moe(MIXTRAL_64.space)),
    "Qwen, batch 64": ("moe", _moe(QWEN_64.space)),
    "Mixtral, batch 1024": ("moe", _moe(MIXTRAL_1024.space)),
    "Qwen, batch 1024": ("moe", _moe(QWEN_1024.space)),
    "Qwen, fewer regions, static": ("moe", [p | _REGIONS for p in multiplexed("static")]),
    "Qwen, fewer regions, dynamic": ("moe", [p | _REGIONS for p in multiplexed("dynamic")]),
    "decoder of Mixtral, static": ("decoder", _decoder(0, "interleaved")),
    "decoder of Mixtral, dynamic": ("decoder", _decoder(0, "dynamic")),
    "decoder of Qwen, static": ("decoder", _decoder(1, "interleaved")),
    "decoder of Qwen, dynamic": ("decoder", _decoder(1, "dynamic")),
}

QUICK = {"Mixtral, batch 64": 5, "Qwen, batch 64": 5, "decoder of Mixtral, dynamic": 0}


def measured(layer: str, number: int) -> int:
    program, points = LAYERS[layer]
    given = [f"{key}={value}" for key, value in points[number].items()]
    hardware = Hardware(hbm=FlatDescription())
    bound, report = compared(load_program(PROGRAMS / f"{program}.py", given, hardware).program)
    assert report.cycles is not None
    return 100 * bound.at_least["cycles"] // report.cycles


def stated() -> dict[str, tuple[int, int, int]]:
    row = re.compile(r"^\| (.+?) \| (\d+) \| (\d+) to (\d+) % \|$", re.MULTILINE)
    found = row.findall(PAGE.read_text(encoding="utf-8"))
    return {name: (int(points), int(least), int(most)) for name, points, least, most in found}


def test_table_has_all_published_layers() -> None:
    assert {name: len(points) for name, (_, points) in LAYERS.items()} == {
        name: points for name, (points, _, _) in stated().items()
    }


@pytest.mark.parametrize("layer", spread(QUICK, 1))
def test_bound_of_one_point_is_in_its_range(layer: str) -> None:
    _, least, most = stated()[layer]
    assert least <= measured(layer, QUICK[layer]) <= most


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("layer", "number", "per_cent"),
    [("Mixtral, batch 1024", 1, 103), ("Mixtral, batch 1024", 2, 103), ("Qwen, batch 1024", 5, 96)],
)
def test_layer_with_slower_channels_takes_fewer_cycles(
    layer: str, number: int, per_cent: int
) -> None:
    # No bound for all depths and hops can be above these cycles. Experts with fewer tiles get them
    # so late that all experts finish together, one tile after another. Then the expert with the
    # most work is not delayed.
    program, points = LAYERS[layer]
    given = [f"{key}={value}" for key, value in points[number].items()]
    built = load_program(PROGRAMS / f"{program}.py", given, Hardware(hbm=FlatDescription())).program
    bound, as_it_is = compared(built)
    # The cycles at the memory's peak of 1,024 bytes a cycle, times ``per_cent``.
    cycles = bound.exact["hbm_bytes_moved"] * per_cent // 102_400

    plan = elaborate(built)
    certain = Certain(plan, certain_sizes(plan))
    loads = [node for node in plan.nodes if re.match("load_(up|gate|down)_", node.name)]
    tiles = {node.index: certain.facts(node.output_types[0]).elements or 0 for node in loads}
    apart = {
        load: cycles // count for load, count in tiles.items() if 0 < count < max(tiles.values())
    }
    later = {load: apart[load] * turn // len(apart) for turn, load in enumerate(apart)}
    behind = {edge.key: edge.producer.index for edge in plan.edges if edge.producer.index in apart}
    hops = {
        edge.key: Hop(1 + later[edge.consumer.index], 1)
        for edge in plan.edges
        if edge.consumer.index in apart
    } | {key: Hop(1, apart[load] - 1) for key, load in behind.items()}
    _, quicker = compared(built, hops=hops, depths=dict.fromkeys(behind, 1))

    assert quicker.cycles is not None
    assert as_it_is.cycles is not None
    assert quicker.cycles < Fraction(85, 100) * as_it_is.cycles


@pytest.mark.exhaustive
@pytest.mark.parametrize("layer", LAYERS)
def test_range_is_that_of_all_points(layer: str) -> None:
    found = [measured(layer, number) for number in range(len(LAYERS[layer][1]))]
    assert (len(found), min(found), max(found)) == stated()[layer]

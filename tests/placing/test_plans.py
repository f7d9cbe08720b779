from __future__ import annotations

import random
from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.placing.annealing import annealed, partitioned, random_sites
from fabric.analysis.placing.bound import exact, lower_bound
from fabric.analysis.placing.floor import Floor
from fabric.graph.hardware.latency import Mesh
from fabric.messages.errors import ConfigurationError
from tests.placing.definition import cheapest, cost, netlist
from tests.profiles import examples, of_profile


@st.composite
def floors(draw: st.DrawFn, columns: int = 2, rows: int = 2, most_units: int = 5) -> Floor:
    count = draw(st.integers(2, most_units))
    nets = []
    for _ in range(draw(st.integers(1, 6))):
        source = draw(st.integers(0, count - 1))
        others = [unit for unit in range(count) if unit != source]
        readers = draw(st.lists(st.sampled_from(others), min_size=1, max_size=3, unique=True))
        nets.append((source, readers, draw(st.integers(1, 40))))
    on_edge = draw(st.lists(st.integers(0, count - 1), max_size=2, unique=True))
    each = draw(st.integers(-(-count // (columns * rows)), 3))
    return Floor.of(
        Mesh(columns=columns, rows=rows, units_per_site=each), netlist(count, nets, on_edge)
    )


def found(floor: Floor) -> list[int]:
    return annealed(floor, partitioned(floor, 0), 0, lambda _: None)


@examples(3, 40)
@given(floors())
def test_bound_exact_and_found_cost_enclose_the_cheapest_plan(floor: Floor) -> None:
    least, plan = cheapest(floor), found(floor)
    assert lower_bound(floor).bytes <= least <= cost(floor, plan)
    sites, bound = exact(floor, cost(floor, plan))
    assert bound == least
    if sites is not None:
        assert cost(floor, sites) == least
    else:
        assert cost(floor, plan) == least


@pytest.mark.deep
@examples(4, 12)
@given(floors(columns=3, rows=3, most_units=4))
def test_costs_enclose_the_cheapest_plan_with_an_inner_site(floor: Floor) -> None:
    least, plan = cheapest(floor), found(floor)
    assert lower_bound(floor).bytes <= least <= cost(floor, plan)
    assert exact(floor, cost(floor, plan))[1] == least


@examples(15, 300)
@given(floors(columns=4, rows=3, most_units=9), st.integers(0, 99))
def test_cost_of_a_plan_equals_its_definition(floor: Floor, seed: int) -> None:
    sites = random_sites(floor, seed)
    assert sites is not None
    assert floor.broken_rule(sites) is None
    assert floor.cost(sites).bytes == cost(floor, sites)
    assert lower_bound(floor).bytes <= cost(floor, sites)


def drawn_tree(units: int, seed: int) -> Floor:
    drawn = random.Random(seed)
    nets = [
        (drawn.randrange(max(0, unit - 5), unit), [unit], 4 ** drawn.randrange(8))
        for unit in range(1, units)
    ]
    side = next(side for side in range(2, units) if side * side > units)
    return Floor.of(Mesh(columns=side, rows=side, units_per_site=1), netlist(units, nets))


@pytest.mark.parametrize("seed", range(of_profile(1, 20)))
def test_plan_of_thirty_units_is_within_2_percent_of_the_bound(seed: int) -> None:
    floor = drawn_tree(30, seed)
    assert cost(floor, found(floor)) <= 1.02 * lower_bound(floor).bytes


def test_partition_without_room_is_refused() -> None:
    nets = netlist(5, [(0, [1], 1)])
    floor = Floor.of(Mesh(columns=2, rows=2, units_per_site=2), nets, 199)
    message = (
        "place: found no sites with room for all units of drawn: expected more memory than 199 "
        "bytes a site, or more sites"
    )
    with pytest.raises(ConfigurationError, match=message):
        partitioned(floor, 0)
    assert random_sites(floor, 0) is None


def test_narrow_crossing_costs_in_proportion() -> None:
    mesh = Mesh(
        columns=2,
        rows=2,
        link_bytes_per_cycle=64,
        die_columns=1,
        crossing_cycles=1,
        crossing_bytes_per_cycle=16,
    )
    floor = Floor.of(replace(mesh, units_per_site=1), netlist(2, [(0, [1], 7)]))
    assert floor.cost([0, 1]).worst_link_bytes == 4 * 7
    assert floor.cost([0, 2]).worst_link_bytes == 7
    # Fractions are rounded up: 64 bytes a cycle by 20, and 7 cycles by 3.
    odd = replace(mesh, hop_cycles=3, crossing_cycles=7, crossing_bytes_per_cycle=20)
    assert astuple(replace(floor, mesh=odd).cost([0, 1])) == (3 * 7, 4 * 7)
    # A link without a limit counts as the widest one.
    endless = replace(mesh, link_bytes_per_cycle=None)
    assert replace(floor, mesh=endless).cost([0, 1]).worst_link_bytes == 7


def test_exact_plan_equals_brute_force() -> None:
    nets = netlist(3, [(0, [1, 2], 14), (1, [2], 21), (2, [0], 7)], on_edge=[2])
    for mesh, each, site_bytes in (
        (Mesh(columns=2, rows=2), 2, None),
        (Mesh(columns=2, rows=2), 2, 199),
        (Mesh(columns=3, rows=2), 1, None),
    ):
        floor = Floor.of(replace(mesh, units_per_site=each), nets, site_bytes)
        # With a byte too little for two units, there is room for only one.
        alone = floor if site_bytes is None else Floor.of(replace(mesh, units_per_site=1), nets)
        least = cheapest(alone)
        for known in (least + 7, 3 * least):
            sites, bound = exact(floor, known)
            assert sites is not None
            assert floor.broken_rule(sites) is None
            assert (cost(floor, sites), bound) == (least, least)
        assert exact(floor, least) == (None, least)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"count": 9}, "drawn has 9 units: expected at most 8, 2 on each of 4 sites"),
        (
            {"count": 3, "site_bytes": 99},
            "unit_0 needs 100 bytes of on-chip memory: expected at most 99, the memory of a site",
        ),
        (
            {"count": 5, "site_bytes": 120},
            "the units of drawn need 500 bytes of on-chip memory: expected at most 480, the memory "
            "of 4 sites",
        ),
    ],
)
def test_floor_without_room_is_refused(given_: dict[str, int], message: str) -> None:
    nets = netlist(given_["count"], [(0, [1], 1)])
    with pytest.raises(ConfigurationError, match=message):
        Floor.of(Mesh(columns=2, rows=2, units_per_site=2), nets, given_.get("site_bytes"))


def test_floor_without_room_on_the_edge_is_refused() -> None:
    nets = netlist(9, [(0, [1], 1)], on_edge=range(9))
    with pytest.raises(
        ConfigurationError,
        match="9 units that use the HBM: expected at most 8, 1 on each of 8 sites on the edge",
    ):
        Floor.of(Mesh(columns=3, rows=3, units_per_site=1), nets)

"""Plans of drawn nets: what they cost, what no plan costs less than, and the rules they keep."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.placing.annealing import annealed, partitioned, random_sites
from fabric.analysis.placing.annealing_loop import _drawn
from fabric.analysis.placing.bound import exact, lower_bound
from fabric.analysis.placing.floor import Floor
from fabric.messages.telling.errors import ConfigurationError
from fabric.timing.network import Mesh
from tests.placing import definition
from tests.placing.definition import cheapest, cost, netlist
from tests.profiles import examples, of_profile


@st.composite
def floors(draw: st.DrawFn, columns: int = 2, rows: int = 2, most_units: int = 5) -> Floor:
    """Draw a floor of few sites, with nets of one or several readers."""
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
    """Return the plan that partition and annealing find."""
    return annealed(floor, partitioned(floor, 0), 0, lambda _: None)


@examples(5, 60)
@given(floors())
def test_the_bound_is_at_most_the_least_and_that_at_most_what_is_found(floor: Floor) -> None:
    """The bound is at most the least cost, which is at most what is found."""
    least, plan = cheapest(floor), found(floor)
    assert lower_bound(floor).bytes <= least <= cost(floor, plan)
    answer = exact(floor, cost(floor, plan))
    assert answer.bound == least
    if answer.sites is not None:
        assert cost(floor, answer.sites) == least
    else:
        assert cost(floor, plan) == least


@pytest.mark.deep
@examples(4, 12)
@given(floors(columns=3, rows=3, most_units=4))
def test_the_same_where_there_is_a_site_off_the_edge(floor: Floor) -> None:
    """The same holds where there is a site off the edge."""
    least, plan = cheapest(floor), found(floor)
    assert lower_bound(floor).bytes <= least <= cost(floor, plan)
    assert exact(floor, cost(floor, plan)).bound == least


@examples(15, 300)
@given(floors(columns=4, rows=3, most_units=9), st.integers(0, 99))
def test_the_cost_of_a_plan_is_that_of_its_steps(floor: Floor, seed: int) -> None:
    """The cost of a plan is that of its steps over the grid."""
    sites = random_sites(floor, seed)
    assert sites is not None
    assert floor.broken(sites) is None
    assert floor.cost(sites).bytes == cost(floor, sites)
    assert lower_bound(floor).bytes <= cost(floor, sites)


def drawn_tree(units: int, seed: int) -> Floor:
    """Return a tree of units whose nets have very different bytes, one unit a site."""
    drawn = random.Random(seed)
    nets = [
        (drawn.randrange(max(0, unit - 5), unit), [unit], 4 ** drawn.randrange(8))
        for unit in range(1, units)
    ]
    side = next(side for side in range(2, units) if side * side > units)
    return Floor.of(Mesh(columns=side, rows=side, units_per_site=1), netlist(units, nets))


@pytest.mark.parametrize("seed", range(of_profile(1, 20)))
def test_thirty_units_are_within_2_percent_of_the_exact_answer(seed: int) -> None:
    """What is found for 30 units is within 2 % of a bound of the exact answer."""
    floor = drawn_tree(30, seed)
    assert cost(floor, found(floor)) <= 1.02 * lower_bound(floor).bytes


def test_one_seed_gives_one_plan() -> None:
    """One seed gives one plan, another one another."""
    floor = drawn_tree(8, 0)
    start = partitioned(floor, 3)
    assert start == partitioned(floor, 3)
    plans = [annealed(floor, start, seed, lambda _: None) for seed in (3, 3, 4)]
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.parametrize(
    ("mesh", "site_bytes", "seed"),
    [
        (Mesh(columns=4, rows=3, units_per_site=2), None, 5),
        (Mesh(columns=3, rows=4, units_per_site=3), 200, 0),
        (
            Mesh(
                columns=4,
                rows=4,
                link_bytes_per_cycle=64,
                die_columns=2,
                crossing_cycles=5,
                crossing_bytes_per_cycle=20,
                units_per_site=1,
            ),
            None,
            1,
        ),
    ],
)
def test_moves_are_those_of_the_definition(
    mesh: Mesh, site_bytes: int | None, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop does what random numbers and Metropolis' rule say, move by move."""
    drawn = random.Random(seed)
    nets = [
        (source, drawn.sample([unit for unit in range(9) if unit != source], readers), size)
        for source in range(9)
        for readers, size in ((1 + source % 3, drawn.randrange(1, 400)),)
    ]
    floor = Floor.of(mesh, netlist(10, nets, on_edge=(1, 4, 5)), site_bytes)
    start = random_sites(floor, seed)
    assert start is not None
    monkeypatch.setattr("fabric.analysis.placing.annealing._MOVES_PER_UNIT", 12)
    told: list[str] = []
    assert (annealed(floor, start, seed, told.append), told) == definition.annealed(
        floor, start, seed, stage_moves=1
    )


def test_what_talks_much_is_on_one_die() -> None:
    """Two groups with few bytes between them are on a die each."""
    groups = [range(4), range(4, 8)]
    nets = [(a, [b], 100) for its in groups for a in its for b in its if a < b]
    mesh = Mesh(columns=4, rows=2, die_columns=2, crossing_cycles=20)
    floor = Floor.of(replace(mesh, units_per_site=1), netlist(8, [*nets, (0, [7], 10)]))
    plan = found(floor)
    dies = [{site % 4 // 2 for site in (plan[unit] for unit in its)} for its in groups]
    assert sorted(map(sorted, dies)) == [[0], [1]]
    # A crossing counts as the 20 hops that its cycles are.
    loads = floor.link_bytes(plan)
    crossing = [link for link, hops in enumerate(floor.hops) if hops == 20]
    assert sum(loads[link] for link in crossing) == 10
    assert (
        floor.cost(plan).byte_hops
        == sum(load for link, load in enumerate(loads) if link % 6 < 4) + 19 * 10
    )


def test_narrow_crossings_weigh_more() -> None:
    """On a link a fourth as wide, bytes count four times for the worst link."""
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


def test_memory_of_sites_is_kept() -> None:
    """A site holds no more units than their memory allows."""
    floor = Floor.of(
        Mesh(columns=2, rows=2, units_per_site=4), netlist(6, [(0, [1, 2, 3, 4, 5], 9)]), 200
    )
    plan = found(floor)
    assert floor.broken(plan) is None
    assert max(plan.count(site) for site in plan) == 2
    assert floor.broken([0, 0, 0, 1, 1, 2]) == "300 bytes on column 0, row 0"


def test_a_site_that_lacks_a_byte_is_full() -> None:
    """Two units that talk much are on two sites where one has a byte too little for both."""
    nets = netlist(2, [(0, [1], 1000)])
    mesh = Mesh(columns=2, rows=2, units_per_site=2)
    for site_bytes, sites in ((199, 2), (200, 1)):
        floor = Floor.of(mesh, nets, site_bytes)
        assert len({*annealed(floor, [0, 1], 0, lambda _: None)}) == sites


def test_nets_with_more_units_than_a_site_leave_it() -> None:
    """What a net with several readers costs at least: it reaches so many sites but one."""
    for each, readers, sites in ((2, 2, 2), (2, 3, 2), (2, 4, 3), (3, 2, 1), (3, 3, 2), (1, 2, 3)):
        nets = netlist(readers + 1, [(0, range(1, readers + 1), 10)])
        floor = Floor.of(Mesh(columns=3, rows=2, units_per_site=each), nets)
        assert lower_bound(floor).byte_hops == 10 * (sites - 1)


def test_what_breaks_a_rule_is_named() -> None:
    """What breaks a rule is named."""
    floor = Floor.of(
        Mesh(columns=3, rows=3, units_per_site=1), netlist(2, [(0, [1], 9)], on_edge=[1])
    )
    assert floor.broken([4, 0]) is None
    assert floor.broken([0, 0]) == "2 units on column 0, row 0"
    assert floor.broken([0, 4]) == "unit_1 on column 1, row 1, off the edge"


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"count": 9}, "drawn has 9 units: expected at most 8, 2 on each of 4 sites"),
        (
            {"count": 3, "site_bytes": 99},
            "unit_0 needs 100 bytes of on-chip memory: expected at most 99, those of a site",
        ),
        (
            {"count": 5, "site_bytes": 120},
            "the units of drawn need 500 bytes of on-chip memory: expected at most 480, those of "
            "4 sites",
        ),
    ],
)
def test_no_room_is_an_error(given_: dict[str, int], message: str) -> None:
    """Where there is no room, the error says what needs it."""
    nets = netlist(given_["count"], [(0, [1], 1)])
    with pytest.raises(ConfigurationError, match=message):
        Floor.of(Mesh(columns=2, rows=2, units_per_site=2), nets, given_.get("site_bytes"))


def test_the_edge_has_to_have_room() -> None:
    """Units with off-chip memory have room on the edge only."""
    nets = netlist(9, [(0, [1], 1)], on_edge=range(9))
    with pytest.raises(ConfigurationError, match="9 units that use the HBM: expected at most 8"):
        Floor.of(Mesh(columns=3, rows=3, units_per_site=1), nets)


@examples(20, 200)
@given(st.integers(0, 2**63 - 1), st.integers(1, 2**30))
def test_random_numbers_are_those_of_knuth(seed: int, below: int) -> None:
    """The generator is that of MMIX, of which the upper bits are used."""
    memory, state = [seed], seed
    for _ in range(5):
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        assert _drawn(memory, below) == state // 2**33 % 2**30 * below // 2**30  # type: ignore[arg-type]

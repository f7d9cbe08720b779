"""Plans of drawn nets: what they cost, what no plan costs less than, and the rules they keep."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import astuple, replace
from types import SimpleNamespace

import numpy as np
import pymetis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

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


@examples(5, 60)
@given(floors())
def test_the_bound_is_at_most_the_least_and_that_at_most_what_is_found(floor: Floor) -> None:
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
    least, plan = cheapest(floor), found(floor)
    assert lower_bound(floor).bytes <= least <= cost(floor, plan)
    assert exact(floor, cost(floor, plan)).bound == least


@examples(15, 300)
@given(floors(columns=4, rows=3, most_units=9), st.integers(0, 99))
def test_the_cost_of_a_plan_is_that_of_its_steps(floor: Floor, seed: int) -> None:
    sites = random_sites(floor, seed)
    assert sites is not None
    assert floor.broken(sites) is None
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
def test_thirty_units_are_within_2_percent_of_the_exact_answer(seed: int) -> None:
    floor = drawn_tree(30, seed)
    assert cost(floor, found(floor)) <= 1.02 * lower_bound(floor).bytes


def test_one_seed_gives_one_plan() -> None:
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
    drawn = random.Random(seed)
    nets = [
        (source, drawn.sample([unit for unit in range(9) if unit != source], readers), size)
        for source in range(9)
        for readers, size in ((1 + source % 3, drawn.randrange(1, 400)),)
    ]
    floor = Floor.of(mesh, netlist(10, nets, on_edge=(1, 4, 5)), site_bytes)
    start = random_sites(floor, seed)
    assert start is not None
    monkeypatch.setattr("fabric.analysis.placing.annealing._MOVES_PER_UNIT", 36)
    told: list[str] = []
    assert (annealed(floor, start, seed, told.append), told) == definition.annealed(
        floor, start, seed, stage_moves=3
    )


@pytest.mark.parametrize(
    ("units", "rounds", "moves"), [(2, 8, 166), (60, 5, 5000), (400, 1, 33333), (2501, 1, 208333)]
)
def test_how_long_it_anneals(
    units: int, rounds: int, moves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, ...]] = []
    loop = SimpleNamespace(over=lambda **_: lambda *integers: calls.append(integers))
    monkeypatch.setattr("fabric.analysis.placing.annealing.anneal", loop)
    floor = Floor.of(Mesh(columns=4, rows=9, units_per_site=80), netlist(units, [(0, [1], 7)]))
    annealed(floor, [0] * units, 0, lambda _: None)
    assert len(calls) == 120 * rounds
    assert {integers[0] for integers in calls} == {moves}
    # From four hops of what a net carries to a hundredth of that.
    assert [calls[stage][1] for stage in (0, 118, 119)] == [28, int(28 * 0.01 ** (118 / 119)), 0]
    assert [calls[stage][2] for stage in (0, 59, 119)] == [9, 5, 1]


def test_what_has_no_nets_stays() -> None:
    for units in (1, 2):
        floor = Floor.of(Mesh(columns=2, rows=2), netlist(units, []))
        assert annealed(floor, [3] * units, 0, lambda _: None) == [3] * units


def test_units_without_nets_are_dealt_out() -> None:
    for units, columns, rows, sites in (
        (6, 3, 2, [0, 3, 1, 4, 2, 5]),
        (6, 2, 3, [0, 1, 2, 4, 3, 5]),
        (1, 3, 2, [1]),
        (1, 2, 2, [0]),
    ):
        floor = Floor.of(Mesh(columns=columns, rows=rows), netlist(units, []))
        assert partitioned(floor, 0) == sites
    # The fifth would be in the middle: it goes to the edge first, and others make way.
    nine = Floor.of(Mesh(columns=3, rows=3), netlist(9, [], on_edge=[5]))
    assert partitioned(nine, 0) == [0, 3, 6, 2, 5, 1, 7, 4, 8]


def test_what_needs_much_memory_chooses_first() -> None:
    units = netlist(8, []).units
    sizes = (10, 90, 20, 60, 50, 50, 100, 40)
    units = tuple(
        replace(unit, on_chip_bytes=size) for unit, size in zip(units, sizes, strict=True)
    )
    nets = replace(netlist(8, []), units=units)
    mesh = Mesh(columns=2, rows=2, units_per_site=3)
    # Two units want each site: 0 and 1 the first, 2 and 3 that below, and so on.
    assert partitioned(Floor.of(mesh, nets), 0) == [0, 0, 2, 2, 1, 1, 3, 3]
    assert partitioned(Floor.of(mesh, nets, 110), 0) == [1, 0, 0, 2, 1, 1, 3, 2]


def test_no_room_for_all_is_an_error() -> None:
    nets = netlist(5, [(0, [1], 1)])
    floor = Floor.of(Mesh(columns=2, rows=2, units_per_site=2), nets, 199)
    message = (
        "place: found no sites with room for all units of drawn: expected more memory than 199 "
        "bytes a site, or more sites"
    )
    with pytest.raises(ConfigurationError, match=message):
        partitioned(floor, 0)
    assert random_sites(floor, 0) is None


def test_a_random_plan_is_tried_twenty_times(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Sequence[int]] = []
    answers: list[list[int] | None] = [*[None] * 20, [2]]

    def settle(_: Floor, wanted: Sequence[int]) -> list[int] | None:
        tries.append(wanted)
        return answers.pop(0)

    floor = Floor.of(Mesh(columns=2, rows=2), netlist(1, []))
    monkeypatch.setattr("fabric.analysis.placing.annealing._settled", settle)
    assert random_sites(floor, 0) is None
    assert len(tries) == 20
    assert random_sites(floor, 0) == [2]
    assert len(tries) == 21


def test_the_nearest_site_may_be_far() -> None:
    floor = Floor.of(Mesh(columns=200, rows=2, units_per_site=1), netlist(400, []))
    for seed in range(3):
        assert sorted(random_sites(floor, seed) or ()) == [*range(400)]


def test_weights_of_a_cut_fit_in_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts: list[tuple[list[int], list[int], list[int], list[float]]] = []

    def part(_: int, graph: pymetis.CSRAdjacency, **given: list[int]) -> SimpleNamespace:
        parts: tuple[list[int], list[float]] = given["eweights"], [*map(float, given["tpwgts"])]
        cuts.append(([*graph.adj_starts], [*graph.adjacent], *parts))
        return SimpleNamespace(vertex_part=[0] * (len(graph.adj_starts) - 1))

    monkeypatch.setattr("pymetis.part_graph", part)
    mesh = Mesh(columns=3, rows=2, units_per_site=4)
    for size, weights in ((2**40, [2**20, 2**18]), (40, [40, 10])):
        cuts.clear()
        nets = [(0, [1], size), (1, [2, 3], size // 2), (2, [3], 1)]
        partitioned(Floor.of(mesh, netlist(4, nets)), 0)
        heavy, half = weights
        starts, ends, found, shares = cuts[0]
        assert starts == [0, 1, 4, 6, 8]
        assert ends == [1, 0, 2, 3, 1, 3, 1, 2]
        assert found == [heavy, heavy, half, half, half, 1, half, 1]
        assert shares == pytest.approx([1 / 3, 2 / 3])


def test_what_talks_much_is_on_one_die() -> None:
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
    # What is not whole is rounded up: 64 bytes a cycle by 20, and 7 cycles by 3.
    odd = replace(mesh, hop_cycles=3, crossing_cycles=7, crossing_bytes_per_cycle=20)
    assert astuple(replace(floor, mesh=odd).cost([0, 1])) == (3 * 7, 4 * 7)
    # A link without a limit is as wide as the widest.
    endless = replace(mesh, link_bytes_per_cycle=None)
    assert replace(floor, mesh=endless).cost([0, 1]).worst_link_bytes == 7


def test_memory_of_sites_is_kept() -> None:
    floor = Floor.of(
        Mesh(columns=2, rows=2, units_per_site=4), netlist(6, [(0, [1, 2, 3, 4, 5], 9)]), 200
    )
    plan = found(floor)
    assert floor.broken(plan) is None
    assert max(plan.count(site) for site in plan) == 2
    assert floor.broken([0, 0, 0, 1, 1, 2]) == "300 bytes on column 0, row 0"


def test_a_site_that_lacks_a_byte_is_full() -> None:
    nets = netlist(2, [(0, [1], 1000)])
    mesh = Mesh(columns=2, rows=2, units_per_site=2)
    for site_bytes, sites in ((199, 2), (200, 1)):
        floor = Floor.of(mesh, nets, site_bytes)
        assert len({*annealed(floor, [0, 1], 0, lambda _: None)}) == sites


def bound(each: int, nets: list[tuple[int, list[int], int]], units: int = 28) -> tuple[int, int]:
    return astuple(
        lower_bound(Floor.of(Mesh(columns=8, rows=8, units_per_site=each), netlist(units, nets)))
    )


def test_partners_of_one_unit_are_steps_away() -> None:
    sizes = [20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7]
    star = [(0, [unit], size) for unit, size in enumerate(sizes, 1)]
    one = sum(sizes[:4]) + 2 * sum(sizes[4:12]) + 3 * sum(sizes[12:])
    assert bound(1, star)[0] == one
    # The same with what comes in, and with two nets of one partner.
    turned = [(unit, [0], size) for _, (unit,), size in star]
    assert bound(1, turned)[0] == one
    assert bound(1, [*star[:7], *turned[7:], (0, [1], 1), (1, [0], 2)])[0] == one + 3
    # Two units a site: one is on the site, eight are a step away, and so on.
    assert bound(2, star)[0] == sum(sizes[1:9]) + 2 * sum(sizes[9:])
    # Five partners are too many for one step, and four not; a net beside them counts for itself.
    assert bound(1, star[:5])[0] == sum(sizes[:5]) + 16
    assert bound(1, star[:4])[0] == sum(sizes[:4])
    assert bound(1, [*star[:5], (20, [21], 3)])[0] == sum(sizes[:5]) + 16 + 3


def test_one_link_has_its_part_of_what_leaves_a_site() -> None:
    for each, sizes, worst in (
        (1, [9, 1, 1], 9),
        (1, [10, 10, 10, 10], 10),
        (1, [20, 19, 18, 17, 16], 17 + 16),
        (2, [99, 20, 19, 18, 17, 16], 17 + 16),
        (1, [10] * 9, 23),
        (3, [50, 40], 0),
        (2, [50, 40], 40),
    ):
        out = [(0, [unit], size) for unit, size in enumerate(sizes, 1)]
        into = [(unit, [0], size) for unit, size in enumerate(sizes, 1)]
        assert bound(each, out)[1] == bound(each, into)[1] == worst
        # What goes out and what comes in share no link.
        assert bound(each, [*out, *into])[1] == worst
        assert bound(each, [*out, *out])[1] == 2 * worst - (sizes == [10] * 9)


def test_nets_that_hang_together_leave_a_site() -> None:
    chain = [(0, [1], 10), (1, [2], 7), (2, [3], 5), (3, [4], 9)]
    assert bound(1, chain)[0] == 31
    assert bound(2, chain)[0] == 7 + 5
    assert bound(3, chain)[0] == 5
    assert bound(4, chain)[0] == 5
    assert bound(5, chain)[0] == 0
    # Those with most bytes are put together first, whatever that leaves apart.
    assert bound(2, [(0, [1], 5), (1, [2], 6), (2, [3], 6), (3, [4], 5)])[0] == 6
    assert bound(3, [(0, [1, 2], 10), (2, [3], 4), (4, [5], 99)])[0] == 4
    assert bound(2, [(0, [1], 10), (2, [3], 4)])[0] == 0


def test_nets_between_the_edge_and_the_rest() -> None:
    pairs = [
        (22, [0], 50),
        (1, [23], 20),
        (23, [2], 20),
        (24, [3], 30),
        (4, [25], 20),
        (26, [5], 10),
    ]
    same = [(6, [7], 1000), (20, [21], 1000)]
    mesh = Mesh(columns=3, rows=3, units_per_site=3)
    # 24 places on the edge are two more than the units that have to be there.
    for on_edge, least in ((range(22), 30 + 20 + 10), (range(20), 10), (range(23), 60)):
        floor = Floor.of(mesh, netlist(27, pairs + same, on_edge))
        assert lower_bound(floor).byte_hops == least, on_edge


def test_a_cheapest_plan_is_found() -> None:
    nets = netlist(3, [(0, [1, 2], 14), (1, [2], 21), (2, [0], 7)], on_edge=[2])
    for mesh, each, site_bytes in (
        (Mesh(columns=2, rows=2), 2, None),
        (Mesh(columns=2, rows=2), 2, 199),
        (Mesh(columns=3, rows=2), 1, None),
    ):
        floor = Floor.of(replace(mesh, units_per_site=each), nets, site_bytes)
        # A byte too little for two units is as if there were room for one.
        alone = floor if site_bytes is None else Floor.of(replace(mesh, units_per_site=1), nets)
        least = cheapest(alone)
        for known in (least + 7, 3 * least):
            answer = exact(floor, known)
            assert answer.sites is not None
            assert floor.broken(answer.sites) is None
            assert (cost(floor, answer.sites), answer.bound) == (least, least)
        assert exact(floor, least) == (None, least)


@pytest.mark.parametrize(("columns", "rows"), [(3, 2), (2, 3)])
def test_a_hub_is_in_the_middle(columns: int, rows: int) -> None:
    star = netlist(4, [(2, [0], 14), (2, [1], 21), (3, [2], 7)])
    floor = Floor.of(Mesh(columns=columns, rows=rows, units_per_site=1), star)
    answer = exact(floor, 14 + 21 + 7 + 21 + 7)
    assert answer.sites is not None
    assert (cost(floor, answer.sites), answer.bound) == (14 + 21 + 7 + 21,) * 2


@pytest.mark.parametrize(("columns", "rows"), [(2, 2), (3, 2), (3, 3), (4, 5)])
def test_a_hub_is_looked_for_in_a_quarter(
    columns: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def milp(*_: object, bounds: optimize.Bounds, **_more: object) -> object:
        asked.extend(bounds.ub)
        return optimize.OptimizeResult(status=2)

    monkeypatch.setattr(optimize, "milp", milp)
    mesh = Mesh(columns=columns, rows=rows, units_per_site=1)
    exact(Floor.of(mesh, netlist(4, [(2, [0], 14), (2, [1], 21), (3, [2], 7)])), 1000)

    of_hub = np.reshape(asked[2 * columns * rows : 3 * columns * rows], (rows, columns))
    assert (of_hub + of_hub[::-1] + of_hub[:, ::-1] + of_hub[::-1, ::-1] > 0).all()
    assert of_hub.sum() == -(-columns // 2) * -(-rows // 2)


def test_nets_with_more_units_than_a_site_leave_it() -> None:
    for each, readers, sites in ((2, 2, 2), (2, 3, 2), (2, 4, 3), (3, 2, 1), (3, 3, 2), (1, 2, 3)):
        nets = netlist(readers + 1, [(0, range(1, readers + 1), 10)])
        floor = Floor.of(Mesh(columns=3, rows=2, units_per_site=each), nets)
        assert lower_bound(floor).byte_hops == 10 * (sites - 1)


def test_what_breaks_a_rule_is_named() -> None:
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
    nets = netlist(given_["count"], [(0, [1], 1)])
    with pytest.raises(ConfigurationError, match=message):
        Floor.of(Mesh(columns=2, rows=2, units_per_site=2), nets, given_.get("site_bytes"))


def test_just_enough_room_is_enough() -> None:
    two = Mesh(columns=2, rows=2, units_per_site=2)
    nine = Mesh(columns=3, rows=3, units_per_site=1)
    for mesh, nets, site_bytes in (
        (two, netlist(8, []), None),
        (two, netlist(4, []), 100),
        (two, netlist(5, []), 125),
        (nine, netlist(9, [], on_edge=range(8)), None),
    ):
        assert Floor.of(mesh, nets, site_bytes).units_per_site == mesh.units_per_site
    # Where the mesh does not say how many a site holds, as few as leave room for all.
    for count, on_edge, each in ((9, 0, 1), (10, 0, 2), (9, 9, 2), (18, 16, 2), (18, 17, 3)):
        of_any = Floor.of(Mesh(columns=3, rows=3), netlist(count, [], on_edge=range(on_edge)))
        assert of_any.units_per_site == each


def test_the_edge_has_to_have_room() -> None:
    nets = netlist(9, [(0, [1], 1)], on_edge=range(9))
    with pytest.raises(
        ConfigurationError,
        match="9 units that use the HBM: expected at most 8, 1 on each of 8 sites on the edge",
    ):
        Floor.of(Mesh(columns=3, rows=3, units_per_site=1), nets)


@examples(20, 200)
@given(st.integers(0, 2**63 - 1), st.integers(1, 2**30))
def test_random_numbers_are_those_of_knuth(seed: int, below: int) -> None:
    memory, state = [seed], seed
    for _ in range(5):
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        assert _drawn(memory, below) == state // 2**33 % 2**30 * below // 2**30  # type: ignore[arg-type]

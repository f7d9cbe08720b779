"""Routes and trees of a mesh, and what is refused of one."""

from __future__ import annotations

import pytest

from fabric import Hop
from fabric.messages.telling.errors import ConfigurationError
from fabric.timing.network import Mesh, Site

DIES = Mesh(
    columns=4,
    rows=2,
    link_bytes_per_cycle=64,
    hop_cycles=2,
    die_columns=2,
    crossing_cycles=10,
    crossing_bytes_per_cycle=16,
)


def test_a_route_goes_along_the_row_first() -> None:
    """A route goes along the row first."""
    mesh = Mesh(columns=3, rows=3, hop_cycles=5, ends_cycles=2)
    route = mesh.route(Site(0, 0), Site(1, 2))
    # Injected at site 0, right from it, down from sites 1 and 4, absorbed at site 7.
    assert route.links == (4, 0, 6 * 1 + 2, 6 * 4 + 2, 6 * 7 + 5)
    assert route.cycles == 3 * 5 + 2


def test_there_and_back_take_other_links() -> None:
    """There and back take other links."""
    mesh = Mesh(columns=3, rows=3)
    there = mesh.route(Site(0, 0), Site(2, 1))
    back = mesh.route(Site(2, 1), Site(0, 0))
    assert there.cycles == back.cycles
    assert not {*there.links} & {*back.links}


def test_every_route_is_as_long_as_the_sites_are_apart() -> None:
    """Every route is as long as the sites are apart."""
    mesh = Mesh(columns=4, rows=3, hop_cycles=1)
    for source in mesh.sites:
        for target in mesh.sites:
            apart = abs(source.column - target.column) + abs(source.row - target.row)
            route = mesh.route(source, target)
            assert route.cycles == apart
            assert len({*route.links}) == apart + 2


def test_a_tree_takes_each_link_once() -> None:
    """A tree takes each link once."""
    mesh = Mesh(columns=4, rows=2)
    targets = [Site(3, 0), Site(3, 1), Site(2, 0)]
    tree = mesh.tree(Site(0, 0), targets)
    apart = [mesh.route(Site(0, 0), target) for target in targets]
    assert {*tree.links} == {link for route in apart for link in route.links}
    assert len(tree.links) == len({*tree.links})
    assert tree.cycles == max(route.cycles for route in apart)


def test_a_crossing_has_its_own_cycles_and_bytes() -> None:
    """A crossing has its own cycles and bytes."""
    route = DIES.route(Site(0, 0), Site(3, 0))
    assert route.cycles == 2 + 10 + 2
    limits = [DIES.capacities[link] for link in route.links]
    assert limits == [None, 64, 16, 64, None]


def test_the_edge_is_around_the_mesh() -> None:
    """The edge is around the mesh."""
    inner = {*Mesh(columns=4, rows=3).sites} - {*Mesh(columns=4, rows=3).edge}
    assert inner == {Site(1, 1), Site(2, 1)}
    assert [*Mesh(columns=2, rows=2).edge] == [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"rows": 1}, "rows"),
        ({"link_bytes_per_cycle": 0}, "link_bytes_per_cycle"),
        ({"die_columns": 3}, "die_columns is 3: expected a divisor of columns, 4"),
        ({"die_rows": 2}, "crossing_cycles is missing"),
        ({"die_rows": 2, "die_columns": 2}, "from die to die, of which there are 4$"),
        ({"die_rows": 3}, "die_rows is 3: expected a divisor of rows, 4"),
        ({"crossing_cycles": 5}, "all sites are on one die"),
        ({"crossing_bytes_per_cycle": 5}, "all sites are on one die"),
        ({"die_columns": 4, "die_rows": 4, "crossing_cycles": 5}, "all sites are on one die"),
    ],
)
def test_what_is_refused(values: dict[str, int], told: str) -> None:
    """What is refused says what was expected."""
    with pytest.raises(ConfigurationError, match=told):
        Mesh(**{"columns": 4, "rows": 4, **values})


def test_a_site_beside_the_mesh_is_named() -> None:
    """A site beside the mesh is named."""
    with pytest.raises(ConfigurationError, match="site 4,0: expected a column below 4"):
        DIES.route(Site(0, 0), Site(4, 0))
    for site in (Site(0, 2), Site(-1, 0), Site(0, -1)):
        with pytest.raises(ConfigurationError, match=r"below 4 and a row below 2$"):
            DIES.route(Site(0, 0), site)


def test_links_have_names() -> None:
    """Links have names: where they come from and lead to, or what they do at a site."""
    links = {4: "out of 0,0", 5: "into 0,0", 6: "1,0 -> 2,0", 7: "1,0 -> 0,0", 8: "1,0 -> 1,1"}
    links |= {6 * 5 + 3: "1,1 -> 1,0", 6 * 7 + 4: "out of 3,1", 6 * 7 + 5: "into 3,1"}
    assert {link: DIES.link_name(link) for link in links} == links
    # Left from site 5 and from site 4, then up from site 3.
    back = Mesh(columns=3, rows=3).route(Site(2, 1), Site(0, 0))
    assert back.links == (6 * 5 + 4, 6 * 5 + 1, 6 * 4 + 1, 6 * 3 + 3, 5)


def test_dies_of_rows() -> None:
    """Dies of rows: a way to the next one has the crossing's cycles, and no limit of its own."""
    mesh = Mesh(columns=2, rows=4, die_rows=2, crossing_cycles=7, link_bytes_per_cycle=8)
    route = mesh.route(Site(0, 0), Site(1, 3))
    assert route.cycles == 1 + 1 + 7 + 1
    assert [mesh.capacities[link] for link in route.links] == [None, 8, 8, None, 8, None]
    assert not mesh.crosses(Site(0, 0), Site(1, 1))


def test_what_limits() -> None:
    """What limits: a capacity of any kind of link."""
    crossing = Mesh(columns=4, rows=2, die_columns=2, crossing_cycles=1, crossing_bytes_per_cycle=4)
    assert crossing.limits
    assert Mesh(columns=2, rows=2, injection_bytes_per_cycle=1).limits
    assert not Mesh(columns=2, rows=2, hop_cycles=9).limits


@pytest.mark.parametrize("text", ["3+4", "1+1", "10+200"])
def test_hops_as_text(text: str) -> None:
    """A hop is written as it is read: forward and back."""
    forward, backward = map(int, text.split("+"))
    assert Hop.parse(text) == Hop(forward, backward)
    assert str(Hop(forward, backward)) == text


@pytest.mark.parametrize("text", ["0+1", "1+0", "3", "3+", "a+1", "3+4+5", "-1+2"])
def test_no_hops(text: str) -> None:
    """A hop takes a cycle at least in each direction."""
    with pytest.raises(ConfigurationError, match="forward and back, each an integer from 1"):
        Hop.parse(text)

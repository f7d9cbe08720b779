from __future__ import annotations

import pytest

from fabric.graph.hardware.latency import Mesh, Site
from fabric.messages.errors import ConfigurationError

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
    mesh = Mesh(columns=3, rows=3, hop_cycles=5, ends_cycles=2)
    route = mesh.route(Site(0, 0), Site(1, 2))
    # Injected at site 0, right from it, down from sites 1 and 4, absorbed at site 7.
    assert route.links == (4, 0, 6 * 1 + 2, 6 * 4 + 2, 6 * 7 + 5)
    assert route.cycles == 3 * 5 + 2


def test_every_route_is_as_long_as_the_sites_are_apart() -> None:
    mesh = Mesh(columns=4, rows=3, hop_cycles=1)
    for source in mesh.sites:
        for target in mesh.sites:
            apart = abs(source.column - target.column) + abs(source.row - target.row)
            route = mesh.route(source, target)
            assert route.cycles == apart
            assert len({*route.links}) == apart + 2


def test_a_tree_takes_each_link_once() -> None:
    mesh = Mesh(columns=4, rows=2)
    targets = [Site(3, 0), Site(3, 1), Site(2, 0)]
    tree = mesh.tree(Site(0, 0), targets)
    apart = [mesh.route(Site(0, 0), target) for target in targets]
    assert {*tree.links} == {link for route in apart for link in route.links}
    assert len(tree.links) == len({*tree.links})
    assert tree.cycles == max(route.cycles for route in apart)


def test_a_crossing_has_its_own_cycles_and_bytes() -> None:
    route = DIES.route(Site(0, 0), Site(3, 0))
    assert route.cycles == 2 + 10 + 2
    limits = [DIES.capacities[link] for link in route.links]
    assert limits == [None, 64, 16, 64, None]


def test_a_site_beside_the_mesh_is_named() -> None:
    with pytest.raises(ConfigurationError, match="site 4,0: expected a column below 4"):
        DIES.route(Site(0, 0), Site(4, 0))
    for site in (Site(0, 2), Site(-1, 0), Site(0, -1)):
        with pytest.raises(ConfigurationError, match=r"below 4 and a row below 2$"):
            DIES.route(Site(0, 0), site)

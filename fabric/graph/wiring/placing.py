"""Placement of units on the sites of a mesh: as the user states it, or row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fabric.graph.hardware.latency import Mesh, Site
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.sites import Floor, Placement, read_placement
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import close_to, counted

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.graph.wiring.operator import Node

_NAMED: Final = 5
"""The most units that a message names."""


def placed(plan: Plan, placement: Path | str | None) -> Plan:
    """Return ``plan`` with a site for each unit, if its hardware has a network.

    Sites are taken from the plan, else from the file ``placement``, else from the program. If none
    states sites, units are placed ``by_rows``.
    """
    mesh = plan.program.hardware.network
    if plan.floor is not None:
        return plan
    if mesh is None:
        if placement is None:
            return plan
        raise ConfigurationError(
            f"placement {placement}: the hardware has no sites: expected [network] in its file"
        )
    stated = plan.program.placement
    if placement is not None:
        stated = read_placement(placement)
    if stated is None:
        by_rule = by_rows(mesh, plan.nodes, frozenset(plan.program.nodes))
        return plan._replace(floor=Floor(mesh, by_rule, None))
    _check(stated, mesh, plan)
    return plan._replace(floor=Floor(mesh, stated.units, stated))


def by_rows(mesh: Mesh, nodes: Sequence[Node], named: frozenset[Node]) -> dict[str, Site]:
    """Return sites for the ``named`` nodes: off-chip operators at the edge, others row by row.

    Off-chip operators are spread over the edge. Other units fill the sites in node order.
    """
    units = [node for node in nodes if node in named]
    ports = [node for node in units if node.operator.off_chip is not None]
    others = [node for node in units if node.operator.off_chip is None]
    edge, sites = mesh.edge, mesh.sites
    site_of: dict[str, Site] = {}
    for number, node in enumerate(ports):
        site_of[node.name] = edge[number * len(edge) // max(len(ports), len(edge))]
    held = Counter(site_of.values())
    most = max([-(-len(units) // len(sites)), *held.values()])
    room = mesh.units_per_site
    if room is not None and most > room:
        raise ConfigurationError(
            f"[network] units_per_site is {room}: expected at least {most}, for "
            f"{counted(len(ports), 'off-chip operator')} on the {counted(len(edge), 'site')} of "
            f"the edge and {counted(len(others), 'other unit')} on {counted(len(sites), 'site')}"
        )
    free = (site for site in sites for _ in range(most - held[site]))
    for node in others:
        site_of[node.name] = next(free)
    return site_of


def _check(placement: Placement, mesh: Mesh, plan: Plan) -> None:
    program = plan.program
    if placement.program != program.name:
        raise placement.refuse(
            f"a placement of program {placement.program!r}: expected program {program.name!r}",
            "program",
        )
    nodes = {node.name: node for node in plan.nodes}
    for name, site in placement.units.items():
        found = f"{name} is at {[*site]}"
        if name not in nodes:
            found = f"{name} is not a unit of {program.name!r}"
            expected = close_to(sorted(nodes), name)
        elif site not in mesh.sites:
            expected = f"a column below {mesh.columns} and a row below {mesh.rows}"
        elif nodes[name].operator.off_chip is not None and site not in mesh.edge:
            expected = "a site of the edge for an off-chip operator"
        else:
            continue
        raise placement.refuse(f"{found}: expected {expected}", "units", name)
    missing = [node.name for node in program.nodes if node.name not in placement.units]
    if missing:
        more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
        raise placement.refuse(
            f"{', '.join(missing[:_NAMED])}{more} of {program.name!r}: expected a site, "
            "[column, row], for each unit",
            "units",
        )
    if mesh.units_per_site is not None:
        _check_room(placement, mesh.units_per_site, program.nodes)


def _check_room(placement: Placement, room: int, nodes: Sequence[Node]) -> None:
    at: dict[Site, list[str]] = {}
    for node in nodes:
        names = at.setdefault(placement.units[node.name], [])
        names.append(node.name)
        if len(names) > room:
            others = f"{', '.join(names[:room][:_NAMED])} {'is' if room == 1 else 'are'}"
            expected = f"at most {counted(room, 'unit')}, as [network] units_per_site says"
            found = f"{node.name} is at {[*placement.units[node.name]]}, where {others}"
            raise placement.refuse(f"{found}: expected {expected}", "units", node.name)

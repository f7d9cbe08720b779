"""Floor plans of programs: partition, annealing, and bounds of the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from fabric.analysis.placing.annealing import annealed, partitioned, random_sites
from fabric.analysis.placing.bound import MOST_UNITS, exact, lower_bound
from fabric.analysis.placing.floor import Floor, netlist_of
from fabric.analysis.placing.result import FloorPlan, LoadedLink
from fabric.graph.arguments.described import checked, refuse
from fabric.graph.hardware.latency import Mesh
from fabric.graph.wiring.collector import only_young_garbage
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.program import Program
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import counted
from fabric.messages.users_code import users_code, users_values

_RANDOM_PLANS: Final = 8


@checked
@users_values()
@only_young_garbage()
def place(
    program: Program,
    mesh: Mesh | None = None,
    *,
    site_bytes: int | None = None,
    sizes: Mapping[str, int | Fraction] | None = None,
    seed: int = 0,
    exactly: bool = False,
    notify: Callable[[str], object] | None = None,
) -> FloorPlan:
    """Find sites for the units of ``program`` at a low sum of bytes times links.

    The cost of a plan is the bytes of each channel times the links that they cross, plus the bytes
    of the busiest link. A Broadcast is a tree. Bytes are computed before a run, from the types.

    Args:
        program: complete; it does not run.
        mesh: by default the mesh of the program's hardware.
        site_bytes: on-chip memory for all units of a site; by default the mesh's.
        sizes: numbers for symbols by name, like ``check --set``; the mean over its groups for a
            ragged symbol. They override the program's sizes.
        seed: of the random numbers; equal seeds give equal plans.
        exactly: search for a cheapest plan, for at most 30 units.
        notify: called with a line of progress.

    Raises:
        ProgramError: the program is not complete.
        ConfigurationError: without a mesh, without room for all units, or if an extra is not
            installed.
    """
    mesh = mesh or program.hardware.network
    if mesh is None:
        refuse(
            "place: the hardware has no sites: expected [network] in its file, as in "
            "mesh_paper.toml, or a mesh",
            ConfigurationError,
        )
    if site_bytes is not None and site_bytes < 0:
        refuse(f"place: site_bytes is {site_bytes}: expected at least 0", ConfigurationError)
    site_bytes = mesh.site_bytes if site_bytes is None else site_bytes
    plan = elaborate(program)
    netlist = netlist_of(plan, sizes)
    if exactly and len(netlist.units) > MOST_UNITS:
        refuse(
            f"place: an exact plan of {netlist.program} with "
            f"{counted(len(netlist.units), 'unit')}: expected at most {MOST_UNITS}",
            ConfigurationError,
        )
    floor = Floor.of(mesh, netlist, site_bytes)
    sites = annealed(
        floor,
        partitioned(floor, seed),
        seed,
        (lambda _: None) if notify is None else users_code("notify")(notify),
    )
    bound = lower_bound(floor)
    bound_bytes = bound.bytes
    if exactly:
        cheapest, bound_bytes = exact(floor, floor.cost(sites).bytes)
        sites = cheapest or sites
    cost = floor.cost(sites)
    broken_rule = floor.broken_rule(sites)
    assert broken_rule is None, broken_rule
    sites_by_name = {
        name: mesh.sites[site]
        for unit, site in zip(netlist.units, sites, strict=True)
        for name in (unit.name, *unit.follows)
    }
    return FloorPlan(
        program=netlist.program,
        mesh=mesh,
        sites={node.name: sites_by_name[node.name] for node in plan.nodes},
        units_per_site=floor.units_per_site,
        site_bytes=site_bytes,
        seed=seed,
        method="exact" if exactly else "annealed",
        proven=cost.bytes <= bound_bytes,
        cost=cost,
        random_cost_bytes=_random_cost(floor, seed),
        lower_bound=bound,
        lower_bound_bytes=bound_bytes,
        unknown_channels=netlist.unknown_channels,
        worst=_worst(floor, sites),
        floor=floor,
        numbers=tuple(sites),
    )


def _random_cost(floor: Floor, seed: int) -> int | None:
    plans = [random_sites(floor, seed * _RANDOM_PLANS + number) for number in range(_RANDOM_PLANS)]
    costs = [floor.cost(plan).bytes for plan in plans if plan is not None]
    return sum(costs) // len(costs) if costs else None


def _worst(floor: Floor, sites: Sequence[int]) -> LoadedLink | None:
    loads = floor.link_bytes(sites)
    weighed = [load * weight for load, weight in zip(loads, floor.weights, strict=True)]
    most = max(weighed)
    if not most:
        return None
    link = weighed.index(most)
    units = floor.netlist.units
    users: Counter[str] = Counter()
    for net in floor.netlist.nets:
        if link in floor.links(net, sites):
            readers = ", ".join(units[unit].name for unit in net.targets)
            users[f"{units[net.source].name} -> {readers}"] += net.size_bytes
    ends = floor.mesh.link_ends[link]
    assert ends is not None
    return LoadedLink(*ends, loads[link], dict(users.most_common()))

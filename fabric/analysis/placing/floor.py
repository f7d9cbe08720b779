"""Units and nets of a floor plan, the sites of a mesh, and the cost of a plan.

A net is the output of a unit. An inferred Broadcast belongs to its net and shares the site of its
producer; one tree of links reaches all its readers.

The cost is in bytes: the bytes of each net times the hops of its route (each link of a tree once),
plus the bytes of the worst link. A crossing between dies counts as the number of hops that take as
long. For the worst link, the bytes of each link are multiplied by the width of the widest link,
divided by the width of this link.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NoReturn

from fabric.analysis.symbolic.metrics import metrics_of, passed_bytes
from fabric.analysis.symbolic.substitution import Size, Substitution, chosen_sizes
from fabric.graph.hardware.latency import Mesh, Site
from fabric.graph.values.dims import Dim, free_symbols
from fabric.graph.values.expression import Symbol
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.operator import Node
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import counted


@dataclass(frozen=True)
class Unit:
    """A unit that needs a site."""

    name: str
    kind: str
    on_edge: bool  # a client of the off-chip memory, which has its ports on the edge
    on_chip_bytes: int  # with the sizes of ``check`` if they depend on data
    follows: tuple[str, ...] = ()  # names of the Broadcasts that share its site


@dataclass(frozen=True)
class Net:
    """The output of a unit."""

    source: int
    targets: tuple[int, ...]  # the numbers of the reading units, each once
    size_bytes: int  # in a run, counted once for all readers


@dataclass(frozen=True)
class Netlist:
    """The units of a program, and the nets between different units."""

    program: str
    units: tuple[Unit, ...]
    nets: tuple[Net, ...]
    unknown_channels: int  # number of channels with data-dependent bytes


def netlist_of(plan: Plan, given: Mapping[str, Size] | None = None) -> Netlist:
    """Return the units of ``plan`` and the nets between them; unknown sizes count as 1.

    ``given``: sizes of symbols by name; they override the program's.
    """
    sizes = _with_claims(plan, chosen_sizes(plan, given or {}, data=True))
    substitution = Substitution(sizes)
    needed = [metrics.costs.on_chip_bytes for metrics in metrics_of(plan, substitution).operators]
    follows: dict[Node, list[str]] = {node: [] for node in plan.program.nodes}
    into = {edge.consumer: edge for edge in plan.edges if edge.consumer not in follows}

    def unit_output(node: Node, output: int) -> tuple[Node, int]:
        """Return the output of a unit that inferred Broadcasts copy to ``output`` of ``node``."""
        while node not in follows:
            node, output = into[node].producer, into[node].output
        return node, output

    for node in into:
        follows[unit_output(node, 0)[0]].append(node.name)
    numbers = {node: number for number, node in enumerate(sorted(follows, key=lambda n: n.index))}
    units = tuple(
        Unit(
            node.name,
            node.operator.kind,
            node.operator.off_chip is not None,
            _number(needed[node.index])[0],
            tuple(follows[node]),
        )
        for node in numbers
    )
    unknown = 0
    readers: dict[tuple[Node, int], tuple[int, dict[int, None]]] = {}
    for edge in plan.edges:
        stream = substitution.stream(edge.type)
        size_bytes, is_known = _number(stream.count * passed_bytes(stream.value))
        unknown += not is_known
        if edge.consumer in follows:
            output = unit_output(edge.producer, edge.output)
            _, targets = readers.setdefault(output, (size_bytes, {}))
            if edge.consumer is not output[0]:
                targets.setdefault(numbers[edge.consumer])
    nets = tuple(
        Net(numbers[node], tuple(targets), size_bytes)
        for (node, _), (size_bytes, targets) in readers.items()
        if targets and size_bytes
    )
    return Netlist(plan.program.name, units, nets, unknown)


def _with_claims(plan: Plan, sizes: dict[Symbol, Size]) -> dict[Symbol, Size]:
    """Add the sizes that the program assumes for symbols without a size."""
    known = dict(sizes)
    for edge in plan.edges:
        for claim in edge.claims:
            if isinstance(claim.found, Symbol) and claim.found not in known:
                assumed = Substitution(known).dim(claim.assumed)
                if isinstance(assumed, int | Fraction):
                    known[claim.found] = assumed
    return known


def _number(dim: Dim) -> tuple[int, bool]:
    unknown = free_symbols(dim)
    if unknown:
        dim = Substitution(dict.fromkeys(unknown, 1)).dim(dim)
    assert isinstance(dim, int | Fraction), dim
    return math.ceil(dim), not unknown


@dataclass(frozen=True)
class Cost:
    """The cost of a plan: byte hops, and the bytes of the worst link weighed by its width."""

    byte_hops: int
    worst_link_bytes: int

    @property
    def bytes(self) -> int:
        """The sum, which is minimised."""
        return self.byte_hops + self.worst_link_bytes


@dataclass(frozen=True)
class Floor:
    """The sites for the units of a netlist.

    Units that use the off-chip memory are on the edge of the mesh, next to its ports.
    """

    mesh: Mesh
    netlist: Netlist
    units_per_site: int
    site_bytes: int | None = None  # memory for all units of a site; None if unlimited

    @staticmethod
    def of(mesh: Mesh, netlist: Netlist, site_bytes: int | None = None) -> Floor:
        """Return the floor for ``netlist``.

        A mesh without a number of units per site gets the smallest sufficient one.
        """
        units = netlist.units
        edge, on_edge = len(mesh.edge), sum(unit.on_edge for unit in units)
        sites = mesh.columns * mesh.rows
        least = max(-(-len(units) // sites), -(-on_edge // edge))
        units_per_site = least if mesh.units_per_site is None else mesh.units_per_site
        if units_per_site * sites < len(units):
            _refuse(netlist, counted(len(units), "unit"), units_per_site, sites)
        if units_per_site * edge < on_edge:
            what = f"{counted(on_edge, 'unit')} that use the HBM"
            _refuse(netlist, what, units_per_site, edge, " on the edge")
        if site_bytes is not None:
            largest = max(units, key=lambda unit: unit.on_chip_bytes)
            if largest.on_chip_bytes > site_bytes:
                raise ConfigurationError(
                    f"place: {largest.name} needs {counted(largest.on_chip_bytes, 'byte')} of "
                    f"on-chip memory: expected at most {site_bytes:,}, the memory of a site"
                )
            needed = sum(unit.on_chip_bytes for unit in units)
            if needed > site_bytes * sites:
                raise ConfigurationError(
                    f"place: the units of {netlist.program} need {counted(needed, 'byte')} of "
                    f"on-chip memory: expected at most {site_bytes * sites:,}, the memory "
                    f"of {counted(sites, 'site')}"
                )
        return Floor(mesh, netlist, units_per_site, site_bytes)

    @cached_property
    def is_edge(self) -> tuple[bool, ...]:
        """Whether each site is on the edge, in the order of sites."""
        edge = {*self.mesh.edge}
        return tuple(site in edge for site in self.mesh.sites)

    @cached_property
    def hops(self) -> tuple[int, ...]:
        """The hops that each link counts as, in the order of links; 0 for links inside a site."""
        mesh = self.mesh
        crossing = -(-(mesh.crossing_cycles or 0) // mesh.hop_cycles)
        return tuple(
            0 if ends is None else crossing if mesh.crosses(*ends) else 1 for ends in mesh.link_ends
        )

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Width of the widest link divided by each link's width; 0 for links inside a site."""
        links = [*zip(self.mesh.link_ends, self.mesh.capacities, strict=True)]
        widest = max((width for ends, width in links if ends is not None and width), default=1)
        return tuple(
            0 if ends is None else -(-widest // (width or widest)) for ends, width in links
        )

    def links(self, net: Net, sites: Sequence[int]) -> Sequence[int]:
        """Return the links that ``net`` takes with units on ``sites``."""
        at, source = self.mesh.sites, sites[net.source]
        targets = [at[sites[unit]] for unit in net.targets if sites[unit] != source]
        return self.mesh.tree(at[source], targets).links if targets else ()

    def link_bytes(self, sites: Sequence[int]) -> list[int]:
        """Return the bytes on each link, in the order of links, with units on ``sites``."""
        loads = [0] * len(self.hops)
        for net in self.netlist.nets:
            for link in self.links(net, sites):
                loads[link] += net.size_bytes
        return loads

    def cost(self, sites: Sequence[int]) -> Cost:
        loads = self.link_bytes(sites)
        return Cost(
            sum(map(math.prod, zip(loads, self.hops, strict=True))),
            max(map(math.prod, zip(loads, self.weights, strict=True))),
        )

    def broken_rule(self, sites: Sequence[int]) -> str | None:
        """Return a breach of a rule, such as ``3 units on column 0, row 1``; None without one."""
        units = self.netlist.units
        for number in range(len(self.is_edge)):
            here = [unit for unit, site in zip(units, sites, strict=True) if site == number]
            site = self.mesh.sites[number]
            needed = sum(unit.on_chip_bytes for unit in here)
            if len(here) > self.units_per_site:
                return f"{counted(len(here), 'unit')} on {site_text(site)}"
            if self.site_bytes is not None and needed > self.site_bytes:
                return f"{counted(needed, 'byte')} on {site_text(site)}"
            for unit in here:
                if unit.on_edge and not self.is_edge[number]:
                    return f"{unit.name} on {site_text(site)}, off the edge"
        return None


def site_text(site: Site) -> str:
    return f"column {site.column}, row {site.row}"


def _refuse(
    netlist: Netlist, what: str, units_per_site: int, sites: int, where: str = ""
) -> NoReturn:
    raise ConfigurationError(
        f"place: {netlist.program} has {what}: expected at most {units_per_site * sites:,}, "
        f"{units_per_site:,} on each of {counted(sites, 'site')}{where}"
    )

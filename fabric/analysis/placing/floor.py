"""A floor: the sites of a mesh, how many units each holds, and what a plan costs on it.

The cost is in bytes: those of each net times the hops of its way (of a tree each link once), plus
those of the worst link. A crossing between dies counts as the hops that its cycles are, and on a
link that is narrower than others its bytes weigh more by as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from fabric.analysis.placing.netlist import Netlist
from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import counted
from fabric.timing.network import Mesh, Site

__all__ = ["Cost", "Floor"]


@dataclass(frozen=True)
class Cost:
    """What a plan costs.

    Attributes:
        byte_hops: of all nets.
        worst_link_bytes: of the link with most of them, weighed by its width.
    """

    byte_hops: int
    worst_link_bytes: int

    @property
    def bytes(self) -> int:
        """Both together: what is minimised."""
        return self.byte_hops + self.worst_link_bytes


@dataclass(frozen=True)
class Floor:
    """Where units of a netlist may be.

    Units that use the off-chip memory are on the edge of the mesh, where its ports are.

    Attributes:
        mesh: of sites.
        netlist: what is placed.
        units_per_site: at most.
        site_bytes: of memory that the units of a site may need together; None for any number.
    """

    mesh: Mesh
    netlist: Netlist
    units_per_site: int
    site_bytes: int | None = None

    @staticmethod
    def of(
        mesh: Mesh,
        netlist: Netlist,
        site_bytes: int | None = None,
    ) -> Floor:
        """Return the floor for ``netlist``.

        Args:
            mesh: of sites; where it does not say how many units one holds, as few as leave room
                for all.
            netlist: what is placed.
            site_bytes: see ``Floor``.

        Raises:
            ConfigurationError: there is no room for all units.
        """
        units = netlist.units
        edge, on_edge = len(mesh.edge), sum(each.on_edge for each in units)
        sites = mesh.columns * mesh.rows
        least = max(-(-len(units) // sites), -(-on_edge // edge))
        units_per_site = least if mesh.units_per_site is None else mesh.units_per_site
        if units_per_site * sites < len(units):
            _refuse(netlist, counted(len(units), "unit"), sites, "site", units_per_site)
        if units_per_site * edge < on_edge:
            what = f"{counted(on_edge, 'unit')} that use the HBM"
            _refuse(netlist, what, edge, "site on the edge", units_per_site, "sites on the edge")
        if site_bytes is not None:
            largest = max(units, key=lambda each: each.on_chip_bytes)
            if largest.on_chip_bytes > site_bytes:
                raise ConfigurationError(
                    f"place: {largest.name} needs {counted(largest.on_chip_bytes, 'byte')} of "
                    f"on-chip memory: expected at most {site_bytes:,}, those of a site"
                )
            needed = sum(each.on_chip_bytes for each in units)
            if needed > site_bytes * sites:
                raise ConfigurationError(
                    f"place: the units of {netlist.program} need {counted(needed, 'byte')} of "
                    f"on-chip memory: expected at most {site_bytes * sites:,}, those of "
                    f"{counted(sites, 'site')}"
                )
        return Floor(mesh, netlist, units_per_site, site_bytes)

    @cached_property
    def is_edge(self) -> tuple[bool, ...]:
        """Of each site, whether it is on the edge."""
        edge = {*self.mesh.edge}
        return tuple(site in edge for site in self.mesh.sites)

    @cached_property
    def hops(self) -> tuple[int, ...]:
        """Of each link by its number in the mesh: what a byte on it counts; 0 at both ends."""
        mesh = self.mesh
        crossing = -(-(mesh.crossing_cycles or 0) // mesh.hop_cycles)
        return tuple(
            0 if ends is None else crossing if mesh.crosses(*ends) else 1 for ends in mesh.link_ends
        )

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Of each link: by how much it is narrower than the widest one; 0 at both ends."""
        links = [*zip(self.mesh.link_ends, self.mesh.capacities, strict=True)]
        widest = max((each for ends, each in links if ends is not None and each), default=1)
        return tuple(
            0 if ends is None else -(-widest // (capacity or widest)) for ends, capacity in links
        )

    def link_bytes(self, sites: Sequence[int]) -> list[int]:
        """Return the bytes on each link by its number, with units on ``sites``."""
        found = [0] * len(self.hops)
        at = self.mesh.sites
        for net in self.netlist.nets:
            others = [at[sites[unit]] for unit in net.targets if sites[unit] != sites[net.source]]
            if others:
                for link in self.mesh.tree(at[sites[net.source]], others).links:
                    found[link] += net.size_bytes
        return found

    def cost(self, sites: Sequence[int]) -> Cost:
        """Return what a plan costs.

        Args:
            sites: of each unit, the number of its site.
        """
        loads = self.link_bytes(sites)
        return Cost(
            sum(map(math.prod, zip(loads, self.hops, strict=True))),
            max(map(math.prod, zip(loads, self.weights, strict=True))),
        )

    def broken(self, sites: Sequence[int]) -> str | None:
        """Return what rule a plan breaks, in words; None where it keeps all."""
        units = self.netlist.units
        for number in range(len(self.is_edge)):
            here = [unit for unit, site in zip(units, sites, strict=True) if site == number]
            site = self.mesh.sites[number]
            needed = sum(unit.on_chip_bytes for unit in here)
            if len(here) > self.units_per_site:
                return f"{counted(len(here), 'unit')} on {_text(site)}"
            if self.site_bytes is not None and needed > self.site_bytes:
                return f"{counted(needed, 'byte')} on {_text(site)}"
            for unit in here:
                if unit.on_edge and not self.is_edge[number]:
                    return f"{unit.name} on {_text(site)}, off the edge"
        return None


def _text(site: Site) -> str:
    return f"column {site.column}, row {site.row}"


def _refuse(
    netlist: Netlist, what: str, sites: int, one: str, units_per_site: int, many: str = "sites"
) -> NoReturn:
    where = f"1 {one}" if sites == 1 else f"{sites:,} {many}"
    raise ConfigurationError(
        f"place: {netlist.program} has {what}: expected at most {units_per_site * sites:,}, "
        f"{units_per_site:,} on each of {where}"
    )

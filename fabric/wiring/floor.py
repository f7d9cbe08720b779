"""Where the units of a program are on a mesh, and which way an element goes from one to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fabric.hardware.mesh import Mesh, Site
    from fabric.wiring.operator import Node
    from fabric.wiring.stream import Producer

__all__ = ["Floor"]


class Floor(NamedTuple):
    """Sites of units.

    A unit that the program does not name, as an inferred Broadcast, is where its producer is
    unless it has a site of its own.

    Attributes:
        mesh: of sites.
        sites: of units, by name.
        file: that says so; None where it is the rule for what nobody places.
        lines: of that file, by the names of units; see ``Placement``.
    """

    mesh: Mesh
    sites: Mapping[str, Site]
    file: str | None
    lines: Mapping[str, int]

    def site_of(self, node: Node) -> Site:
        """Return the site of a unit of the program, or of one that was inferred."""
        at: Producer = node
        while at.name not in self.sites:
            producer = at.inputs[0].resolve().node
            assert producer is not None
            at = producer
        return self.sites[at.name]

    def units_at(self, nodes: Sequence[Node]) -> Iterator[tuple[Site, list[Node]]]:
        """Yield the sites, row by row, and which of ``nodes`` are there."""
        found: dict[Site, list[Node]] = {site: [] for site in self.mesh.sites}
        for node in nodes:
            found[self.site_of(node)].append(node)
        yield from found.items()

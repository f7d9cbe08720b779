"""What went over the links of a mesh in a run, and who waited for it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LinkUse", "NetworkUse", "RouteUse"]


@dataclass(frozen=True)
class RouteUse:
    """A channel between two sites.

    Attributes:
        channel: its name.
        source, target: the sites of its units, column and row.
        hop_cycles: from a send until the element can be seen, where no link holds it up.
        bytes: sent; None where no link of the route is limited, and nobody counts.
        links_cycles: its consumer waited for links that were taken, beyond the hop; part of the
            channel's ``empty_cycles``.
    """

    channel: str
    source: tuple[int, ...]
    target: tuple[int, ...]
    hop_cycles: int
    bytes: int | None
    links_cycles: int


@dataclass(frozen=True)
class LinkUse:
    """A link that something went over.

    Attributes:
        name: ``0,0 -> 1,0``, ``out of 0,0`` or ``into 0,0``.
        bytes: that went over it; what a Broadcast sends once for all its readers.
        bytes_per_cycle: that it could carry; None for any number.
        channels: whose elements went over it, by name.
    """

    name: str
    bytes: int
    bytes_per_cycle: int | None
    channels: tuple[str, ...]

    def share(self, cycles: int) -> float | None:
        """Return which part of what it could carry in ``cycles`` it did."""
        if self.bytes_per_cycle is None or not cycles:
            return None
        return self.bytes / (self.bytes_per_cycle * cycles)


@dataclass(frozen=True)
class NetworkUse:
    """A run's use of its network.

    Attributes:
        placement: the file that says where units are; None where they are put row by row.
        sites: that have units.
        most_units: of one site, those that the program names.
        routes: channels between two sites, in edge order.
        links: that were used, in their order.
    """

    placement: str | None
    sites: int
    most_units: int
    routes: tuple[RouteUse, ...]
    links: tuple[LinkUse, ...]

    @property
    def links_cycles(self) -> int:
        """Cycles of all consumers that waited for links."""
        return sum(route.links_cycles for route in self.routes)

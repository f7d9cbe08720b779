"""The latency of a channel: stated in cycles, or computed from a route on a mesh of sites.

Routes are dimension-ordered (first along the row), which cannot deadlock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Final, NamedTuple

from typing_extensions import override

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Described, Section
from fabric.graph.arguments.numbers import NUMBER, number_of
from fabric.messages.errors import ConfigurationError, FabricError

_TEXT: Final = re.compile(rf"({NUMBER})\+({NUMBER})", re.ASCII)

MOST_HOP_CYCLES: Final = 999_999_999


@dataclass(frozen=True)
class Hop(Described):
    """The latency of a channel, in cycles forward and back, each at least 1.

    Attributes:
        forward_cycles: from the sending of an element to the cycle in which it is visible.
        backward_cycles: from a dequeue to the cycle in which the producer can use the credit.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    forward_cycles: Annotated[int, Bounds(1)] = 1
    backward_cycles: Annotated[int, Bounds(1)] = 1

    @classmethod
    def parse(cls, text: str) -> Hop:
        """Read a hop in the notation of the command line: ``3+4`` is 3 cycles forward, 4 back.

        Raises:
            ConfigurationError: the text has another form, or a number is out of range.
        """
        match = _TEXT.fullmatch(text)
        forward, backward = map(number_of, match.groups()) if match else (None, None)
        for cycles in (forward, backward):
            if not isinstance(cycles, int) or not 1 <= cycles <= MOST_HOP_CYCLES:
                raise ConfigurationError(
                    f"{text!r}: expected cycles forward and back, each an integer from 1 to "
                    f"{MOST_HOP_CYCLES:,}, as in 3+4"
                )
        return cls(forward, backward)  # type: ignore[arg-type]  # checked above

    @override
    def __str__(self) -> str:
        return f"{self.forward_cycles}+{self.backward_cycles}"


ONE_CYCLE: Final = Hop()
"""The default of channels without a stated latency."""


class Site(NamedTuple):
    """A place for units on the mesh.

    Attributes:
        column: counted from the left, from 0.
        row: counted from the top, from 0.
    """

    column: int
    row: int


class Route(NamedTuple):
    """The route of a transfer, or a tree of routes.

    Attributes:
        links: numbers of injection, mesh and absorption links, each once.
        cycles: from the source until the head of a transfer arrives at the farthest target.
    """

    links: tuple[int, ...]
    cycles: int


_WAYS = ((1, 0), (-1, 0), (0, 1), (0, -1))


@dataclass(frozen=True, kw_only=True)
class Mesh(Section):
    """Sites in columns and rows. Neighbours are connected by a link in each direction.

    Attributes:
        columns, rows: of sites, at least two of each.
        link_bytes_per_cycle: of a link between two sites of a die; None for unlimited.
        injection_bytes_per_cycle: from a site into the network, and from the network into a site;
            None for unlimited.
        hop_cycles: from a site to its neighbour.
        ends_cycles: from a unit into the network, plus from the network to a unit.
        die_columns, die_rows: of sites on a die; None if all sites are on one die.
        crossing_cycles: from a site to its neighbour on another die.
        crossing_bytes_per_cycle: of a link between two dies; None for unlimited.
        units_per_site: the most units on a site; None for unlimited.
        site_bytes: on-chip memory of a site, shared by its units; None for unlimited.
    """

    columns: Annotated[int, Bounds(2, 1024)]
    rows: Annotated[int, Bounds(2, 1024)]
    link_bytes_per_cycle: Annotated[int, Bounds(1, 2**20)] | None = None
    injection_bytes_per_cycle: Annotated[int, Bounds(1, 2**20)] | None = None
    hop_cycles: Annotated[int, Bounds(1, 2**20)] = 1
    ends_cycles: Annotated[int, Bounds(0, 2**20)] = 0
    die_columns: Annotated[int, Bounds(1, 1024)] | None = None
    die_rows: Annotated[int, Bounds(1, 1024)] | None = None
    crossing_cycles: Annotated[int, Bounds(1, 2**20)] | None = None
    crossing_bytes_per_cycle: Annotated[int, Bounds(1, 2**20)] | None = None
    units_per_site: Annotated[int, Bounds(1, 2**20)] | None = None
    site_bytes: Annotated[int, Bounds(1, 2**62)] | None = None

    @override
    def _faults(self) -> Iterator[str]:
        for along, sites, of_die in (
            ("columns", self.columns, self.die_columns),
            ("rows", self.rows, self.die_rows),
        ):
            if of_die is not None and sites % of_die:
                yield f"die_{along} is {of_die}: expected a divisor of {along}, {sites}"
        if self._dies > 1 and self.crossing_cycles is None:
            expected = f"the cycles of a link between the {self._dies} dies"
            yield f"crossing_cycles is missing: expected {expected}"
        if self._dies == 1 and (self.crossing_cycles or self.crossing_bytes_per_cycle):
            found = "a crossing is described, and all sites are on one die"
            yield f"{found}: expected die_columns or die_rows"

    @property
    def limits(self) -> bool:
        """Whether a transfer may have to wait for a link."""
        return any(capacity is not None for capacity in self.capacities)

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """All sites, row by row."""
        columns = range(self.columns)
        return tuple(Site(column, row) for row in range(self.rows) for column in columns)

    @cached_property
    def edge(self) -> tuple[Site, ...]:
        """The sites where off-chip ports may be, row by row."""
        return tuple(
            site
            for site in self.sites
            if site.column in (0, self.columns - 1) or site.row in (0, self.rows - 1)
        )

    @cached_property
    def capacities(self) -> tuple[int | None, ...]:
        """Bytes a cycle of each link by its number; None for unlimited."""
        return tuple(
            self.injection_bytes_per_cycle
            if ends is None
            else self.crossing_bytes_per_cycle
            if self.crosses(*ends)
            else self.link_bytes_per_cycle
            for ends in self.link_ends
        )

    @cached_property
    def link_ends(self) -> tuple[tuple[Site, Site] | None, ...]:
        """The source and the target of each link by its number; None inside a site.

        Link ``6 * n + way`` leaves site n to the right, to the left, down or up for ways 0 to 3.
        Way 4 is the site's injection link, way 5 its absorption link. Routes never take the links
        that would leave the mesh.
        """
        pairs: list[tuple[Site, Site] | None] = []
        for site in self.sites:
            pairs += [(site, Site(site.column + right, site.row + down)) for right, down in _WAYS]
            pairs += [None, None]
        return tuple(pairs)

    def crosses(self, site: Site, next_site: Site) -> bool:
        """Whether the two sites are on different dies."""
        return self._die(site) != self._die(next_site)

    def link_sites(self, link: int) -> tuple[Site, Site]:
        """Return the source and the target of a link, which are equal inside a site."""
        return self.link_ends[link] or (self.sites[link // 6],) * 2

    def link_name(self, link: int) -> str:
        """Return the name of a link: ``0,0 -> 1,0``, ``out of 0,0`` or ``into 0,0``."""
        source, target = self.link_sites(link)
        if source == target:
            return f"{'out of' if link % 6 == 4 else 'into'} {source.column},{source.row}"
        return f"{source.column},{source.row} -> {target.column},{target.row}"

    def route(self, source: Site, target: Site) -> Route:
        """Return the route from ``source`` to ``target``.

        Raises:
            ConfigurationError: a site is not on the mesh.
        """
        return self.tree(source, [target])

    def tree(self, source: Site, targets: Iterable[Site]) -> Route:
        """Return the tree of routes from ``source`` to ``targets``, which share their links.

        Raises:
            ConfigurationError: a site is not on the mesh.
        """
        start, columns, link_cycles = self._number(source), self.columns, self._link_cycles
        links: dict[int, None] = {6 * start + 4: None}
        latest = 0
        for target in targets:
            absorbs = 6 * self._number(target) + 5
            cycles, at = self.ends_cycles, start
            right, down = target.column - source.column, target.row - source.row
            legs = ((right < 0, 1, abs(right)), (2 + (down < 0), columns, abs(down)))
            for way, apart, hops in legs:
                step = -apart if way % 2 else apart
                for link in range(6 * at + way, 6 * (at + hops * step) + way, 6 * step):
                    links[link] = None
                    cycles += link_cycles[link]
                at += hops * step
            links[absorbs] = None
            latest = max(latest, cycles)
        return Route(tuple(links), latest)

    @cached_property
    def _link_cycles(self) -> tuple[int, ...]:
        crossing = self.hop_cycles if self.crossing_cycles is None else self.crossing_cycles
        return tuple(
            0 if ends is None else crossing if self.crosses(*ends) else self.hop_cycles
            for ends in self.link_ends
        )

    def _number(self, site: Site) -> int:
        if not (0 <= site.column < self.columns and 0 <= site.row < self.rows):
            raise ConfigurationError(
                f"site {site.column},{site.row}: expected a column below {self.columns} and a row "
                f"below {self.rows}"
            )
        return site.row * self.columns + site.column

    def _die(self, site: Site) -> tuple[int, int]:
        columns, rows = self.die_columns or self.columns, self.die_rows or self.rows
        return site.column // columns, site.row // rows

    @property
    def _dies(self) -> int:
        across = self.columns // (self.die_columns or self.columns)
        return across * (self.rows // (self.die_rows or self.rows))

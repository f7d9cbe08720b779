"""What no plan can cost less than: from how many units a site and the sites around it hold.

Proofs. Let K be the units that a site holds. A net whose units are on s sites takes at least s - 1
links, each of at least one hop.

* Many ends. A net of more than K units is on at least ceil(units / K) sites.
* Packing. Nets that hang together and have more than K units between them cannot all be within a
  site: one of them at least goes over a link. Give sets of such nets weights, so that no net is in
  sets of more weight together than it has bytes. Each set's weight is then at most the bytes of its
  nets that go over links, of each net as much as was given to that set, and the sum of all weights
  is at most the byte hops of all nets. Any weights will do; those here are found greedily.
* Stars. At most K - 1 others share the site of a unit u, and at most 4 d K are d steps from it, as
  a site has at most 4 d others at d steps; d steps are at least d hops. Add up the bytes of the
  nets with two ends between u and each other unit. They cost at least what they do where those with
  most bytes are nearest: exchanging two units that are not so makes no plan dearer.

* The edge. Units with off-chip memory take up a part of the edge. So many others as there is room
  for at most are there, too, and the nets between any other one and those units go over a link:
  that costs least where those with most bytes are on the edge.

Each net has a part in one of these only, so that they add up. Stars are for units with so many
partners that some are two steps away. They and the edge leave fewer nets to packing: what gives
most of all four choices is taken.

The worst link. What u sends to others off its site leaves over at most four links, of nets with one
reader at least the bytes to all but K - 1 partners, those with most. One of the links has at least
a fourth of these. It has at least what the first of them gets, as all that one unit sends another
goes one way, and of the first five two go the same way. What comes in comes over four links
likewise. Weights of links are at least 1.

The cheapest plan of a small program is found as an integer program for HiGHS.
A unit is on one site: ``on[u, s]``. Of each net and each of its readers a pair of sites is taken,
``pair[n, r, s, t]``, which has to be where both units are. The route of a pair is known, so that a
net takes a link at least as much as the pairs do whose route it is on: ``tree[n, l]``. What a link
carries is at most the worst link's load. This is Adams' and Johnson's linearisation of quadratic
assignment, whose relaxation knows that different sites are apart.
"""

from __future__ import annotations

import heapq
import importlib.util
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from fabric.analysis.placing.floor import Cost, Floor, Net
from fabric.messages.errors import ConfigurationError

MOST_UNITS: Final = 30

_SECONDS: Final = 120
"""Of the search. What it proves in that time holds anywhere; how much that is depends on the
machine."""

_INFEASIBLE: Final = 2

_ROUNDING: Final = 1e-6
"""Error of HiGHS, relative to the bound."""


def lower_bound(floor: Floor) -> Cost:
    """Return a cost that no plan on ``floor`` is below, in each of its parts."""
    each, nets = floor.units_per_site, floor.netlist.nets
    pairs = [net for net in nets if len(net.targets) == 1]
    large = [net for net in nets if len(net.targets) > max(each - 1, 1)]
    small = [net for net in nets if 1 < len(net.targets) < each]
    spread = sum(net.size_bytes * (-(-(len(net.targets) + 1) // each) - 1) for net in large)
    least = 0
    rest: Sequence[Net]
    for has_stars, has_edge in product((False, True), repeat=2):
        stars, rest = _stars(pairs, each) if has_stars else (0, pairs)
        edge, rest = _at_edge(rest, floor) if has_edge else (0, rest)
        least = max(least, stars + edge + _packed([*rest, *small], each))
    return Cost(spread + least, _worst(pairs, each))


def _at_edge(pairs: Sequence[Net], floor: Floor) -> tuple[int, Sequence[Net]]:
    units = floor.netlist.units
    room = floor.units_per_site * sum(floor.is_edge) - sum(unit.on_edge for unit in units)
    inside: Counter[int] = Counter()
    rest = []
    for net in pairs:
        source, target = net.source, net.targets[0]
        if units[source].on_edge == units[target].on_edge:
            rest.append(net)
        else:
            inside[target if units[source].on_edge else source] += net.size_bytes
    return sum(sorted(inside.values(), reverse=True)[room:]), rest


def _stars(pairs: Sequence[Net], each: int) -> tuple[int, list[Net]]:
    ends = [(net.source, net.targets[0]) for net in pairs]
    partners: dict[int, set[int]] = {}
    for one, other in ends:
        partners.setdefault(one, set()).add(other)
        partners.setdefault(other, set()).add(one)
    hubs = {unit: Counter[int]() for unit, its in partners.items() if len(its) >= 5 * each}
    rest = []
    for net, (one, other) in zip(pairs, ends, strict=True):
        if one in hubs:
            hubs[one][other] += net.size_bytes
        elif other in hubs:
            hubs[other][one] += net.size_bytes
        else:
            rest.append(net)
    found = 0
    for star in hubs.values():
        steps, room = 1, 4 * each
        for size_bytes in _farther(star, each):
            found += size_bytes * steps
            room -= 1
            if not room:
                steps += 1
                room = 4 * steps * each
    return found, rest


def _packed(nets: Sequence[Net], each: int) -> int:
    units = [(net.source, *net.targets) for net in nets]
    left = [net.size_bytes for net in nets]
    at_unit: dict[int, list[int]] = {}
    for net, its in enumerate(units):
        for unit in its:
            at_unit.setdefault(unit, []).append(net)
    found = 0
    for first in sorted(range(len(nets)), key=lambda net: -left[net]):
        while left[first]:
            taken = _grown(first, units, at_unit, left, each)
            if not taken:
                break
            weight = min(left[net] for net in taken)
            found += weight
            for net in taken:
                left[net] -= weight
    return found


def _grown(
    first: int,
    units: Sequence[Sequence[int]],
    at_unit: Mapping[int, Sequence[int]],
    left: Sequence[int],
    each: int,
) -> list[int]:
    """Return nets connected with ``first``, those with most bytes left; none if too few are."""
    taken = [first]
    seen = {first}
    covered: set[int] = set()
    waiting: list[tuple[int, int]] = []
    new: Iterable[int] = units[first]
    while True:
        for unit in new:
            if unit not in covered:
                covered.add(unit)
                for net in at_unit[unit]:
                    if net not in seen and left[net]:
                        seen.add(net)
                        heapq.heappush(waiting, (-left[net], net))
        if len(covered) > each:
            return taken
        while waiting and covered.issuperset(units[waiting[0][1]]):
            heapq.heappop(waiting)
        if not waiting:
            return []
        _, net = heapq.heappop(waiting)
        taken.append(net)
        new = units[net]


def _worst(pairs: Sequence[Net], each: int) -> int:
    out: dict[int, Counter[int]] = {}
    into: dict[int, Counter[int]] = {}
    for net in pairs:
        out.setdefault(net.source, Counter())[net.targets[0]] += net.size_bytes
        into.setdefault(net.targets[0], Counter())[net.source] += net.size_bytes
    found = 0
    for star in (*out.values(), *into.values()):
        farther = _farther(star, each)
        two = farther[3] + farther[4] if len(farther) > 4 else 0
        found = max(found, -(-sum(farther) // 4), max(farther, default=0), two)
    return found


def _farther(star: Mapping[int, int], each: int) -> Sequence[int]:
    return sorted(star.values(), reverse=True)[each - 1 :]


class Exact(NamedTuple):
    """The found plan's site numbers, if any is cheaper, and the lower bound in bytes."""

    sites: list[int] | None
    bound: int


class _Rows:
    """A sparse matrix with the bounds of its rows, filled row by row."""

    def __init__(self) -> None:
        self.columns: Final[list[int]] = []
        self.factors: Final[list[float]] = []
        self.starts: Final = [0]
        self.least: Final[list[float]] = []
        self.most: Final[list[float]] = []

    def add(self, entries: Iterable[tuple[int, float]], least: float, most: float) -> None:
        for column, factor in entries:
            self.columns.append(column)
            self.factors.append(factor)
        self.starts.append(len(self.columns))
        self.least.append(least)
        self.most.append(most)


def exact(floor: Floor, known_bytes: int) -> Exact:
    """Return a cheapest plan, or the best bound that the search proves.

    ``known_bytes``: the cost of a known plan; only cheaper plans are searched.
    """
    netlist = floor.netlist
    if importlib.util.find_spec("scipy") is None:
        raise ConfigurationError(
            "an exact plan needs scipy, which is not installed: expected the extra placing, as in "
            "pip install 'step-fabric[placing]'"
        )
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    least = lower_bound(floor).bytes
    if least >= known_bytes:
        return Exact(None, known_bytes)
    program = _Program(floor, known_bytes)
    rows = program.rows
    shape = len(rows.least), program.columns
    solved = milp(
        program.prices,
        integrality=program.is_whole,
        bounds=Bounds(0, program.most),
        constraints=LinearConstraint(
            csr_array((rows.factors, rows.columns, rows.starts), shape=shape), rows.least, rows.most
        ),
        options={"mip_rel_gap": 0, "time_limit": _SECONDS},
    )
    if solved.status == _INFEASIBLE:
        return Exact(None, known_bytes)
    bound = 0
    if solved.mip_dual_bound is not None and math.isfinite(solved.mip_dual_bound):
        bound = math.ceil(solved.mip_dual_bound * (1 - _ROUNDING)) * program.unit
    sites = None
    if solved.x is not None:
        on = np.array(solved.x[: program.on]).reshape(len(netlist.units), -1)
        sites = on.argmax(axis=1).tolist()
    return Exact(sites, min(max(least, bound), known_bytes))


class _Program:
    """The integer program of a floor.

    Attributes:
        unit: bytes in which it counts.
        on: number of columns for the sites of units; they come first.
    """

    def __init__(self, floor: Floor, known_bytes: int) -> None:
        units, nets = floor.netlist.units, floor.netlist.nets
        sites = len(floor.is_edge)
        self.unit: Final = math.gcd(*(net.size_bytes for net in nets))
        self.on: Final = len(units) * sites
        self.rows: Final = _Rows()
        self.prices: Final[list[float]] = [0.0] * self.on
        self.most: Final[list[float]] = [
            float(floor.is_edge[site] or not unit.on_edge)
            for unit in units
            for site in range(sites)
        ]
        self._floor: Final = floor
        self._mirror()
        for unit in range(len(units)):
            self.rows.add([(unit * sites + site, 1) for site in range(sites)], 1, 1)
        for site in range(sites):
            each = range(site, self.on, sites)
            self.rows.add([(column, 1) for column in each], 0, floor.units_per_site)
            if floor.site_bytes is not None:
                needed = [(c, float(units[c // sites].on_chip_bytes)) for c in each]
                self.rows.add(needed, 0, floor.site_bytes)
        loads: dict[int, list[tuple[int, float]]] = {}
        for net in nets:
            size = net.size_bytes // self.unit
            taken: dict[int, int] = {}
            for target in net.targets:
                for link, pairs in self._pairs(net.source, target).items():
                    if link not in taken:
                        taken[link] = self._column(size * floor.hops[link], 1)
                        weighed = float(size * floor.weights[link])
                        loads.setdefault(link, []).append((taken[link], weighed))
                    entries = [(taken[link], 1.0), *((pair, -1.0) for pair in pairs)]
                    self.rows.add(entries, 0, np.inf)
        least = lower_bound(floor)
        worst = self._column(1, np.inf)
        self.rows.add([(worst, 1.0)], least.worst_link_bytes / self.unit, np.inf)
        trees = [(c, price) for c, price in enumerate(self.prices) if price and c != worst]
        self.rows.add(trees, least.byte_hops / self.unit, np.inf)
        for its in loads.values():
            self.rows.add([(worst, 1.0), *((column, -load) for column, load in its)], 0, np.inf)
        priced = [(column, price) for column, price in enumerate(self.prices) if price]
        self.rows.add(priced, 0, known_bytes / self.unit - 1)
        self.columns: Final = len(self.prices)
        self.is_whole: Final = np.arange(self.columns) < self.on

    def _mirror(self) -> None:
        """Keep the unit with most nets in one quarter: plans have four mirror images."""
        mesh = self._floor.mesh
        ends = Counter(
            unit for net in self._floor.netlist.nets for unit in (net.source, *net.targets)
        )
        hub, _ = ends.most_common(1)[0]
        for number, site in enumerate(mesh.sites):
            if (
                2 * site.column >= mesh.columns + mesh.columns % 2
                or 2 * site.row >= mesh.rows + mesh.rows % 2
            ):
                self.most[hub * len(mesh.sites) + number] = 0

    def _pairs(self, source: int, target: int) -> dict[int, list[int]]:
        """Add the pairs of sites of two units; return them by the links of their routes."""
        mesh, sites = self._floor.mesh, len(self._floor.is_edge)
        at = mesh.sites
        found: dict[int, list[int]] = {}
        by_source: list[list[int]] = [[] for _ in range(sites)]
        by_target: list[list[int]] = [[] for _ in range(sites)]
        alone = self._floor.units_per_site == 1
        for here in range(sites):
            for there in range(sites):
                if not (self.most[source * sites + here] and self.most[target * sites + there]):
                    continue
                if here == there and alone:
                    continue
                pair = self._column(0, 1)
                by_source[here].append(pair)
                by_target[there].append(pair)
                if here != there:
                    for link in mesh.route(at[here], at[there]).links:
                        if mesh.link_ends[link] is not None:
                            found.setdefault(link, []).append(pair)
        for unit, groups in ((source, by_source), (target, by_target)):
            for site, pairs in enumerate(groups):
                entries = [(unit * sites + site, -1.0), *((pair, 1.0) for pair in pairs)]
                self.rows.add(entries, 0, 0)
        return found

    def _column(self, price: float, most: float) -> int:
        self.prices.append(price)
        self.most.append(most)
        return len(self.prices) - 1

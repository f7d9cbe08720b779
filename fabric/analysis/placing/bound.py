"""A lower bound of the cost of all plans, and the cheapest plan of a small program.

The bound. Let a site hold K units. A net of n units is on at least ceil(n / K) sites, and a net on
s sites takes at least s - 1 links of one hop or more. At most K - 1 partners of a unit share its
site. Its nets to the other partners take a link, and have at least the bytes of its smallest
nets. A net of two units is counted at both units, so the sum is halved.

The worst link. A unit's bytes to units on other sites leave over at most four links, so one link
has at least a fourth of the bytes. Each net to another site leaves over one link or more, so one
link has at least the bytes of the largest of these nets. Of five such nets, two share a link. The
same holds for incoming bytes. Weights of links are at least 1.

The cheapest plan is found as an integer program for HiGHS. A unit is on one site: ``on[u, s]``. A
net has one pair of sites for each reader, ``pair[n, r, s, t]``: the sites of both units. The route
of a pair is fixed, and a net takes all links of its pairs' routes: ``tree[n, l]``. The worst link's
load is at least the load of each link. This is Adams' and Johnson's linearisation of quadratic
assignment: its relaxation counts the distance between different sites.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Final, TypeAlias

import numpy as np

from fabric.analysis.placing.floor import Cost, Floor
from fabric.messages.extras import check_extra

MOST_UNITS: Final = 30

_SECONDS: Final = 120
"""Time limit of the search. The bound at the limit is valid, but depends on the machine."""

_INFEASIBLE: Final = 2

_ROUNDING: Final = 1e-6
"""Error of HiGHS, relative to the bound."""


def lower_bound(floor: Floor) -> Cost:
    """Return lower bounds of both parts of the cost of any plan on ``floor``."""
    units_per_site = floor.units_per_site
    spread = 0
    out: dict[int, Counter[int]] = {}
    into: dict[int, Counter[int]] = {}
    for net in floor.netlist.nets:
        if len(net.targets) > 1:
            spread += net.size_bytes * (-(-(len(net.targets) + 1) // units_per_site) - 1)
        else:
            out.setdefault(net.source, Counter())[net.targets[0]] += net.size_bytes
            into.setdefault(net.targets[0], Counter())[net.source] += net.size_bytes
    twice = sum(
        sum(_farther(out.get(unit, Counter()) + into.get(unit, Counter()), units_per_site))
        for unit in out.keys() | into.keys()
    )
    worst = 0
    for star in (*out.values(), *into.values()):
        farther = _farther(star, units_per_site)
        two = farther[3] + farther[4] if len(farther) > 4 else 0
        worst = max(worst, -(-sum(farther) // 4), max(farther, default=0), two)
    return Cost(spread + -(-twice // 2), worst)


def _farther(star: Counter[int], units_per_site: int) -> list[int]:
    """Return the bytes to the partners on other sites, if the heaviest share the unit's site."""
    return sorted(star.values(), reverse=True)[units_per_site - 1 :]


_Row: TypeAlias = tuple[Sequence[tuple[int, float]], float, float]
"""Columns with their factors, and the least and the greatest value of their weighted sum."""


def exact(floor: Floor, known_bytes: int) -> tuple[list[int] | None, int]:
    """Return the cheapest plan that the search found, and a lower bound of the cost in bytes.

    A plan has the site number of each unit. ``known_bytes``: the cost of a known plan. Only cheaper
    plans are searched; None if no such plan was found.
    """
    check_extra("an exact plan", "placing", "scipy")
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    least = lower_bound(floor).bytes
    if least >= known_bytes:
        return None, known_bytes
    program = _Program(floor, known_bytes)
    entries, row_least, row_most = zip(*program.rows, strict=True)
    columns, factors = zip(*chain.from_iterable(entries), strict=True)
    starts = [0, *accumulate(map(len, entries))]
    matrix = csr_array((factors, columns, starts), shape=(len(entries), program.columns))
    solved = milp(
        program.prices,
        integrality=program.is_whole,
        bounds=Bounds(0, program.most),
        constraints=LinearConstraint(matrix, row_least, row_most),
        options={"mip_rel_gap": 0, "time_limit": _SECONDS},
    )
    if solved.status == _INFEASIBLE:
        return None, known_bytes
    bound = 0
    if solved.mip_dual_bound is not None and math.isfinite(solved.mip_dual_bound):
        bound = math.ceil(solved.mip_dual_bound * (1 - _ROUNDING)) * program.unit
    sites = None
    if solved.x is not None:
        on = np.array(solved.x[: program.on]).reshape(len(floor.netlist.units), -1)
        sites = on.argmax(axis=1).tolist()
    return sites, min(max(least, bound), known_bytes)


class _Program:
    """The integer program of a floor, in multiples of ``unit`` bytes."""

    def __init__(self, floor: Floor, known_bytes: int) -> None:
        units, nets = floor.netlist.units, floor.netlist.nets
        sites = len(floor.is_edge)
        self.unit: Final = math.gcd(*(net.size_bytes for net in nets))
        self.on: Final = len(units) * sites  # columns for the sites of units, which come first
        self.rows: Final[list[_Row]] = []
        self.prices: Final[list[float]] = [0.0] * self.on
        self.most: Final[list[float]] = [
            float(floor.is_edge[site] or not unit.on_edge)
            for unit in units
            for site in range(sites)
        ]
        self._floor: Final = floor
        self._mirror()
        for unit in range(len(units)):
            self.rows.append(([(unit * sites + site, 1) for site in range(sites)], 1, 1))
        for site in range(sites):
            columns = range(site, self.on, sites)
            self.rows.append(([(column, 1) for column in columns], 0, floor.units_per_site))
            if floor.site_bytes is not None:
                needed = [(c, float(units[c // sites].on_chip_bytes)) for c in columns]
                self.rows.append((needed, 0, floor.site_bytes))
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
                    self.rows.append((entries, 0, np.inf))
        least = lower_bound(floor)
        worst = self._column(1, np.inf)
        self.rows.append(([(worst, 1.0)], least.worst_link_bytes / self.unit, np.inf))
        trees = [(c, price) for c, price in enumerate(self.prices) if price and c != worst]
        self.rows.append((trees, least.byte_hops / self.unit, np.inf))
        for load in loads.values():
            carried = [(column, -size) for column, size in load]
            self.rows.append(([(worst, 1.0), *carried], 0, np.inf))
        priced = [(column, price) for column, price in enumerate(self.prices) if price]
        self.rows.append((priced, 0, known_bytes / self.unit - 1))
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
        """Add the pairs of sites of two units; return their columns by link."""
        mesh, sites = self._floor.mesh, len(self._floor.is_edge)
        at = mesh.sites
        by_link: dict[int, list[int]] = {}
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
                            by_link.setdefault(link, []).append(pair)
        for unit, groups in ((source, by_source), (target, by_target)):
            for site, pairs in enumerate(groups):
                entries = [(unit * sites + site, -1.0), *((pair, 1.0) for pair in pairs)]
                self.rows.append((entries, 0, 0))
        return by_link

    def _column(self, price: float, most: float) -> int:
        self.prices.append(price)
        self.most.append(most)
        return len(self.prices) - 1

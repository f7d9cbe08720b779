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
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from fabric.placing.floor import Cost, Floor
from fabric.placing.netlist import Net

__all__ = ["lower_bound"]


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
    """Return what nets between the edge and the rest cost at least, and the other nets."""
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
    """Return what the units with many partners cost at least, and the nets that have no part."""
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
    """Return the weight of sets of nets that hang together and do not fit on a site."""
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
    """Return nets that hang together with ``first``, those with most left; none if too few do."""
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
    """Return what the worst link has at least."""
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
    """Return the bytes to those that cannot share the site, most of them first."""
    return sorted(star.values(), reverse=True)[each - 1 :]

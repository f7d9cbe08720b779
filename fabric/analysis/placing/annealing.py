"""Floor plans by METIS, which halves the units recursively, and annealing.

Each step cuts the longer side of a rectangle of sites in half, and divides the units between both
halves so that few bytes cross. At the end, each unit gets the nearest allowed site.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from fabric.analysis.placing import annealing_loop as loop
from fabric.analysis.placing.floor import Cost, Floor
from fabric.messages.errors import ConfigurationError
from fabric.messages.extras import check_extra
from fabric.messages.text import counted
from fabric.timing.engine.tables import Counters, Table

_TRIES = 20

_UNLIMITED = 2**62

_HEAVIEST = 2**20
"""Largest weight of an edge of the graph: METIS adds weights in 32 bits."""

_MOVES_PER_UNIT: Final = 10_000

_MOST_MOVES: Final = 25_000_000

_MOST_ROUNDS: Final = 8

_MOVES_OF_ROUNDS: Final = 3_000_000

_STAGES: Final = 120

_HOPS: Final = 4
"""The first temperature is this number of hops times the mean bytes of a net."""

_COOLEST: Final = 1e-2
"""The last temperature, as a fraction of the first one."""


class _Rectangle(NamedTuple):
    column: int
    row: int
    columns: int
    rows: int

    def halves(self) -> tuple[_Rectangle, _Rectangle]:
        column, row, columns, rows = self
        if columns >= rows:
            left = columns // 2
            right = _Rectangle(column + left, row, columns - left, rows)
            return self._replace(columns=left), right
        upper = rows // 2
        return self._replace(rows=upper), _Rectangle(column, row + upper, columns, rows - upper)


def partitioned(floor: Floor, seed: int) -> list[int]:
    """Return the plan by METIS: the site number of each unit."""
    check_extra("place", "placing", "pymetis")
    mesh, units = floor.mesh, floor.netlist.units
    between = _graph(floor)
    wanted = [0] * len(units)
    uncut = [(_Rectangle(0, 0, mesh.columns, mesh.rows), list(range(len(units))))]
    while uncut:
        rectangle, here = uncut.pop()
        if rectangle.columns * rectangle.rows == 1 or not here:
            for unit in here:
                wanted[unit] = rectangle.row * mesh.columns + rectangle.column
            continue
        parts = rectangle.halves()
        share = parts[0].columns * parts[0].rows / (rectangle.columns * rectangle.rows)
        sides = _cut(here, between, share, seed)
        for number, part in enumerate(parts):
            inside = [unit for unit, side in zip(here, sides, strict=True) if side == number]
            uncut.append((part, inside))
    sites = _nearest_allowed(floor, wanted)
    if sites is None:
        raise ConfigurationError(
            f"place: found no sites with room for all units of {floor.netlist.program}: expected "
            f"more memory than {counted(floor.site_bytes or 0, 'byte')} a site, or more sites"
        )
    return sites


def random_sites(floor: Floor, seed: int) -> list[int] | None:
    """Return a random plan that keeps the rules; None after ``_TRIES`` failures."""
    generator = random.Random(seed)
    sites = range(len(floor.is_edge))
    edge = [site for site in sites if floor.is_edge[site]]
    for _ in range(_TRIES):
        wanted = [generator.choice(edge if unit.on_edge else sites) for unit in floor.netlist.units]
        allowed = _nearest_allowed(floor, wanted)
        if allowed is not None:
            return allowed
    return None


def _graph(floor: Floor) -> list[Counter[int]]:
    """Return the bytes between each unit and its partners; each reader has an equal share."""
    between: list[Counter[int]] = [Counter() for _ in floor.netlist.units]
    for net in floor.netlist.nets:
        share_bytes = max(1, net.size_bytes // len(net.targets))
        for target in net.targets:
            between[net.source][target] += share_bytes
            between[target][net.source] += share_bytes
    return between


def _cut(
    here: Sequence[int], between: Sequence[Counter[int]], share: float, seed: int
) -> Sequence[int]:
    if len(here) == 1:
        return [0 if share >= 0.5 else 1]
    import pymetis

    number = {unit: at for at, unit in enumerate(here)}
    heaviest = max((w for unit in here for w in between[unit].values()), default=1)
    starts, ends, weights = [0], [], []
    for unit in here:
        for other, weight in between[unit].items():
            if other in number:
                ends.append(number[other])
                weights.append(max(1, weight * _HEAVIEST // max(heaviest, _HEAVIEST)))
        starts.append(len(ends))
    if not ends:
        return [0 if at < share * len(here) else 1 for at in range(len(here))]
    sides: Sequence[int] = pymetis.part_graph(
        2,
        pymetis.CSRAdjacency(starts, ends),
        eweights=weights,
        tpwgts=[share, 1 - share],
        recursive=True,
        options=pymetis.Options(seed=seed),
    ).vertex_part
    return sides


def _nearest_allowed(floor: Floor, wanted: Sequence[int]) -> list[int] | None:
    """Return each unit's nearest allowed site to ``wanted``; None if a unit has no allowed site.

    Units on the edge choose first, then those with the most memory.
    """
    units, at = floor.netlist.units, floor.mesh.sites
    sizes = [0 if floor.site_bytes is None else unit.on_chip_bytes for unit in units]
    order = sorted(range(len(units)), key=lambda unit: (not units[unit].on_edge, -sizes[unit]))
    columns = np.array([site.column for site in at])
    rows = np.array([site.row for site in at])
    is_edge = np.array(floor.is_edge)
    free_slots = np.full(len(at), floor.units_per_site)
    free_bytes = np.full(len(at), _UNLIMITED if floor.site_bytes is None else floor.site_bytes)
    sites = [-1] * len(units)
    for unit in order:
        is_allowed = (free_slots > 0) & (free_bytes >= sizes[unit])
        if units[unit].on_edge:
            is_allowed &= is_edge
        if not is_allowed.any():
            return None
        column, row = at[wanted[unit]]
        distances = np.where(is_allowed, abs(columns - column) + abs(rows - row), _UNLIMITED)
        site = sites[unit] = int(distances.argmin())
        free_slots[site] -= 1
        free_bytes[site] -= sizes[unit]
    return sites


def annealed(
    floor: Floor, start: Sequence[int], seed: int, notify: Callable[[str], object]
) -> list[int]:
    """Return a plan annealed from ``start``, or ``start`` if no cheaper plan is reached.

    Plans are the site numbers of units. A small program is annealed several times, each time with
    other random numbers.
    """
    best, least = list(start), floor.cost(start).bytes
    if len(start) < 2 or not floor.netlist.nets:
        return best
    reach = max(floor.mesh.columns, floor.mesh.rows)
    moves = min(_MOST_MOVES, _MOVES_PER_UNIT * len(start))
    rounds = max(1, min(_MOST_ROUNDS, _MOVES_OF_ROUNDS // moves))
    for number in range(rounds):
        state = _State(floor, start, seed * _MOST_ROUNDS + number)
        for stage in range(_STAGES):
            progress = stage / (_STAGES - 1)
            temperature = int(state.hottest * _COOLEST**progress) if stage < _STAGES - 1 else 0
            state.run(moves // _STAGES, temperature, max(1, round(reach * (1 - progress))))
            cost = state.cost
            if cost.bytes < least:
                best, least = state.sites, cost.bytes
            stages = number * _STAGES + stage + 1
            if stages % (rounds * _STAGES // 10) == 0:
                percent = 100 * stages // (rounds * _STAGES)
                notify(f"annealed {percent} %, {counted(least, 'byte')} so far")
    return best


class _State:
    def __init__(self, floor: Floor, start: Sequence[int], seed: int) -> None:
        netlist, per_site = floor.netlist, floor.units_per_site
        count = len(floor.is_edge)
        units = Table.zeros(loop.PlacedUnit, len(start))
        slots, used, used_bytes = [-1] * (count * per_site), [0] * count, [0] * count
        for unit, site in enumerate(start):
            slot = units[unit].slot = site * per_site + used[site]
            slots[slot] = unit
            used[site] += 1
            used_bytes[site] += netlist.units[unit].on_chip_bytes
        units.rows["on_edge"] = [unit.on_edge for unit in netlist.units]
        units.rows["size_bytes"] = [unit.on_chip_bytes for unit in netlist.units]
        of_units: list[list[int]] = [[] for _ in start]
        pins = [[net.source, *net.targets] for net in netlist.nets]
        for number, ends in enumerate(pins):
            for unit in ends:
                of_units[unit].append(number)
        units.rows["first_net"], units.rows["end_net"] = _bounds(of_units)
        nets = Table.zeros(loop.PlacedNet, len(pins))
        nets.rows["first_pin"], nets.rows["end_pin"] = _bounds(pins)
        nets.rows["size_bytes"] = sizes = [net.size_bytes for net in netlist.nets]
        numbers = [link for link, end in enumerate(floor.mesh.link_ends) if end is not None]
        loads = floor.link_bytes(start)
        links = Table.zeros(loop.MeshLink, len(numbers))
        links.rows["hops"] = [floor.hops[link] for link in numbers]
        links.rows["weight"] = [floor.weights[link] for link in numbers]
        links.rows["load"] = [loads[link] * floor.weights[link] for link in numbers]
        state, cost = Table.zeros(loop.Annealing, 1)[0], floor.cost(start)
        state.random, state.slots_per_site = seed, per_site
        state.columns, state.rows = floor.mesh.columns, floor.mesh.rows
        state.site_bytes = -1 if floor.site_bytes is None else floor.site_bytes
        state.worst_load, state.byte_hops = cost.worst_link_bytes, cost.byte_hops
        self._world: Final = loop.Placing(
            state=state, units=units, nets=nets, links=links,
            pins=_integers([*chain.from_iterable(pins)]),
            listed=_integers([*chain.from_iterable(of_units)]),
            slots=_integers(slots), used_bytes=_integers(used_bytes), quantiles=_quantiles(),
        )  # fmt: skip
        self.run: Final = loop.anneal.over(self._world)
        self.hottest: Final = math.ceil(_HOPS * sum(sizes) / len(sizes))

    @property
    def cost(self) -> Cost:
        return Cost(self._world.state.byte_hops, self._world.state.worst_load)

    @property
    def sites(self) -> list[int]:
        slots = self._world.units.rows["slot"]
        sites: list[int] = (slots // self._world.state.slots_per_site).tolist()
        return sites


def _integers(values: Sequence[int]) -> Counters:
    return np.array(values, np.int64)


def _bounds(lists: Sequence[Sequence[int]]) -> tuple[Counters, Counters]:
    ends = np.cumsum([*map(len, lists)])
    return ends - [*map(len, lists)], ends


def _quantiles() -> Counters:
    parts, unit = 1 << loop.QUANTILE_BITS, 1 << loop.QUANTILE_UNIT_BITS
    return _integers([round(-math.log((part + 0.5) / parts) * unit) for part in range(parts)])

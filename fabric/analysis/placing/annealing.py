"""Floor plans by METIS, which halves the units recursively, and annealing.

Each cut halves a rectangle of sites along its longer side, and the units so that few bytes cross.
Then each unit gets the nearest allowed site.
"""

from __future__ import annotations

import importlib.util
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from fabric.analysis.placing.annealing_loop import QUANTILE_BITS, QUANTILE_UNIT_BITS, anneal
from fabric.analysis.placing.floor import Cost, Floor
from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import counted
from fabric.timing.engine.tables import Counters

_TRIES = 20

_UNLIMITED = 2**62

_HEAVIEST = 2**20
"""Of an edge of the graph: METIS adds up weights in 32 bits."""

_MOVES_PER_UNIT: Final = 10_000

_MOST_MOVES: Final = 25_000_000

_MOST_ROUNDS: Final = 8

_MOVES_OF_ROUNDS: Final = 3_000_000

_STAGES: Final = 120

_HOPS: Final = 4
"""The first temperature, in mean net bytes times hops."""

_COOLEST: Final = 1e-2
"""As a fraction of the first temperature."""


class _Rectangle(NamedTuple):
    """Sites from ``column`` and ``row`` on."""

    column: int
    row: int
    columns: int
    rows: int

    def halves(self) -> tuple[_Rectangle, _Rectangle]:
        column, row, columns, rows = self
        if columns >= rows:
            left = columns // 2
            return (
                _Rectangle(column, row, left, rows),
                _Rectangle(column + left, row, columns - left, rows),
            )
        upper = rows // 2
        return (
            _Rectangle(column, row, columns, upper),
            _Rectangle(column, row + upper, columns, rows - upper),
        )


def partitioned(floor: Floor, seed: int) -> list[int]:
    """Return the site of each unit."""
    if importlib.util.find_spec("pymetis") is None:
        raise ConfigurationError(
            "place needs pymetis, which is not installed: expected the extra placing, as in "
            "pip install 'step-fabric[placing]'"
        )
    mesh, units = floor.mesh, floor.netlist.units
    between = _graph(floor)
    wanted = [0] * len(units)
    waiting = [(_Rectangle(0, 0, mesh.columns, mesh.rows), list(range(len(units))))]
    while waiting:
        rectangle, here = waiting.pop()
        if rectangle.columns * rectangle.rows == 1 or not here:
            for unit in here:
                wanted[unit] = rectangle.row * mesh.columns + rectangle.column
            continue
        parts = rectangle.halves()
        share = parts[0].columns * parts[0].rows / (rectangle.columns * rectangle.rows)
        sides = _cut(here, between, share, seed)
        for number, part in enumerate(parts):
            waiting.append(
                (part, [u for u, side in zip(here, sides, strict=True) if side == number])
            )
    sites = _settled(floor, wanted)
    if sites is None:
        raise ConfigurationError(
            f"place: found no sites with room for all units of {floor.netlist.program}: expected "
            f"more memory than {counted(floor.site_bytes or 0, 'byte')} a site, or more sites"
        )
    return sites


def random_sites(floor: Floor, seed: int) -> list[int] | None:
    """Return a plan that keeps the rules and is random otherwise; None where none was found."""
    drawn = random.Random(seed)
    sites = range(len(floor.is_edge))
    edge = [site for site in sites if floor.is_edge[site]]
    for _ in range(_TRIES):
        wanted = [drawn.choice(edge if unit.on_edge else sites) for unit in floor.netlist.units]
        found = _settled(floor, wanted)
        if found is not None:
            return found
    return None


def _graph(floor: Floor) -> list[Counter[int]]:
    """Return the bytes between units; a net's bytes are divided among its readers."""
    found: list[Counter[int]] = [Counter() for _ in floor.netlist.units]
    for net in floor.netlist.nets:
        each = max(1, net.size_bytes // len(net.targets))
        for target in net.targets:
            found[net.source][target] += each
            found[target][net.source] += each
    return found


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


def _settled(floor: Floor, wanted: Sequence[int]) -> list[int] | None:
    """Return each unit's nearest allowed site to ``wanted``; None if there is none.

    Units on the edge choose first, then those with the most memory.
    """
    units, at = floor.netlist.units, floor.mesh.sites
    order = sorted(
        range(len(units)),
        key=lambda unit: (
            not units[unit].on_edge,
            -units[unit].on_chip_bytes if floor.site_bytes is not None else 0,
            unit,
        ),
    )
    columns = np.array([site.column for site in at])
    rows = np.array([site.row for site in at])
    is_edge = np.array(floor.is_edge)
    left = np.full(len(at), floor.units_per_site)
    left_bytes = np.full(len(at), _UNLIMITED if floor.site_bytes is None else floor.site_bytes)
    sites = [-1] * len(units)
    for unit in order:
        needed = 0 if floor.site_bytes is None else units[unit].on_chip_bytes
        may = (left > 0) & (left_bytes >= needed)
        if units[unit].on_edge:
            may &= is_edge
        if not may.any():
            return None
        column, row = at[wanted[unit]]
        apart = np.where(may, abs(columns - column) + abs(rows - row), _UNLIMITED)
        site = sites[unit] = int(apart.argmin())
        left[site] -= 1
        left_bytes[site] -= needed
    return sites


def annealed(
    floor: Floor, start: Sequence[int], seed: int, notify: Callable[[str], object]
) -> list[int]:
    """Return a plan annealed from ``start``, or ``start`` if none is cheaper.

    A small program is annealed several times, with other random numbers.

    ``start``: site number of each unit.
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
            done = stage / (_STAGES - 1)
            temperature = int(state.hottest * _COOLEST**done) if stage < _STAGES - 1 else 0
            state.run(moves // _STAGES, temperature, max(1, round(reach * (1 - done))))
            cost = state.cost
            if cost.bytes < least:
                best, least = state.sites, cost.bytes
            gone = number * _STAGES + stage + 1
            if gone % (rounds * _STAGES // 10) == 0:
                percent = 100 * gone // (rounds * _STAGES)
                notify(f"annealed {percent} %, {counted(least, 'byte')} so far")
    return best


class _State:
    """A plan in the arrays of the loop."""

    def __init__(self, floor: Floor, start: Sequence[int], seed: int) -> None:
        netlist, each = floor.netlist, floor.units_per_site
        count = len(floor.is_edge)
        self._per_site: Final = each
        slots, place = [-1] * (count * each), [0] * len(start)
        used, used_bytes = [0] * count, [0] * count
        for unit, site in enumerate(start):
            place[unit] = site * each + used[site]
            slots[place[unit]] = unit
            used[site] += 1
            used_bytes[site] += netlist.units[unit].on_chip_bytes
        of_units: list[list[int]] = [[] for _ in start]
        pins = [[net.source, *net.targets] for net in netlist.nets]
        for net, its in enumerate(pins):
            for unit in its:
                of_units[unit].append(net)
        ends = floor.mesh.link_ends
        links = [link for link, each in enumerate(ends) if each is not None]
        loads = floor.link_bytes(start)
        weighed = [loads[link] * floor.weights[link] for link in links]
        cost = floor.cost(start)
        self._place: Final = _integers(place)
        self._memory: Final = _integers([seed, 0, cost.worst_link_bytes, 0, 0, cost.byte_hops])
        self._loop: Final = anneal.over(
            slots=_integers(slots),
            place=self._place,
            on_edge=_integers([unit.on_edge for unit in netlist.units]),
            unit_bytes=_integers([unit.on_chip_bytes for unit in netlist.units]),
            used_bytes=_integers(used_bytes),
            first_pin=_starts(pins),
            pins=_integers([unit for its in pins for unit in its]),
            net_bytes=_integers([net.size_bytes for net in netlist.nets]),
            first_net=_starts(of_units),
            nets=_integers([net for its in of_units for net in its]),
            hops=_integers([floor.hops[link] for link in links]),
            weights=_integers([floor.weights[link] for link in links]),
            load=_integers(weighed),
            seen=_integers([0] * len(links)),
            touched=_integers([0] * len(pins)),
            quantiles=_quantiles(),
            memory=self._memory,
        )
        self._mesh: Final = floor.mesh
        self._site_bytes: Final = -1 if floor.site_bytes is None else floor.site_bytes
        sizes = [net.size_bytes for net in netlist.nets]
        self.hottest: Final = math.ceil(_HOPS * sum(sizes) / len(sizes))

    def run(self, moves: int, temperature: int, reach: int) -> tuple[int, ...]:
        mesh = self._mesh
        return self._loop(
            moves, temperature, reach, mesh.columns, mesh.rows, self._per_site, self._site_bytes
        )

    @property
    def cost(self) -> Cost:
        return Cost(int(self._memory[5]), int(self._memory[2]))

    @property
    def sites(self) -> list[int]:
        found: list[int] = (self._place // self._per_site).tolist()
        return found


def _integers(values: Sequence[int]) -> Counters:
    return np.array(values, np.int64)


def _starts(lists: Sequence[Sequence[int]]) -> Counters:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)


def _quantiles() -> Counters:
    parts = 1 << QUANTILE_BITS
    return _integers(
        [
            round(-math.log((part + 0.5) / parts) * (1 << QUANTILE_UNIT_BITS))
            for part in range(parts)
        ]
    )

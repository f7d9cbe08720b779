"""Annealing of a plan: the arrays of the compiled loop, and how hot it is when."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from fabric.analysis.placing.annealing_loop import QUANTILE_BITS, QUANTILE_UNIT_BITS, anneal
from fabric.analysis.placing.floor import Cost, Floor
from fabric.messages.telling.wording import counted
from fabric.timing.engine.machine_code import Counters

__all__ = ["annealed"]

_MOVES_PER_UNIT: Final = 10_000
_MOST_MOVES: Final = 25_000_000
_MOST_ROUNDS: Final = 8
_MOVES_OF_ROUNDS: Final = 3_000_000
_STAGES: Final = 120

_HOPS: Final = 4
"""The first temperature, in hops of what nets carry in the mean."""

_COOLEST: Final = 1e-2
"""Of the first temperature."""


def annealed(
    floor: Floor, start: Sequence[int], seed: int, notify: Callable[[str], object]
) -> list[int]:
    """Return a plan that annealing found from the plan ``start``, or that one if none is cheaper.

    A small program is annealed several times, with other random numbers.

    Args:
        floor: with nets.
        start: of each unit, the number of its site.
        seed: of the random numbers.
        notify: is told how far it is.
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
    """A plan in the arrays of the loop.

    Attributes:
        hottest: the first temperature, in bytes.
    """

    def __init__(self, floor: Floor, start: Sequence[int], seed: int) -> None:
        """Begin with the plan ``start``."""
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
        """Try so many moves."""
        mesh = self._mesh
        return self._loop(
            moves, temperature, reach, mesh.columns, mesh.rows, self._per_site, self._site_bytes
        )

    @property
    def cost(self) -> Cost:
        """What the plan costs, as the loop has kept it."""
        return Cost(int(self._memory[5]), int(self._memory[2]))

    @property
    def sites(self) -> list[int]:
        """The site of each unit."""
        found: list[int] = (self._place // self._per_site).tolist()
        return found


def _integers(values: Sequence[int]) -> Counters:
    return np.array(values, np.int64)


def _starts(lists: Sequence[Sequence[int]]) -> Counters:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)


def _quantiles() -> Counters:
    """Return the exponential distribution's, in the middle of each of so many equal parts."""
    parts = 1 << QUANTILE_BITS
    return _integers(
        [
            round(-math.log((part + 0.5) / parts) * (1 << QUANTILE_UNIT_BITS))
            for part in range(parts)
        ]
    )

"""A first plan: units are cut in two again and again, as the mesh is, by METIS.

Each cut halves a rectangle of sites along its longer side, and the units that go there so that few
bytes cross. What a rectangle of one site gets is where its units would like to be: then each has
the nearest site that may have it.
"""

from __future__ import annotations

import importlib.util
import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fabric.analysis.placing.floor import Floor
from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import counted

__all__ = ["partitioned", "random_sites"]

_TRIES = 20
"""Of random plans, where the memory of sites is nearly full."""

_UNLIMITED = 2**62

_HEAVIEST = 2**20
"""Of an edge of the graph: METIS adds weights up in 32 bits."""


class _Rectangle(NamedTuple):
    """Sites from ``column`` and ``row`` on."""

    column: int
    row: int
    columns: int
    rows: int

    def halves(self) -> tuple[_Rectangle, _Rectangle]:
        """Return its two parts, cut across the longer side."""
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
    """Return the site of each unit.

    Raises:
        ConfigurationError: pymetis is not installed, or no site with room for a unit was found.
    """
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
    """Return the bytes between each unit and others, a net's shared out among its readers."""
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
    """Return the side of each unit, 0 or 1; the first side gets about ``share`` of them."""
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
    """Return each unit's nearest site to ``wanted`` that may have it; None where there is none.

    Those that need the edge choose first, then those that need most memory.
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

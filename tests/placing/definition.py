"""Definitions of a plan's cost (steps over a grid, net by net) and of annealing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

from fabric.analysis.placing.floor import Floor, Net, Netlist, Unit

Step = tuple[tuple[int, int], tuple[int, int]]


def cost(floor: Floor, sites: Sequence[int]) -> int:
    columns = floor.mesh.columns
    at = [(site % columns, site // columns) for site in sites]
    carried: Counter[Step] = Counter()
    for net in floor.netlist.nets:
        taken = {step for unit in net.targets for step in _steps(at[net.source], at[unit])}
        for step in taken:
            carried[step] += net.size_bytes
    return sum(carried.values()) + max(carried.values(), default=0)


def _steps(source: tuple[int, int], target: tuple[int, int]) -> Iterator[Step]:
    (x, y), (to_x, to_y) = source, target
    while x != to_x:
        after = x + (1 if to_x > x else -1)
        yield (x, y), (after, y)
        x = after
    while y != to_y:
        below = y + (1 if to_y > y else -1)
        yield (x, y), (x, below)
        y = below


def cheapest(floor: Floor) -> int:
    units = floor.netlist.units
    columns, rows = floor.mesh.columns, floor.mesh.rows
    found = []
    for sites in product(range(columns * rows), repeat=len(units)):
        if max(Counter(sites).values()) > floor.units_per_site:
            continue
        if any(
            unit.on_edge and 0 < site % columns < columns - 1 and 0 < site // columns < rows - 1
            for unit, site in zip(units, sites, strict=True)
        ):
            continue
        found.append(cost(floor, sites))
    return min(found)


def netlist(
    count: int, nets: Sequence[tuple[int, Sequence[int], int]], on_edge: Sequence[int] = ()
) -> Netlist:
    units = tuple(
        Unit(f"unit_{number}", "compute", number in on_edge, 100) for number in range(count)
    )
    made = tuple(Net(source, tuple(targets), size_bytes) for source, targets, size_bytes in nets)
    return Netlist("drawn", units, made, 0)


class _Knuth:
    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, limit: int) -> int:
        self.state = (6364136223846793005 * self.state + 1442695040888963407) % 2**64
        return self.state // 2**33 % 2**30 * limit // 2**30


def annealed(
    floor: Floor, start: Sequence[int], seed: int, stage_moves: int
) -> tuple[list[int], list[str]]:
    nets, mesh, each = floor.netlist.nets, floor.mesh, floor.units_per_site
    quantiles = [round(-math.log((part + 0.5) / 4096) * 65536) for part in range(4096)]
    hottest = math.ceil(4 * sum(net.size_bytes for net in nets) / len(nets))
    best, told = [*start], []
    for number in range(8):
        random, plan = _Knuth(8 * seed + number), [*start]
        slots: list[list[int | None]] = [[None] * each for _ in floor.is_edge]
        for unit, site in enumerate(plan):
            slots[site][slots[site].index(None)] = unit
        for stage in range(120):
            heat = int(hottest * 0.01 ** (stage / 119)) if stage < 119 else 0
            reach = max(1, round(max(mesh.columns, mesh.rows) * (1 - stage / 119)))
            for _ in range(stage_moves):
                _move(floor, plan, slots, random, heat, reach, quantiles)
            if floor.cost(plan).bytes < floor.cost(best).bytes:
                best = [*plan]
            done = 120 * number + stage + 1
            if done % 96 == 0:
                least = floor.cost(best).bytes
                told.append(f"annealed {done // 96 * 10} %, {least:,} bytes so far")
    return best, told


def _move(
    floor: Floor,
    plan: list[int],
    slots: list[list[int | None]],
    random: _Knuth,
    heat: int,
    reach: int,
    quantiles: Sequence[int],
) -> None:
    mesh, nets = floor.mesh, floor.netlist.nets
    unit = random.below(len(plan))
    site = centre = plan[unit]
    mine = [net for net in nets if unit in (net.source, *net.targets)]
    if mine and random.below(2) == 0:
        net = mine[random.below(len(mine))]
        ends = (net.source, *net.targets)
        centre, reach = plan[ends[random.below(len(ends))]], 1
    column = centre % mesh.columns + random.below(2 * reach + 1) - reach
    row = centre // mesh.columns + random.below(2 * reach + 1) - reach
    target = row * mesh.columns + column
    if not (0 <= column < mesh.columns and 0 <= row < mesh.rows) or target == site:
        return
    slot = random.below(floor.units_per_site)
    other = slots[target][slot]
    after = [*plan]
    after[unit] = target
    if other is not None:
        after[other] = site
    if floor.broken_rule(after) is not None:
        return
    allowed = heat * quantiles[random.below(4096)] // 65536
    if floor.cost(after).bytes - floor.cost(plan).bytes <= allowed:
        slots[site][slots[site].index(unit)] = other
        slots[target][slot] = unit
        plan[:] = after

"""A plan's cost by its definition (steps over a grid, net by net), and annealing."""

from __future__ import annotations

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
    costs = []
    for sites in product(range(columns * rows), repeat=len(units)):
        if max(Counter(sites).values()) > floor.units_per_site:
            continue
        if any(
            unit.on_edge and 0 < site % columns < columns - 1 and 0 < site // columns < rows - 1
            for unit, site in zip(units, sites, strict=True)
        ):
            continue
        costs.append(cost(floor, sites))
    return min(costs)


def netlist(
    count: int, nets: Sequence[tuple[int, Sequence[int], int]], on_edge: Sequence[int] = ()
) -> Netlist:
    units = tuple(
        Unit(f"unit_{number}", "compute", number in on_edge, 100) for number in range(count)
    )
    made = tuple(Net(source, tuple(targets), size_bytes) for source, targets, size_bytes in nets)
    return Netlist("drawn", units, made, 0)

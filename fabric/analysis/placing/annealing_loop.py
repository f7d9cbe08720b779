"""The compiled loop of annealing, which swaps slots and updates nets and links.

All numbers are integers, so that one seed gives one plan on every machine. Each site has four
links: right, left, down, up. Traffic into and out of a site is not counted.
"""

from __future__ import annotations

from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters

QUANTILE_BITS = 12  # there are 2 ** QUANTILE_BITS quantiles

QUANTILE_UNIT_BITS = 16
"""Quantiles come in fractions of 2 ** QUANTILE_UNIT_BITS."""

_MULTIPLIER = 6364136223846793005
_INCREMENT = 1442695040888963407


def _drawn(memory: Counters, below: int) -> int:
    """Return a random number; ``memory[0]`` is the generator's state, after Knuth's MMIX."""
    memory[0] = memory[0] * _MULTIPLIER + _INCREMENT
    drawn: int = ((memory[0] >> 33) & 0x3FFFFFFF) * below >> 30
    return drawn


def _laid(
    net: int,
    sign: int,
    columns: int,
    slots_per_site: int,
    place: Counters,
    first_pin: Counters,
    pins: Counters,
    net_bytes: Counters,
    hops: Counters,
    weights: Counters,
    load: Counters,
    seen: Counters,
    memory: Counters,
) -> int:
    """Add a net to its links, or remove it; return its byte hops."""
    size = net_bytes[net]
    first = first_pin[net]
    last = first_pin[net + 1]
    memory[1] += 1
    mark = memory[1]
    is_tree = last - first > 2
    source = place[pins[first]] // slots_per_site
    length = 0
    for pin in range(first + 1, last):
        target = place[pins[pin]] // slots_per_site
        column = target % columns
        row = target // columns
        at_column = source % columns
        at_row = source // columns
        while at_column != column or at_row != row:
            here = at_row * columns + at_column
            if at_column < column:
                link = 4 * here
                at_column += 1
            elif at_column > column:
                link = 4 * here + 1
                at_column -= 1
            elif at_row < row:
                link = 4 * here + 2
                at_row += 1
            else:
                link = 4 * here + 3
                at_row -= 1
            if is_tree:
                if seen[link] == mark:
                    continue
                seen[link] = mark
            length += hops[link]
            if sign > 0:
                load[link] += size * weights[link]
                memory[2] = max(memory[2], load[link])
            else:
                if load[link] == memory[2]:
                    memory[3] = 1
                load[link] -= size * weights[link]
    counted: int = size * length
    return counted


def _of_unit(
    unit: int,
    other: int,
    sign: int,
    columns: int,
    slots_per_site: int,
    place: Counters,
    first_pin: Counters,
    pins: Counters,
    net_bytes: Counters,
    first_net: Counters,
    nets: Counters,
    hops: Counters,
    weights: Counters,
    load: Counters,
    seen: Counters,
    touched: Counters,
    memory: Counters,
) -> int:
    """Add the nets of a unit, or remove them; ``touched`` marks nets that two units share."""
    found = 0
    for pair in range(2):
        one = unit if pair == 0 else other
        if one >= 0:
            for at in range(first_net[one], first_net[one + 1]):
                if touched[nets[at]] != memory[4]:
                    touched[nets[at]] = memory[4]
                    found += _laid(
                        nets[at], sign, columns, slots_per_site, place, first_pin, pins,
                        net_bytes, hops, weights, load, seen, memory,
                    )  # fmt: skip
    return found


@MachineCode
def anneal(  # noqa: C901, PLR0912, PLR0915 - one loop, compiled as one function
    moves: int,
    temperature: int,
    reach: int,
    columns: int,
    rows: int,
    slots_per_site: int,
    site_bytes: int,
    slots: Counters,
    place: Counters,
    on_edge: Counters,
    unit_bytes: Counters,
    used_bytes: Counters,
    first_pin: Counters,
    pins: Counters,
    net_bytes: Counters,
    first_net: Counters,
    nets: Counters,
    hops: Counters,
    weights: Counters,
    load: Counters,
    seen: Counters,
    touched: Counters,
    quantiles: Counters,
    memory: Counters,
) -> tuple[int, int]:
    """Try ``moves`` swaps of two slots; return how many were kept and how many changed the cost.

    Half of the tries go to a random site within ``reach`` columns and rows, the others next to a
    unit that shares a net. A swap that makes the plan dearer by d bytes is kept if d is at most
    ``temperature`` times an exponential random number (Metropolis' rule).

    ``slots`` has the unit in each slot, site by site, or -1; ``pins`` and ``nets`` are flat lists
    that ``first_pin`` and ``first_net`` index, with the source of a net first. ``memory`` has the
    generator's state, the mark of the last walk, the worst load, whether to search for the worst
    load, the mark of the last try, and the byte hops.
    """
    kept = 0
    changed = 0
    units = place.size
    for _ in range(moves):
        unit = _drawn(memory, units)
        slot = place[unit]
        site = slot // slots_per_site
        centre = site
        around = reach
        count = first_net[unit + 1] - first_net[unit]
        if count > 0 and _drawn(memory, 2) == 0:
            net = nets[first_net[unit] + _drawn(memory, count)]
            pin = first_pin[net] + _drawn(memory, first_pin[net + 1] - first_pin[net])
            centre = place[pins[pin]] // slots_per_site
            around = 1
        column = centre % columns + _drawn(memory, 2 * around + 1) - around
        row = centre // columns + _drawn(memory, 2 * around + 1) - around
        if column < 0 or column >= columns or row < 0 or row >= rows:
            continue
        target = row * columns + column
        if target == site:
            continue
        new_slot = target * slots_per_site + _drawn(memory, slots_per_site)
        other = slots[new_slot]
        is_edge = column == 0 or row == 0 or column == columns - 1 or row == rows - 1
        if on_edge[unit] == 1 and not is_edge:
            continue
        if other >= 0 and on_edge[other] == 1:
            old_column = site % columns
            old_row = site // columns
            if (
                old_column != 0
                and old_row != 0
                and old_column != columns - 1
                and old_row != rows - 1
            ):
                continue
        moved_bytes = unit_bytes[unit]
        if other >= 0:
            moved_bytes -= unit_bytes[other]
        if site_bytes >= 0 and (
            used_bytes[target] + moved_bytes > site_bytes
            or used_bytes[site] - moved_bytes > site_bytes
        ):
            continue
        worst = memory[2]
        allowed = temperature * quantiles[_drawn(memory, 1 << QUANTILE_BITS)] >> QUANTILE_UNIT_BITS
        memory[3] = 0
        memory[4] += 1
        before = _of_unit(
            unit, other, -1, columns, slots_per_site, place, first_pin, pins, net_bytes,
            first_net, nets, hops, weights, load, seen, touched, memory,
        )  # fmt: skip
        place[unit] = new_slot
        if other >= 0:
            place[other] = slot
        memory[4] += 1
        after = _of_unit(
            unit, other, 1, columns, slots_per_site, place, first_pin, pins, net_bytes,
            first_net, nets, hops, weights, load, seen, touched, memory,
        )  # fmt: skip
        if memory[3] == 1 and memory[2] == worst:
            memory[2] = 0
            for link in range(load.size):
                memory[2] = max(memory[2], load[link])
        dearer = after - before + memory[2] - worst
        if dearer <= allowed:
            kept += 1
            changed += dearer != 0
            slots[new_slot] = unit
            slots[slot] = other
            used_bytes[target] += moved_bytes
            used_bytes[site] -= moved_bytes
            memory[5] += after - before
            continue
        memory[4] += 1
        _of_unit(
            unit, other, -1, columns, slots_per_site, place, first_pin, pins, net_bytes,
            first_net, nets, hops, weights, load, seen, touched, memory,
        )  # fmt: skip
        place[unit] = slot
        if other >= 0:
            place[other] = new_slot
        memory[4] += 1
        _of_unit(
            unit, other, 1, columns, slots_per_site, place, first_pin, pins, net_bytes,
            first_net, nets, hops, weights, load, seen, touched, memory,
        )  # fmt: skip
        memory[2] = worst
    return kept, changed

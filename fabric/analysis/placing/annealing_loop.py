"""The compiled loop of annealing, which swaps slots and updates nets and links.

All numbers are integers, so that a seed gives the same plan on every machine. Each site has four
links: right, left, down, up. Traffic into and out of a site is not counted.
"""

from __future__ import annotations

from typing import NamedTuple

from fabric.timing.engine.machine_code import MachineCode
from fabric.timing.engine.tables import Counters, Row, Table

QUANTILE_BITS = 12  # there are 2 ** QUANTILE_BITS quantiles

QUANTILE_UNIT_BITS = 16
"""The unit of quantiles is 1 / 2 ** QUANTILE_UNIT_BITS."""

_MULTIPLIER = 6364136223846793005
_INCREMENT = 1442695040888963407


class PlacedUnit(Row):
    """A unit in a slot; its nets are listed from ``first_net`` to ``end_net``."""

    slot: int
    on_edge: int
    size_bytes: int
    first_net: int
    end_net: int


class PlacedNet(Row):
    """A net; its units are listed from ``first_pin`` to ``end_pin``, the source first."""

    first_pin: int
    end_pin: int
    size_bytes: int
    touched: int  # number of the last call of ``lay_nets`` that visited it


class MeshLink(Row):
    hops: int
    weight: int
    load: int
    seen: int  # number of the last call of ``lay`` that visited it


class Annealing(Row):
    """The mesh, the cost, and the state of the random numbers (Knuth's MMIX generator)."""

    random: int
    columns: int
    rows: int
    slots_per_site: int
    site_bytes: int  # -1 if unlimited
    worst_load: int
    byte_hops: int
    is_stale: int  # 1 if the worst load may have become less
    walk: int  # number of the present call of ``lay_nets``
    net: int  # number of the present call of ``lay``


class Placing(NamedTuple):
    state: Annealing
    units: Table[PlacedUnit]
    nets: Table[PlacedNet]
    links: Table[MeshLink]
    pins: Counters  # numbers of units, net by net
    listed: Counters  # numbers of nets, unit by unit
    slots: Counters  # the unit in each slot, site by site, or -1
    used_bytes: Counters  # by site
    quantiles: Counters  # of an exponential distribution


def drawn(state: Annealing, below: int) -> int:
    """Return a random number from 0 to ``below`` - 1."""
    state.random = state.random * _MULTIPLIER + _INCREMENT
    return ((state.random >> 33) & 0x3FFFFFFF) * below >> 30


def lay(w: Placing, net: PlacedNet, sign: int) -> int:
    """Add a net to its links, or remove it; return its byte hops."""
    state = w.state
    state.net += 1
    is_tree = net.end_pin - net.first_pin > 2
    source = w.units[w.pins[net.first_pin]].slot // state.slots_per_site
    length = 0
    for pin in range(net.first_pin + 1, net.end_pin):
        target = w.units[w.pins[pin]].slot // state.slots_per_site
        column = target % state.columns
        row = target // state.columns
        at_column = source % state.columns
        at_row = source // state.columns
        while at_column != column or at_row != row:
            number = 4 * (at_row * state.columns + at_column)
            if at_column < column:
                at_column += 1
            elif at_column > column:
                number += 1
                at_column -= 1
            elif at_row < row:
                number += 2
                at_row += 1
            else:
                number += 3
                at_row -= 1
            link = w.links[number]
            if is_tree:
                if link.seen == state.net:
                    continue
                link.seen = state.net
            length += link.hops
            if sign > 0:
                link.load += net.size_bytes * link.weight
                state.worst_load = max(state.worst_load, link.load)
            else:
                if link.load == state.worst_load:
                    state.is_stale = 1
                link.load -= net.size_bytes * link.weight
    return net.size_bytes * length


def lay_nets(w: Placing, unit: int, other: int, sign: int) -> int:
    """Add the nets of two units, or remove them, each net once; return their byte hops."""
    w.state.walk += 1
    byte_hops = 0
    for turn in range(2):
        number = unit if turn == 0 else other
        if number >= 0:
            for at in range(w.units[number].first_net, w.units[number].end_net):
                net = w.nets[w.listed[at]]
                if net.touched != w.state.walk:
                    net.touched = w.state.walk
                    byte_hops += lay(w, net, sign)
    return byte_hops


def swap(w: Placing, unit: int, slot: int, other: int, other_slot: int) -> int:
    """Move two units to other slots; return the growth of the byte hops."""
    before = lay_nets(w, unit, other, -1)
    w.units[unit].slot = slot
    if other >= 0:
        w.units[other].slot = other_slot
    return lay_nets(w, unit, other, 1) - before


def is_edge(state: Annealing, site: int) -> bool:
    """Whether a site is in the first or last column or row."""
    column, row = site % state.columns, site // state.columns
    return column == 0 or row == 0 or column == state.columns - 1 or row == state.rows - 1


def drawn_site(w: Placing, unit: PlacedUnit, reach: int) -> int:
    """Return a random site near a unit, or next to a unit with the same net; -1 if off the mesh."""
    state = w.state
    centre = unit.slot // state.slots_per_site
    count = unit.end_net - unit.first_net
    if count > 0 and drawn(state, 2) == 0:
        net = w.nets[w.listed[unit.first_net + drawn(state, count)]]
        pin = net.first_pin + drawn(state, net.end_pin - net.first_pin)
        centre = w.units[w.pins[pin]].slot // state.slots_per_site
        reach = 1
    column = centre % state.columns + drawn(state, 2 * reach + 1) - reach
    row = centre // state.columns + drawn(state, 2 * reach + 1) - reach
    if column < 0 or column >= state.columns or row < 0 or row >= state.rows:
        return -1
    return row * state.columns + column


@MachineCode
def anneal(w: Placing, moves: int, temperature: int, reach: int) -> tuple[int]:
    """Try ``moves`` swaps of two slots; return the number of swaps that were kept.

    Half of the tries go to a random site within ``reach`` columns and rows, the other half next to
    a unit that shares a net. A swap that makes the plan dearer by d bytes is kept if d is at most
    ``temperature`` times an exponential random number (Metropolis' rule).
    """
    kept = 0
    state = w.state
    for _ in range(moves):
        number = drawn(state, w.units.size)
        unit = w.units[number]
        slot = unit.slot
        site = slot // state.slots_per_site
        target = drawn_site(w, unit, reach)
        if target in (-1, site):
            continue
        new_slot = target * state.slots_per_site + drawn(state, state.slots_per_site)
        other = w.slots[new_slot]
        if unit.on_edge == 1 and not is_edge(state, target):
            continue
        if other >= 0 and w.units[other].on_edge == 1 and not is_edge(state, site):
            continue
        moved_bytes = unit.size_bytes - (w.units[other].size_bytes if other >= 0 else 0)
        if state.site_bytes >= 0 and (
            w.used_bytes[target] + moved_bytes > state.site_bytes
            or w.used_bytes[site] - moved_bytes > state.site_bytes
        ):
            continue
        worst = state.worst_load
        quantile = w.quantiles[drawn(state, 1 << QUANTILE_BITS)]
        state.is_stale = 0
        more_hops = swap(w, number, new_slot, other, slot)
        if state.is_stale == 1 and state.worst_load == worst:
            state.worst_load = 0
            for link in range(w.links.size):
                state.worst_load = max(state.worst_load, w.links[link].load)
        dearer = more_hops + state.worst_load - worst
        if dearer <= temperature * quantile >> QUANTILE_UNIT_BITS:
            kept += 1
            w.slots[new_slot] = number
            w.slots[slot] = other
            w.used_bytes[target] += moved_bytes
            w.used_bytes[site] -= moved_bytes
            state.byte_hops += more_hops
            continue
        swap(w, number, slot, other, new_slot)
        state.worst_load = worst
    return (kept,)

"""The state of a live machine, as data, and what went over its network."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from fabric.timing.engine.networked_channel import NetworkedChannel
from fabric.timing.engine.off_chip import counters_of
from fabric.timing.state.resource_use import LinkUse, MemoryUse, NetworkUse, RouteUse
from fabric.timing.state.run_state import ChannelState, OnChipState, RunState, UnitState, WaitState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.on_chip import OnChipMemory
    from fabric.timing.engine.unit import Unit, Wait, Watched
    from fabric.timing.machine.machine import FixedChannel, FixedUnit, Machine

__all__ = ["clients_of", "cycles_of", "memory_use", "network_use", "shutdown_cycles_of", "state_of"]


def state_of(machine: Machine) -> RunState:
    """Return the state of ``machine``; to be called while no unit runs.

    It takes some 1 microsecond for a unit and as much for a channel.
    """
    machine.publish()
    number: dict[Watched, int] = {channel: at for at, channel in enumerate(machine.channels)}
    off_chip = machine.off_chip
    units = zip(machine.fixed.units, machine.units, strict=True)
    channels = zip(machine.fixed.channels, machine.channels, strict=True)
    return RunState(
        program=machine.plan.program.name,
        cycles=cycles_of(machine),
        units=tuple([_unit(fixed, unit, number) for fixed, unit in units]),
        channels=tuple([_channel(fixed, channel) for fixed, channel in channels]),
        on_chip=_on_chip(machine.on_chip),
        hbm_bytes_moved=0 if off_chip is None else off_chip.bytes_moved,
        hbm=None if off_chip is None else counters_of(off_chip),
    )


def cycles_of(machine: Machine) -> int:
    """Return the largest clock, the HBM's included once it stops: when its clients have ended."""
    machine.publish()
    cycles = max(unit.now for unit in machine.units)
    off_chip = machine.off_chip
    if off_chip is not None and off_chip.final_cycle is not None:
        cycles = max(cycles, off_chip.final_cycle)
    return cycles


def clients_of(plan: Plan) -> tuple[int, ...]:
    """Return the numbers of the units that the off-chip memory serves."""
    return tuple(plan.clients)


def shutdown_cycles_of(machine: Machine) -> int:
    """Return how long after its last client the off-chip memory stops, which has stopped."""
    off_chip = machine.off_chip
    if off_chip is None or off_chip.final_cycle is None:
        return 0
    last_cycle = max(machine.units[client].now for client in clients_of(machine.plan))
    return off_chip.final_cycle - last_cycle


def memory_use(machine: Machine) -> MemoryUse:
    """Return what went to and from the memories of ``machine``, whose run has ended."""
    moved: Counter[str | None] = Counter()
    for node, unit in zip(machine.plan.nodes, machine.units, strict=True):
        if unit.off_chip_bytes:
            spilled = node.operator.off_chip is None
            moved[f"spilled {node.operator.spills}" if spilled else node.operator.off_chip] += (
                unit.off_chip_bytes
            )
    on_chip = machine.on_chip
    return MemoryUse(
        moved["read"],
        moved["write"],
        on_chip.peak_bytes,
        on_chip.peak_pages,
        on_chip.peak_empty_bytes,
        moved["spilled write"],
        moved["spilled read"],
    )


def _unit(fixed: FixedUnit, unit: Unit, number: Mapping[Watched, int]) -> UnitState:
    wait = unit.wait
    return UnitState(
        *fixed,
        unit.now,
        unit.finished,
        None if wait is None else _wait(wait, number),
        unit.busy_cycles,
        unit.off_chip_cycles,
        unit.capacity_cycles,
        unit.flops,
    )


def _wait(wait: Wait, number: Mapping[Watched, int]) -> WaitState:
    channels = tuple([number[channel] for channel in wait.channels])
    return WaitState(wait.operation, channels, wait.since_cycle, wait.any_of, wait.stops)


def _channel(fixed: FixedChannel, channel: Channel) -> ChannelState:
    held = channel.held_elements
    taken = channel.elements
    sent = taken + channel.held_values if held else taken
    return ChannelState(
        *fixed,
        channel.depth,
        channel.forward_cycles,
        channel.backward_cycles,
        held,
        sent,
        taken,
        channel.sent - sent,
        channel.closed_cycle,
        channel.last_sent_cycle,
        channel.last_taken_cycle,
        channel.peak_occupancy,
        channel.empty_cycles,
        channel.full_cycles,
        channel.credit_cycles,
        channel.left_over,
    )


def _on_chip(memory: OnChipMemory) -> OnChipState:
    held = [(unit.index, held_bytes) for unit, held_bytes in memory.held_by.items() if held_bytes]
    requests = [(unit.index, wanted_bytes) for unit, wanted_bytes in memory.requests]
    return OnChipState(memory.capacity_bytes, tuple(requests), tuple(sorted(held)), memory.pages)


def network_use(machine: Machine) -> NetworkUse | None:
    """Return it; None where units have no sites."""
    floor, routes = machine.plan.floor, machine.routes
    if floor is None or routes is None:
        return None
    mesh = floor.mesh
    edges = machine.plan.edges
    used = []
    for edge, channel in zip(edges, machine.channels, strict=True):
        source, target = floor.site_of(edge.producer), floor.site_of(edge.consumer)
        if source != target:
            way = channel.way if isinstance(channel, NetworkedChannel) else None
            used.append(
                RouteUse(
                    channel.name,
                    tuple(source),
                    tuple(target),
                    channel.forward_cycles,
                    None if way is None else way.bytes_sent,
                    0 if way is None else way.links_cycles,
                )
            )
    carried: dict[int, int] = defaultdict(int)
    users: dict[int, list[str]] = defaultdict(list)
    for links, numbers in routes.trees:
        channel = machine.channels[numbers[0]]
        assert isinstance(channel, NetworkedChannel)
        for link in links:
            carried[link] += channel.way.bytes_sent
            users[link] += [edges[number].name for number in numbers]
    wired = {node.index for node in machine.plan.program.nodes}
    per_site = [
        sum(node.index in wired for node in nodes)
        for _, nodes in floor.units_at(machine.plan.nodes)
        if nodes
    ]
    return NetworkUse(
        placement=floor.file,
        sites=len(per_site),
        most_units=max(per_site),
        routes=tuple(used),
        links=tuple(
            LinkUse(mesh.link_name(link), carried[link], mesh.capacities[link], tuple(users[link]))
            for link in sorted(carried)
            if carried[link]
        ),
    )

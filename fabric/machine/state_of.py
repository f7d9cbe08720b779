"""The state of a live machine, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.engine.unit import ComputeUnit
from fabric.state.memory_use import MemoryUse
from fabric.state.run_state import ChannelState, OnChipState, RunState, UnitState, WaitState
from fabric.values.stream_type import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabric.engine.channel import Channel
    from fabric.engine.on_chip import OnChipMemory
    from fabric.engine.unit import Unit, Wait, Watched
    from fabric.machine.machine import Machine
    from fabric.wiring.elaborate import Edge
    from fabric.wiring.operator import Node

__all__ = ["memory_use", "state_of"]


def state_of(machine: Machine) -> RunState:
    """Return the state of ``machine``; to be called while no unit runs.

    It takes some 1 microsecond for a unit and 2 for a channel.
    """
    plan = machine.plan
    channels = machine.channels
    number: dict[Watched, int] = {channel: index for index, channel in enumerate(channels)}
    off_chip = machine.off_chip
    cycles = max(unit.now for unit in machine.units)
    if off_chip is not None and off_chip.final_cycle is not None:
        cycles = max(cycles, off_chip.final_cycle)
    return RunState(
        program=plan.program.name,
        cycles=cycles,
        units=tuple(
            [
                _unit(unit, node, number)
                for unit, node in zip(machine.units, plan.nodes, strict=True)
            ]
        ),
        channels=tuple(
            [
                _channel(index, channel, edge)
                for index, (channel, edge) in enumerate(zip(channels, plan.edges, strict=True))
            ]
        ),
        on_chip=_on_chip(machine.on_chip),
        hbm_bytes_moved=0 if off_chip is None else off_chip.bytes_moved,
    )


def memory_use(machine: Machine) -> MemoryUse:
    """Return what went to and from the memories of ``machine``, whose run has ended."""
    sides = [node.operator.off_chip for node in machine.plan.nodes]
    loaded, stored = (
        sum(
            unit.off_chip_bytes
            for unit, its in zip(machine.units, sides, strict=True)
            if its == side
        )
        for side in ("read", "write")
    )
    return MemoryUse(loaded, stored, machine.on_chip.peak_bytes)


def _unit(unit: Unit, node: Node, number: Mapping[Watched, int]) -> UnitState:
    wait = unit.wait
    return UnitState(
        unit.index,
        unit.name,
        type(node.operator).__name__,
        unit.kind,
        unit.place,
        unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0,
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


def _channel(number: int, channel: Channel, edge: Edge) -> ChannelState:
    queue = channel.queue
    taken = channel.elements
    return ChannelState(
        number,
        channel.name,
        edge.key,
        channel.producer.index,
        channel.consumer.index,
        kind_of(edge.type.value),
        channel.depth,
        len(queue),
        taken + channel.held_values if queue else taken,
        taken,
        channel.closed_cycle,
        queue[-1][0] if queue else None,
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
    return OnChipState(memory.capacity_bytes, tuple(requests), tuple(sorted(held)))

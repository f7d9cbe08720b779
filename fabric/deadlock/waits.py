"""The waits of a machine that has come to rest, as the reduction sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from fabric.deadlock.reduction import Need, blocked, cores
from fabric.values.stream_type import BufferType

if TYPE_CHECKING:
    from fabric.engine.channel import Channel
    from fabric.engine.unit import Unit
    from fabric.machine.machine import Machine

__all__ = ["Stuck", "find_stuck", "growable", "is_lost", "lost_room", "rotated"]


class Stuck(NamedTuple):
    """What of a machine can never go on.

    Attributes:
        cores: loops of units, or single ones that wait for something that has ended; each in the
            order of its waits.
        tail: units that wait behind them, in node order.
        needs: what each of them waits for, by node.
    """

    cores: list[list[Unit]]
    tail: list[Unit]
    needs: dict[int, Need]


def find_stuck(machine: Machine) -> Stuck:
    """Find the units that can never go on; empty where all of them can.

    To be called while no unit runs.
    """
    units = machine.units
    needs = {}
    live = []
    for unit in units:
        wait = unit.wait
        if wait is None or wait.operation in ("reach", "off-chip"):
            if not unit.finished:
                live.append(unit.index)
        else:
            any_of = wait.any_of or wait.operation == "capacity"
            needs[unit.index] = Need(tuple(_peers(machine, unit)), any_of)
    stuck = blocked(needs, live)
    groups = cores(needs, stuck)
    in_core = {node for group in groups for node in group}
    return Stuck(
        [rotated([units[node] for node in group]) for group in groups],
        [units[node] for node in sorted(stuck - in_core)],
        needs,
    )


def _peers(machine: Machine, unit: Unit) -> Iterator[int]:
    """Yield the nodes that could let ``unit`` go on."""
    wait = unit.wait
    assert wait is not None
    if wait.operation == "capacity":
        yield from sorted(_who_frees(machine, unit))
        return
    for channel in wait.channels:
        if wait.operation == "send":
            if not is_lost(channel):
                yield channel.consumer.index
        elif channel.closed_cycle is None:
            yield channel.producer.index


def _who_frees(machine: Machine, unit: Unit) -> set[int]:
    """Return the nodes that could give ``unit`` room on chip."""
    memory = machine.on_chip
    (first, _), *_ = memory.requests
    if first is not unit:
        return {first.index}
    holders = [owner.index for owner, held_bytes in memory.held_by.items() if held_bytes]
    return set().union(*(_holding(machine, holder) for holder in holders))


def _holding(machine: Machine, owner: int) -> set[int]:
    """Return a node that asked for room and those that may hold references to its buffers."""
    found = {owner}
    ahead = [owner]
    while ahead:
        node = ahead.pop()
        for edge in machine.plan.edges:
            carries = isinstance(edge.producer.outputs[edge.output].value, BufferType)
            if edge.producer.index == node and carries and edge.consumer.index not in found:
                found.add(edge.consumer.index)
                ahead.append(edge.consumer.index)
    return found


def lost_room(machine: Machine) -> list[tuple[Unit, int]]:
    """Return units that hold room on chip although they and all their readers have ended."""
    held = sorted(machine.on_chip.held_by.items(), key=lambda item: item[0].index)
    return [
        (owner, held_bytes)
        for owner, held_bytes in held
        if held_bytes
        and all(machine.units[node].finished for node in _holding(machine, owner.index))
    ]


def is_lost(channel: Channel) -> bool:
    """Whether the producer waits for a slot although there are free ones: credits are lost."""
    return len(channel.queue) < channel.depth


def rotated(loop: list[Unit]) -> list[Unit]:
    """Let a loop begin with its first unit that waits to send, where there is one."""
    for position, unit in enumerate(loop):
        if unit.wait is not None and unit.wait.operation == "send":
            return loop[position:] + loop[:position]
    return loop


def growable(loop: list[Unit]) -> Channel | None:
    """Return the channel that more slots may help: the shallowest full one of the loop.

    Source: T. Parks, Bounded Scheduling of Process Networks, 1995.
    """
    full = [
        unit.wait.channels[0]
        for unit in loop
        if unit.wait is not None
        and unit.wait.operation == "send"
        and not is_lost(unit.wait.channels[0])
    ]
    return min(full, key=lambda channel: channel.depth, default=None)

"""The waits of a machine that has come to rest, as the reduction sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from fabric.deadlock.reduction import Need, blocked, cores

if TYPE_CHECKING:
    from fabric.channel import Channel
    from fabric.machine import Machine
    from fabric.unit import Unit

__all__ = ["Stuck", "find_stuck", "growable", "is_lost", "rotated"]


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
            needs[unit.index] = Need(tuple(_peers(machine, unit)), wait.any_of)
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
        # Whoever still runs may hold room on chip and give it back.
        holders = machine.on_chip.holders
        yield from (u.index for u in holders if u is not unit and not u.finished)
        return
    for channel in wait.channels:
        if wait.operation == "send":
            if not is_lost(channel):
                yield channel.consumer.index
        elif channel.closed_cycle is None:
            yield channel.producer.index


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

"""Who waits for what since which cycle, when a program has stopped moving."""

from __future__ import annotations

from typing import Any

from fabric.channel import Channel
from fabric.machine import Machine
from fabric.unit import Unit

__all__ = ["waiting_units"]


def waiting_units(machine: Machine) -> dict[str, Any]:
    """Return the cycle at which all stopped, and each wait, in node order."""
    units = [unit for unit in machine.units if unit.wait is not None]
    return {
        "cycle": max((unit.now for unit in units), default=0),
        "waits": [_wait(unit) for unit in units],
    }


def _wait(unit: Unit) -> dict[str, Any]:
    wait = unit.wait
    assert wait is not None
    return {
        "unit": unit.name,
        "operation": wait.operation,
        "any_of": wait.any_of,
        "channels": [_channel(channel) for channel in wait.channels],
        "since_cycle": wait.since_cycle,
        "file": unit.place.file,
        "line": unit.place.line,
    }


def _channel(channel: Channel) -> dict[str, Any]:
    return {
        "name": channel.name,
        "held": len(channel.queue),
        "depth": channel.depth,
        "ended": channel.closed_cycle is not None,
    }

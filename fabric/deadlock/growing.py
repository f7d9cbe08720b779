"""Parks' rule: where a run stops, the shallowest full channel of every loop gets more slots.

Source: T. Parks, Bounded Scheduling of Process Networks, 1995.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.deadlock.waits import find_stuck, growable
from fabric.engine.channel import Channel
from fabric.machine.state_of import state_of
from fabric.telling.causes import Operation

if TYPE_CHECKING:
    from fabric.engine.unit import Unit, Wait
    from fabric.machine.machine import Machine

__all__ = ["Growth"]

_FINE_STEPS: Final = 8
"""A channel grows by one slot up to this depth, then by an eighth of its depth."""


class Growth:
    """Lets the channels of a machine grow.

    Attributes:
        grown: their depths since, by option.
    """

    def __init__(self, machine: Machine) -> None:
        self.grown: Final[dict[str, int]] = {}
        self._machine: Final = machine
        self._waits: list[Wait | None] = []
        self._latest: list[Channel] = []
        self._option: Final = {
            channel: fixed.option
            for channel, fixed in zip(machine.channels, machine.fixed.channels, strict=True)
        }

    def grow(self) -> bool:
        """Let one channel of every loop grow, while nothing can happen; whether any did."""
        full = self._at_a_glance()
        if full is None:
            self._waits = []
            full = self._in_full()
        self._latest = full
        for channel in full:
            channel.grow(1 + max(0, channel.depth - _FINE_STEPS) // 8)
            self.grown[self._option[channel]] = channel.depth
        return bool(full)

    def _in_full(self) -> list[Channel]:
        state = state_of(self._machine)
        found = [growable(state, loop) for loop in find_stuck(state).cores]
        return [self._machine.channels[each.number] for each in found if each is not None]

    def _at_a_glance(self) -> list[Channel] | None:
        """Return what ``_in_full`` does, in a hundredth of the time; None where it takes that.

        Where every unit waits for one channel, who waits for whom leads to the loops: new ones are
        where a unit waits for something else than before, or for a channel that has grown. Of
        thousands of growths nearly all the time went into states that were looked at once.
        """
        units = self._machine.units
        before, self._waits = self._waits or [None] * len(units), [unit.wait for unit in units]
        changed = zip(units, self._waits, before, strict=True)
        starts = [unit for unit, now, then in changed if now is not then]
        starts += [channel.producer for channel in self._latest]
        full = []
        passed: dict[Unit, int] = {}
        for start, first in enumerate(starts):
            unit = first
            while not unit.finished and unit not in passed:
                passed[unit] = start
                channel = _awaited(unit)
                if channel is None:
                    return None
                unit = _peer(unit, channel)
            if not unit.finished and passed[unit] == start:
                full += _shallowest(unit)
        return full


def _awaited(unit: Unit) -> Channel | None:
    """Return the channel that ``unit`` waits for; None where it is not as simple as that."""
    wait = unit.wait
    if wait is None or len(wait.channels) != 1:
        return None
    (channel,) = wait.channels
    assert isinstance(channel, Channel)
    lost = _sends(unit) and len(channel.queue) < channel.depth
    return None if lost else channel


def _peer(unit: Unit, channel: Channel) -> Unit:
    """Return who could let ``unit`` go on, which waits for ``channel``."""
    return channel.consumer if _sends(unit) else channel.producer


def _sends(unit: Unit) -> bool:
    return unit.wait is not None and unit.wait.operation is Operation.SEND


def _shallowest(first: Unit) -> list[Channel]:
    """Return the shallowest full channel of the loop of ``first``, where there is one."""
    loop: dict[Unit, Channel] = {}
    unit = first
    while unit not in loop:
        channel = _awaited(unit)
        assert channel is not None
        loop[unit] = channel
        unit = _peer(unit, channel)
    # Of channels that are as shallow it is the first behind the lowest unit.
    units = list(loop)
    lowest = units.index(min(units, key=lambda each: each.index))
    ordered = units[lowest:] + units[:lowest]
    full = [loop[each] for each in ordered if _sends(each)]
    return [min(full, key=lambda channel: channel.depth)] if full else []

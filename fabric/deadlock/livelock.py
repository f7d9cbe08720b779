"""A heuristic for programs that move for ever and get nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.engine.checked_unit import UserUnit

if TYPE_CHECKING:
    from fabric.engine.channel import Channel
    from fabric.machine.machine import Machine

__all__ = ["LIVELOCK_CYCLES", "LivelockWatch"]

LIVELOCK_CYCLES: Final = 10_000_000

_LOOKS: Final = 10
"""How many times in a row no progress has to be seen, where nobody says otherwise."""


class LivelockWatch:
    """Stops a machine in which the clock advances for long and nothing gets done.

    Something gets done when a sink receives, a unit charges work, or a burst of the HBM
    completes.

    Attributes:
        cycles: without progress that are a livelock.
        moving: channels on which elements went round all that time, once it has stopped.
    """

    def __init__(self, machine: Machine, cycles: int, looks: int = _LOOKS) -> None:
        """Watch ``machine``, looking so many times in ``cycles``."""
        self._machine = machine
        self.cycles: Final = cycles
        self._sinks = [
            channel
            for channel, edge in zip(machine.channels, machine.plan.edges, strict=True)
            if not edge.consumer.outputs
        ]
        self._done = self._work_done()
        self._most_looks: Final = looks
        self._looks = 0
        self._counts: list[int] = []
        self.moving: list[Channel] = []
        machine.clock.watch(self._look, -(-cycles // looks))
        for unit in machine.units:
            if isinstance(unit, UserUnit):
                unit.most_steps = cycles

    @property
    def found(self) -> bool:
        """Whether there is one."""
        return bool(self.moving or self._machine.circling)

    def _look(self) -> None:
        done = self._work_done()
        if done != self._done:
            self._done, self._looks = done, 0
        if not self._looks:
            self._counts = [channel.elements for channel in self._machine.channels]
        self._looks += 1
        if self._looks <= self._most_looks:
            return
        self.moving = [
            channel
            for channel, before in zip(self._machine.channels, self._counts, strict=True)
            if channel.elements > before
        ]
        self._machine.clock.stopping = True

    @property
    def arrived(self) -> tuple[int, int]:
        """What reached the HBM, in cycles waited for it, and the sinks, in elements."""
        units = self._machine.units
        return (
            sum(unit.off_chip_cycles for unit in units),
            sum(channel.elements for channel in self._sinks),
        )

    def _work_done(self) -> tuple[int, int, int]:
        return (sum(unit.busy_cycles for unit in self._machine.units), *self.arrived)

"""A heuristic for programs that move for ever and get nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fabric.channel import Channel
    from fabric.machine import Machine

__all__ = ["LIVELOCK_CYCLES", "LivelockWatch"]

LIVELOCK_CYCLES: Final = 10_000_000

_LOOKS: Final = 10
"""How many times in a row no progress has to be seen."""


class LivelockWatch:
    """Stops a machine in which the clock advances for long and nothing gets done.

    Something gets done when a sink receives, a unit charges work, or a burst of the off-chip
    memory completes.

    Attributes:
        cycles: without progress that are a livelock.
        moving: channels on which elements went round all that time, once it has stopped.
    """

    def __init__(self, machine: Machine, cycles: int) -> None:
        """Watch ``machine``."""
        self._machine = machine
        self.cycles: Final = cycles
        self._sinks = [
            channel
            for channel, edge in zip(machine.channels, machine.plan.edges, strict=True)
            if not edge.consumer.outputs
        ]
        self._done = self._work_done()
        self._looks = 0
        self._counts: list[int] = []
        self.moving: list[Channel] = []
        machine.clock.watch(self._look, -(-cycles // _LOOKS))

    def _look(self) -> None:
        done = self._work_done()
        if done != self._done:
            self._done, self._looks = done, 0
        if not self._looks:
            self._counts = [channel.elements for channel in self._machine.channels]
        self._looks += 1
        if self._looks <= _LOOKS:
            return
        self.moving = [
            channel
            for channel, before in zip(self._machine.channels, self._counts, strict=True)
            if channel.elements > before
        ]
        self._machine.clock.stopping = True

    def _work_done(self) -> tuple[int, int, int]:
        units = self._machine.units
        return (
            sum(unit.busy_cycles for unit in units),
            sum(unit.off_chip_cycles for unit in units),
            sum(channel.elements for channel in self._sinks),
        )

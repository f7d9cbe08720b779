"""A heuristic for programs that run forever without progress."""

from __future__ import annotations

from typing import Final, NamedTuple

from fabric.messages.place import Place
from fabric.timing.guards.operators import GuardedUnit
from fabric.timing.machine.machine import Machine

LIVELOCK_CYCLES: Final = 10_000_000

_LOOKS: Final = 10
"""Number of checks for progress in ``LIVELOCK_CYCLES``."""


class Circling(NamedTuple):
    """A unit that charges cycles without progress, and the line in which it was stopped."""

    unit: int
    place: Place | None


class Livelock(NamedTuple):
    """Units and channels that move without progress for ``cycles`` cycles."""

    cycles: int
    moving: tuple[int, ...]
    circling: tuple[Circling, ...]


class LivelockWatch:
    """Stops a run in which the clock advances for a long time without progress.

    Progress is a sink that receives, a unit that charges work, or a completed HBM burst.
    """

    def __init__(self, machine: Machine, cycles: int, looks: int = _LOOKS) -> None:
        self.cycles: Final = cycles
        self._machine: Final = machine
        self._sinks: Final = machine.sinks
        self._progress = self._progress_now()
        self._most_looks: Final = looks
        self._looks = 0
        self._counts: list[int] = []
        self.moving: tuple[int, ...] = ()
        machine.clock.watch(self._look, -(-cycles // looks))
        for unit in machine.units:
            if isinstance(unit, GuardedUnit):
                unit.guard.most_steps = cycles

    def _look(self) -> None:
        progress, channels = self._progress_now(), self._machine.channels
        if progress != self._progress:
            self._progress, self._looks = progress, 0
        if not self._looks:
            self._counts = [channel.elements for channel in channels]
        self._looks += 1
        if self._looks <= self._most_looks:
            return
        self.moving = tuple(
            n for n, channel in enumerate(channels) if channel.elements > self._counts[n]
        )
        self._machine.clock.stopping = True

    @property
    def arrived(self) -> tuple[int, int]:
        """Cycles waited for the HBM, and elements received by the sinks."""
        return (
            sum(unit.off_chip_cycles for unit in self._machine.units),
            sum(channel.elements for channel in self._sinks),
        )

    def _progress_now(self) -> tuple[int, int, int]:
        machine = self._machine
        machine.publish()
        return (sum(unit.busy_cycles for unit in machine.units), *self.arrived)

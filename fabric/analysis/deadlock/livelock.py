"""A heuristic for programs that move for ever and get nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.timing.engine.checked_operator import CheckedUnit

if TYPE_CHECKING:
    from fabric.messages.telling.place import Place
    from fabric.timing.machine.machine import Machine

LIVELOCK_CYCLES: Final = 10_000_000

_LOOKS: Final = 10
"""How many times in a row no progress has to be seen, where nobody says otherwise."""


class Circling(NamedTuple):
    """A unit that charged on and on.

    Attributes:
        unit: its number.
        place: the line in which it was stopped; None where that is not known.
    """

    unit: int
    place: Place | None


class Livelock(NamedTuple):
    """Who moves in a run and gets nowhere.

    Attributes:
        cycles: that nothing got done.
        moving: numbers of channels on which elements went round all that time.
        circling: units that went round in loops of their own.
    """

    cycles: int
    moving: tuple[int, ...]
    circling: tuple[Circling, ...]


class LivelockWatch:
    """Stops a run in which the clock advances for long and nothing gets done.

    Something gets done when a sink receives, a unit charges work, or a burst of the HBM
    completes. It looks at the counters themselves, a few sums, again and again.

    Attributes:
        cycles: without progress that are a livelock.
        moving: numbers of channels on which elements went round all that time, once it has
            stopped the run.
    """

    def __init__(
        self,
        machine: Machine,
        cycles: int,
        looks: int = _LOOKS,
    ) -> None:
        """Watch a run.

        Args:
            machine: what runs.
            cycles: without progress that are a livelock.
            looks: so many times in these cycles.
        """
        self.cycles: Final = cycles
        self._machine: Final = machine
        self._sinks: Final = machine.sinks
        self._done = self._work_done()
        self._most_looks: Final = looks
        self._looks = 0
        self._counts: list[int] = []
        self.moving: tuple[int, ...] = ()
        machine.clock.watch(self._look, -(-cycles // looks))
        for unit in machine.units:
            if isinstance(unit, CheckedUnit):
                unit.most_steps = cycles

    def _look(self) -> None:
        done = self._work_done()
        if done != self._done:
            self._done, self._looks = done, 0
        if not self._looks:
            self._counts = [channel.elements for channel in self._machine.channels]
        self._looks += 1
        if self._looks <= self._most_looks:
            return
        self.moving = tuple(
            number
            for number, (channel, before) in enumerate(
                zip(self._machine.channels, self._counts, strict=True)
            )
            if channel.elements > before
        )
        self._machine.clock.stopping = True

    @property
    def arrived(self) -> tuple[int, int]:
        """What reached the HBM, in cycles waited for it, and the sinks, in elements."""
        return (
            sum(unit.off_chip_cycles for unit in self._machine.units),
            sum(channel.elements for channel in self._sinks),
        )

    def _work_done(self) -> tuple[int, int, int]:
        machine = self._machine
        machine.publish()
        return (sum(unit.busy_cycles for unit in machine.units), *self.arrived)

"""Runs of the same program with other depths, to try a remedy before it is named."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import trio

from fabric.accounting import run_cycles
from fabric.deadlock.livelock import LIVELOCK_CYCLES, LivelockWatch
from fabric.deadlock.waits import find_stuck, growable
from fabric.machine import Machine
from fabric.outside import IdleClock

if TYPE_CHECKING:
    from fabric.elaborate import Plan

__all__ = ["Outcome", "Trial"]

_CHECK_CYCLES: Final = 100_000
"""How often the effort is checked, where all units are at rest: the same in every run."""

_FINE_STEPS: Final = 8
"""A channel grows by one slot up to this depth, then by an eighth of its depth."""


Ending = Literal["completed", "stuck", "livelock", "failed", "stopped"]


class Outcome(NamedTuple):
    """How a trial ended.

    Attributes:
        ending: how; ``stopped`` when it took too long.
        grown: depths of the channels that were grown, by option.
        cycle: of its end, or where the last of the units that wait came to rest.
        loops: names of the units of each loop it stopped in.
        elements: how many it delivered.
        peak_bytes: the most that was held on chip in any cycle.
        failure: the error, where it failed.
    """

    ending: Ending
    grown: dict[str, int]
    cycle: int
    loops: frozenset[frozenset[str]]
    elements: int
    peak_bytes: int
    failure: str | None


class Trial:
    """One run from cycle 0 in timing mode, in which channels may grow where it stops."""

    def __init__(
        self,
        plan: Plan,
        depths: Mapping[str, int],
        *,
        grow: bool,
        effort: int | None,
        capacity_bytes: int | None,
    ) -> None:
        """Build the machine.

        Args:
            plan: the program.
            depths: of single channels, by option.
            grow: add slots to the shallowest full channel of every loop, and go on.
            effort: elements after which the trial is stopped; None for no limit.
            capacity_bytes: of the on-chip memory; None for no limit.
        """
        self._grow = grow
        self._effort = effort
        self._grown: dict[str, int] = {}
        self._stopped = False
        self._loops: frozenset[frozenset[str]] = frozenset()
        self._scope = trio.CancelScope()
        self._machine = Machine(
            plan,
            functional=False,
            depths=depths,
            capacity_bytes=capacity_bytes,
            on_quiescence=self._rest,
            on_heartbeat=self._check,
            beat_cycles=_CHECK_CYCLES,
        )
        self._options = {
            channel: edge.key
            for channel, edge in zip(self._machine.channels, plan.edges, strict=True)
        }
        self._watch = LivelockWatch(self._machine, LIVELOCK_CYCLES)

    def run(self) -> Outcome:
        """Run to the end, to a stop that no growth releases, or until it takes too long."""
        machine = self._machine
        trio.run(
            machine.run,
            self._scope,
            clock=IdleClock(partial(machine.end_outside, self._scope)),
            restrict_keyboard_interrupt_to_checkpoints=True,
        )
        ending: Ending = "stuck"
        if machine.failures:
            ending = "failed"
        elif all(unit.finished for unit in machine.units):
            ending = "completed"
        elif self._watch.moving:
            ending = "livelock"
        elif self._stopped:
            ending = "stopped"
        cycle = machine.stopped_cycle if ending == "stuck" else run_cycles(machine)
        failure = machine.first_failure()
        return Outcome(
            ending,
            self._grown,
            cycle,
            self._loops,
            machine.elements,
            machine.on_chip.peak_bytes,
            None if failure is None else failure.message,
        )

    def _rest(self) -> None:
        """Nothing can happen any more: grow, or stop."""
        machine = self._machine
        if not machine.clock.stopping and not all(unit.finished for unit in machine.units):
            loops = find_stuck(machine).cores
            full = [channel for loop in loops if (channel := growable(loop)) is not None]
            if self._grow and full:
                for channel in full:
                    beyond = max(0, channel.depth - _FINE_STEPS)
                    channel.grow(1 + beyond // 8)
                    self._grown[self._options[channel]] = channel.depth
                return
            self._loops = frozenset(frozenset(unit.name for unit in loop) for loop in loops)
        machine.stop(self._scope)

    def _check(self) -> None:
        if self._effort is not None and self._machine.elements > self._effort:
            self._stopped = True
            self._machine.clock.stopping = True

"""Runs of the same program with other depths, to try a remedy before it is named."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import trio

from fabric.deadlock.cause import code
from fabric.deadlock.livelock import LIVELOCK_CYCLES, LivelockWatch
from fabric.deadlock.tokens import Tokens
from fabric.deadlock.waits import find_stuck, growable
from fabric.machine.foreign import IdleClock
from fabric.machine.machine import Machine
from fabric.runs.accounting import run_cycles

if TYPE_CHECKING:
    from fabric.engine.unit import Unit
    from fabric.wiring.elaborate import Plan
    from fabric.wiring.stream import Feedback

__all__ = ["Outcome", "Trial"]

_CHECK_CYCLES: Final = 100_000
"""How often the effort is checked, where all units are at rest: the same in every run."""

_IDLE_CHECK_CYCLES: Final = 10_000
"""The same where elements may go round for ever."""

_IDLE_ELEMENTS: Final = 20_000
"""So many of them may go round before one reaches a sink or the HBM."""

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
        lacks_room: in one of them a unit waits for on-chip capacity that others hold.
        feedbacks: that close each loop in which nothing is on its way.
        hopeless: a loop is stuck in another way, and not for slots.
        elements: how many it delivered.
        peak_bytes: the most that was held on chip in any cycle.
        failure: the error, where it failed.
    """

    ending: Ending
    grown: dict[str, int]
    cycle: int
    loops: frozenset[frozenset[str]]
    lacks_room: bool
    feedbacks: tuple[tuple[Feedback, ...], ...]
    hopeless: bool
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
        may_go_round: bool = False,
    ) -> None:
        """Build the machine.

        Args:
            plan: the program.
            depths: of single channels, by option; of others, which the plan does not have, too.
            grow: add slots to the shallowest full channel of every loop, and go on.
            effort: elements after which the trial is stopped; None for no limit.
            capacity_bytes: of the on-chip memory; None for no limit.
            may_go_round: stop it where elements go round and none comes out.
        """
        self._may_go_round = may_go_round
        check_cycles = _IDLE_CHECK_CYCLES if may_go_round else _CHECK_CYCLES
        self._grow = grow
        self._effort = effort
        self._grown: dict[str, int] = {}
        self._stopped = False
        self._loops: list[list[Unit]] = []
        self._scope = trio.CancelScope()
        self._machine = Machine(
            plan,
            functional=False,
            depths={edge.key: depths[edge.key] for edge in plan.edges if edge.key in depths},
            capacity_bytes=capacity_bytes,
            on_quiescence=self._rest,
            on_heartbeat=self._check,
            beat_cycles=check_cycles,
        )
        self._options = {
            channel: edge.key
            for channel, edge in zip(self._machine.channels, plan.edges, strict=True)
        }
        looks = LIVELOCK_CYCLES // check_cycles
        self._watch = LivelockWatch(self._machine, LIVELOCK_CYCLES, looks)
        self._arrived = self._watch.arrived
        self._idle_from = 0

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
        elif self._watch.found:
            ending = "livelock"
        elif self._stopped:
            ending = "stopped"
        cycle = machine.stopped_cycle if ending == "stuck" else run_cycles(machine)
        failure = machine.first_failure()
        tokens = Tokens(machine) if self._loops else None
        codes = [code(loop, tokens) for loop in self._loops] if tokens is not None else []
        return Outcome(
            ending,
            self._grown,
            cycle,
            frozenset(frozenset(unit.name for unit in loop) for loop in self._loops),
            "FAB-D006" in codes,
            tuple(
                tokens.feedbacks(loop)
                for loop, each in zip(self._loops, codes, strict=True)
                if tokens is not None and each == "FAB-D002"
            ),
            bool({"FAB-D003", "FAB-D005"} & set(codes)),
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
            self._loops = loops
        machine.stop(self._scope)

    def _check(self) -> None:
        elements = self._machine.elements
        if self._may_go_round and self._arrived != (arrived := self._watch.arrived):
            self._arrived, self._idle_from = arrived, elements
        too_long = self._effort is not None and elements > self._effort
        if too_long or (self._may_go_round and elements - self._idle_from > _IDLE_ELEMENTS):
            self._stopped = True
            self._machine.clock.stopping = True

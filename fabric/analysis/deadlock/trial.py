"""Runs of the same program with other depths, to try a remedy before it is named.

Source: T. Parks, Bounded Scheduling of Process Networks, 1995.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.analysis.deadlock.cause import channels_of, code, find_stuck, growable
from fabric.analysis.deadlock.livelock import LIVELOCK_CYCLES, LivelockWatch
from fabric.graph.wiring.stream import Feedback
from fabric.messages.telling.causes import Operation
from fabric.timing.engine.channel import Channel
from fabric.timing.machine.interrupts import Interrupts
from fabric.timing.machine.runner import Runner
from fabric.timing.machine.state_of import cycles_of, state_of
from fabric.timing.state.run_state import Ending

if TYPE_CHECKING:
    from fabric.graph.hardware.hop import Hop
    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.engine.unit import Unit, Wait
    from fabric.timing.machine.machine import Machine
    from fabric.timing.retiming.record_making import Recording
    from fabric.timing.state.run_state import RunState, UnitState

__all__ = ["Growth", "Outcome", "Trial"]

_CHECK_CYCLES: Final = 100_000
"""How often the effort is checked, where all units are at rest: the same in every run."""

_IDLE_CHECK_CYCLES: Final = 10_000
"""The same where elements may go round for ever."""

_IDLE_ELEMENTS: Final = 20_000
"""So many of them may go round before one reaches a sink or the HBM."""


class Outcome(NamedTuple):
    """How a trial ended.

    Attributes:
        ending: how; interrupted when it took too long.
        grown: depths of the channels that were grown, by option.
        cycle: of its end, or where the last of the units that wait came to rest.
        loops: names of the units of each loop it stopped in.
        lacks_room: in one of them a unit waits for on-chip capacity that others hold.
        feedbacks: that close each loop in which nothing is on its way.
        hopeless: a loop is stuck in another way, and not for slots.
        elements: how many it delivered.
        enough_bytes: the least on-chip capacity with which none of it would have waited.
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
    enough_bytes: int
    failure: str | None


class Trial:
    """One run from cycle 0 in timing mode, in which channels may grow where it stops.

    Attributes:
        machine: what it runs on.
    """

    def __init__(
        self,
        plan: Plan,
        depths: Mapping[str, int],
        hops: Mapping[str, Hop],
        *,
        grow: bool,
        effort: int | None,
        capacity_bytes: int | None,
        may_go_round: bool = False,
        recording: Recording | None = None,
    ) -> None:
        """Build the machine.

        Args:
            plan: the program.
            depths: of single channels, by option; of others, which the plan does not have, too.
            hops: of single channels, likewise.
            grow: add slots to the shallowest full channel of every loop, and go on.
            effort: elements after which the trial is stopped; None for no limit.
            capacity_bytes: of the on-chip memory; None for no limit.
            may_go_round: stop it where elements go round and none comes out.
            recording: watches it.
        """
        self._may_go_round = may_go_round
        check_cycles = _IDLE_CHECK_CYCLES if may_go_round else _CHECK_CYCLES
        self._effort = effort
        self._stopped = False
        self._at_rest: RunState | None = None
        self._loops: list[list[UnitState]] = []
        self._plan: Final = plan
        self._runner = Runner(
            plan,
            functional=False,
            depths={edge.key: depths[edge.key] for edge in plan.edges if edge.key in depths},
            hops={edge.key: hops[edge.key] for edge in plan.edges if edge.key in hops},
            capacity_bytes=capacity_bytes,
            on_heartbeat=self._check,
            beat_cycles=check_cycles,
            released=self._released,
            observers=() if recording is None else (recording,),
        )
        self.machine: Final[Machine] = self._runner.machine
        machine = self.machine
        self._growth = Growth(machine) if grow else None
        looks = LIVELOCK_CYCLES // check_cycles
        self._watch = LivelockWatch(machine, LIVELOCK_CYCLES, looks)
        self._arrived = self._watch.arrived
        self._idle_from = 0

    def run(self) -> Outcome:
        """Run to the end, to a stop that no growth releases, or until it takes too long.

        Raises:
            KeyboardInterrupt: Ctrl-C; other signals do what they do outside of runs.
        """
        machine = self.machine
        ending = self._run()
        failure = machine.failures.first
        state, loops = self._at_rest or state_of(machine), self._loops
        codes = [code(loop, state) for loop in loops]
        return Outcome(
            ending,
            {} if self._growth is None else self._growth.grown,
            state.stopped_cycle if ending == "deadlock" else cycles_of(machine),
            frozenset(frozenset(unit.name for unit in loop) for loop in loops),
            "FAB-D006" in codes,
            tuple(
                _feedbacks(self._plan, state, loop)
                for loop, each in zip(loops, codes, strict=True)
                if each == "FAB-D002"
            ),
            bool({"FAB-D003", "FAB-D005"} & set(codes)),
            machine.elements,
            machine.on_chip.enough_bytes,
            None if failure is None else failure.message,
        )

    def _run(self) -> Ending:
        """Run; a signal waits until the operators have ended, who would take it for anything."""
        interrupts = Interrupts()
        ending: Ending = "interrupted"
        with interrupts.handled():
            ending = self._runner.run_under(interrupts, self._given_up)
        if interrupts.seen:
            interrupts.again()
        return ending

    def _given_up(self) -> Ending | None:
        if self._watch.moving:
            return "livelock"
        return "interrupted" if self._stopped else None

    def _released(self) -> bool:
        """Nothing can happen any more: grow, or let it end."""
        machine = self.machine
        if machine.clock.stopping or all(unit.finished for unit in machine.units):
            return False
        # Where a growth lets ever more elements in, the clock may never come to a heartbeat.
        if self._growth is not None and not self._too_long and self._growth.grow():
            return True
        state = state_of(machine)
        self._at_rest, self._loops = state, find_stuck(state).cores
        return False

    def _check(self) -> None:
        elements = self.machine.elements
        if self._may_go_round and self._arrived != (arrived := self._watch.arrived):
            self._arrived, self._idle_from = arrived, elements
        if self._too_long or (self._may_go_round and elements - self._idle_from > _IDLE_ELEMENTS):
            self._stopped = True
            self.machine.clock.stopping = True

    @property
    def _too_long(self) -> bool:
        return self._effort is not None and self.machine.elements > self._effort


def _feedbacks(plan: Plan, state: RunState, loop: list[UnitState]) -> tuple[Feedback, ...]:
    """Return what closes a loop of units that wait to receive, in the order of its waits."""
    edges = [plan.edges[channel.number] for channel in channels_of(state, loop)]
    streams = [edge.consumer.inputs[edge.input] for edge in edges]
    return tuple(dict.fromkeys(each for each in streams if isinstance(each, Feedback)))


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

"""Runs of a stuck program with other depths, within one effort, before a remedy is named.

A recorded run is timed again with other depths. With the orders of the record it completes if and
only if no unit waits for itself. Without merges, all runs have the order of the record.

Source: T. Parks, Bounded Scheduling of Process Networks, 1995.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fabric.analysis.deadlock.cause import channels_of, code, find_stuck, growable
from fabric.analysis.deadlock.livelock import LIVELOCK_CYCLES, LivelockWatch
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.stream import Feedback
from fabric.messages.causes import Operation
from fabric.messages.errors import ShapeError
from fabric.timing.engine.channel import Channel
from fabric.timing.machine.assembly import Setup
from fabric.timing.machine.interrupts import Interrupts
from fabric.timing.machine.machine import cycles_of, state_of
from fabric.timing.machine.runner import Runner
from fabric.timing.retiming.record_making import Recording
from fabric.timing.retiming.retimer import Retimer
from fabric.timing.state.run_state import Ending

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.graph.hardware.latency import Hop
    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.engine.tables import Counters
    from fabric.timing.engine.unit import Unit, Wait
    from fabric.timing.machine.machine import Machine
    from fabric.timing.retiming.record import Record
    from fabric.timing.state.run_state import RunState, UnitState

_CHECK_CYCLES: Final = 100_000
"""Cycles between checks of the effort: the same in every run."""

_IDLE_CHECK_CYCLES: Final = 10_000

_IDLE_ELEMENTS: Final = 20_000

_EFFORT_EVENTS: Final = 500_000_000
"""Events of the record, over all timings together: some seconds."""

EFFORT_ELEMENTS: Final = 400_000
"""Elements that all trials of a report may deliver together."""

_BUILDING_ELEMENTS: Final = 10
"""Building one operator of a machine counts as this number of elements."""


class Outcome(NamedTuple):
    """The end of a trial.

    Attributes:
        cycle: of its end, or the last cycle in which a unit began to wait.
        lacks_room: a unit waits for on-chip capacity that other units hold.
        feedbacks: the feedbacks of loops without an element in flight.
        hopeless: a loop is stuck for another reason than slots.
        enough_bytes: the least on-chip capacity without any wait for capacity.
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
    """One run from cycle 0 in timing mode; its channels may grow when it stops."""

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

        ``grow``: add slots to the shallowest full channel of every loop, and continue. ``effort``:
        elements after which the trial is stopped; None for no limit. ``may_go_round``: stop if
        elements circulate without output.
        """
        self._may_go_round = may_go_round
        check_cycles = _IDLE_CHECK_CYCLES if may_go_round else _CHECK_CYCLES
        self._effort = effort
        self._stopped = False
        self._at_rest: RunState | None = None
        self._loops: list[list[UnitState]] = []
        self._plan: Final = plan
        setup = Setup(
            plan=plan,
            depths={edge.key: depths[edge.key] for edge in plan.edges if edge.key in depths},
            hops={edge.key: hops[edge.key] for edge in plan.edges if edge.key in hops},
            capacity_bytes=capacity_bytes,
            keepers=() if recording is None else (recording,),
        )
        self._runner = Runner(
            setup, on_heartbeat=self._check, beat_cycles=check_cycles, released=self._released
        )
        self.machine: Final[Machine] = self._runner.machine
        machine = self.machine
        self._growth = Growth(machine) if grow else None
        looks = LIVELOCK_CYCLES // check_cycles
        self._watch = LivelockWatch(machine, LIVELOCK_CYCLES, looks)
        self._arrived = self._watch.arrived
        self._idle_from = 0

    def run(self) -> Outcome:
        """Run until it completes, until no growth releases it, or until it takes too long."""
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
        """Run; signals wait until the operators have ended."""
        interrupts = Interrupts()
        ending: Ending = "interrupted"
        with interrupts.handled():
            ending = self._runner.run(interrupts, self._given_up)
        if interrupts.seen:
            interrupts.again()
        return ending

    def _given_up(self) -> Ending | None:
        if self._watch.moving:
            return "livelock"
        return "interrupted" if self._stopped else None

    def _released(self) -> bool:
        """Grow when no event is left; False ends the run."""
        machine = self.machine
        if machine.clock.stopping or all(unit.finished for unit in machine.units):
            return False
        # If each growth admits more elements, the clock may never reach a heartbeat.
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
    edges = [plan.edges[channel.number] for channel in channels_of(state, loop)]
    streams = [edge.consumer.inputs[edge.input] for edge in edges]
    return tuple(dict.fromkeys(each for each in streams if isinstance(each, Feedback)))


_FINE_STEPS: Final = 8
"""A channel grows by one slot up to this depth, then by an eighth of its depth."""


class Growth:
    """Lets the channels of a machine grow."""

    def __init__(self, machine: Machine) -> None:
        self.grown: Final[dict[str, int]] = {}
        self._machine: Final = machine
        self._waits: list[Wait | None] = []
        self._latest: list[Channel] = []
        self._option: Final = {
            channel: facts.option
            for channel, facts in zip(machine.channels, machine.channel_facts, strict=True)
        }

    def grow(self) -> bool:
        """Let one channel of every loop grow while no event is left; whether a channel grew."""
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
        """Find new loops from the channels that changed; None if a full search is needed.

        This takes a hundredth of the time of ``_in_full``: with thousands of growths, nearly all of
        the time went into states that were examined before.
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
    wait = unit.wait
    if wait is None or len(wait.channels) != 1:
        return None
    (channel,) = wait.channels
    assert isinstance(channel, Channel)
    lost = _sends(unit) and len(channel.queue) < channel.depth
    return None if lost else channel


def _peer(unit: Unit, channel: Channel) -> Unit:
    return channel.consumer if _sends(unit) else channel.producer


def _sends(unit: Unit) -> bool:
    return unit.wait is not None and unit.wait.operation is Operation.SEND


def _shallowest(first: Unit) -> list[Channel]:
    loop: dict[Unit, Channel] = {}
    unit = first
    while unit not in loop:
        channel = _awaited(unit)
        assert channel is not None
        loop[unit] = channel
        unit = _peer(unit, channel)
    # Of equally shallow channels, the first one after the lowest unit grows.
    units = list(loop)
    lowest = units.index(min(units, key=lambda each: each.index))
    ordered = units[lowest:] + units[:lowest]
    full = [loop[each] for each in ordered if _sends(each)]
    return [min(full, key=lambda channel: channel.depth)] if full else []


@dataclass(frozen=True)
class Change:
    """A change of a program; ``capacity_bytes`` has no value for unlimited memory."""

    capacity_bytes: int | None
    depths: Mapping[str, int] = field(default_factory=dict)
    initial: Mapping[Feedback, int] = field(default_factory=dict)

    def deeper(self, depths: Mapping[str, int]) -> Change:
        """Return the change with other depths of some channels."""
        return replace(self, depths={**self.depths, **depths})

    def with_depth(self, option: str, depth: int) -> Change:
        """Return the change with another depth of one channel."""
        return self.deeper({option: depth})

    def begun(self, feedback: Feedback, count: int) -> Change:
        """Return the change with ``count`` sub-tensors in front of ``feedback``."""
        return replace(self, initial={**self.initial, feedback: count})

    def roomy(self, capacity_bytes: int | None) -> Change:
        """Return the change with another on-chip memory."""
        return replace(self, capacity_bytes=capacity_bytes)


class Replay:
    """Times one record again with changed depths."""

    def __init__(self, record: Record, depth_before: Callable[[str], int]) -> None:
        self.record: Final = record
        self._retimer: Final = Retimer(record)
        self._before: Final = np.array(
            [depth_before(channel.option) for channel in record.channels], np.int64
        )
        self._events_left = _EFFORT_EVENTS
        self._too_shallow: Final[list[tuple[Counters, Counters]]] = []

    def completes(self, changed: Mapping[str, int]) -> bool | None:
        """Whether the record completes with depths ``changed``; None without effort left.

        A loop of full channels stops each timing in which these channels are no deeper. Such loops
        are looked up first.
        """
        depths = self._before.copy()
        for option, depth in changed.items():
            depths[self.record.number[option]] = depth
        if any((depths[full] <= limits).all() for full, limits in self._too_shallow):
            return False
        if self._events_left <= 0:
            return None
        self._events_left -= len(self.record.events)
        retimed = self._retimer.time(depths)
        if retimed.cycles is not None:
            return True
        full = np.array(sorted(self._retimer.blamed(retimed)), np.int64)
        self._too_shallow.append((full, depths[full]))
        return False


class Search:
    """Runs of a program with changes, each change once.

    ``replay``: the recorded run that completed after all channels had grown.
    """

    def __init__(
        self, plan: Plan, depths: Mapping[str, int], hops: Mapping[str, Hop], effort: int | None
    ) -> None:
        """Set the effort: elements that all trials may deliver together.

        None sets no limit on deeper channels, and the default for other changes.
        """
        self.plan: Final = plan
        self.trials = 0
        self.unchanged: Final = Change(plan.program.hardware.on_chip.capacity_bytes)
        self._depths: Final = depths
        self._hops: Final = hops
        self._unlimited: Final = effort is None
        self._left = EFFORT_ELEMENTS if effort is None else effort
        self._known: dict[object, Outcome] = {}
        self.replay: Replay | None = None

    def depth_before(self, option: str) -> int:
        """Return the depth of a channel before any change."""
        return self._depths.get(option) or self.plan.program.depth_of(option)

    def known(self, change: Change) -> Outcome | None:
        """Return the outcome of ``change``; None if it was not tried."""
        return self._known.get(self._key(change))

    def grow(self, change: Change, *, records: bool = False) -> Outcome:
        """Run with ``change`` and let full channels of stuck loops grow.

        ``records``: keep a ``replay`` if it completes without growth; needs a change of depths
        only.
        """
        bounded = not self._unlimited or change != self.unchanged.deeper(change.depths)
        recording = Recording(self.plan) if records else None
        trial = self._trial(change, self._left if bounded else None, grow=True, recording=recording)
        outcome = self._ran(trial, counts=bounded)
        if not outcome.grown:
            self._known[self._key(change)] = outcome
            if recording is not None and outcome.ending == "completed":
                self.replay = Replay(recording.record(trial.machine), self.depth_before)
        return outcome

    def completes(self, change: Change, *, at_last: bool = False) -> bool | None:
        """Whether the program completes with ``change``; None if the effort is used up."""
        outcome = self.attempt(change, at_last=at_last)
        return None if outcome is None else outcome.ending == "completed"

    def attempt(self, change: Change, *, at_last: bool = False) -> Outcome | None:
        """Run with ``change``; None if the effort is used up before it ends.

        ``at_last``: use all remaining effort, because a similar run has completed.
        """
        key = self._key(change)
        if key not in self._known:
            if self._left <= 0 and not at_last:
                return None
            outcome = self._ran(self._trial(change, None if at_last else self._left))
            if outcome.ending == "interrupted":
                return None
            self._known[key] = outcome
        return self._known[key]

    def deepen_all(self) -> tuple[int, Outcome] | None:
        """Double the depth of all channels until the program completes; None if it does not."""
        self._left = EFFORT_ELEMENTS
        depth = self.plan.program.channel_depth
        while self._left > 0:
            depth *= 2
            own = self._depths.keys() | self.plan.program.depths.keys()
            every = {edge.key: depth for edge in self.plan.edges if edge.key not in own}
            change = self.unchanged.deeper(every)
            if self.replay is not None and self.replay.completes(every) is False:
                self._left -= self._building_elements
                continue
            outcome = self._ran(self._trial(change, self._left))
            if outcome.ending == "completed":
                return depth, outcome
            if outcome.ending != "deadlock":
                break
        return None

    def can_begin(self, feedback: Feedback, count: int) -> bool:
        """Whether ``count`` sub-tensors can be put in front of ``feedback``."""
        try:
            elaborate(self.plan.program, {feedback: count})
        except ShapeError:
            return False
        return True

    def _trial(
        self,
        change: Change,
        effort: int | None,
        *,
        grow: bool = False,
        recording: Recording | None = None,
    ) -> Trial:
        return Trial(
            self._with_fronts(change.initial) if change.initial else self.plan,
            {**self._depths, **change.depths},
            self._hops,
            grow=grow,
            effort=effort,
            capacity_bytes=change.capacity_bytes,
            may_go_round=bool(change.initial),
            recording=recording,
        )

    def _with_fronts(self, initial: Mapping[Feedback, int]) -> Plan:
        return elaborate(self.plan.program, initial)._replace(floor=self.plan.floor)

    def _ran(self, trial: Trial, *, counts: bool = True) -> Outcome:
        """Run ``trial``; its elements and the building of the machine count as effort."""
        self.trials += 1
        outcome = trial.run()
        if counts:
            self._left -= outcome.elements + self._building_elements
        return outcome

    @property
    def _building_elements(self) -> int:
        return _BUILDING_ELEMENTS * len(self.plan.nodes)

    def _key(self, change: Change) -> object:
        return (
            change.capacity_bytes,
            frozenset((o, n) for o, n in change.depths.items() if n != self.depth_before(o)),
            frozenset((loop, n) for loop, n in change.initial.items() if n),
        )

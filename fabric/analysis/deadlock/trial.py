"""Runs of a stuck program with other depths, on-chip capacity or initial elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from fabric.analysis.deadlock.cause import channels_of, code, find_stuck, growable
from fabric.analysis.deadlock.livelock import LIVELOCK_CYCLES, LivelockWatch
from fabric.analysis.depths.problem import UNBOUNDED
from fabric.graph.hardware.latency import Hop
from fabric.graph.wiring.elaborate import Plan, elaborate
from fabric.graph.wiring.stream import Feedback
from fabric.messages.errors import ShapeError
from fabric.timing.machine.assembly import Setup
from fabric.timing.machine.interrupts import Interrupts
from fabric.timing.machine.machine import Machine, cycles_of, has_effects, state_of
from fabric.timing.machine.runner import Runner
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.record_making import Recording
from fabric.timing.state.run_state import Ending, RunState, UnitState

EFFORT_ELEMENTS: Final = 400_000
"""Elements that all runs of a search may deliver together."""

_BUILDING_ELEMENTS: Final = 10
"""Building one operator of a machine counts as this number of elements."""

_CHECK_CYCLES: Final = 100_000
"""Cycles between checks of the effort. Seconds would differ from run to run."""

_IDLE_CHECK_CYCLES: Final = 10_000
_IDLE_ELEMENTS: Final = 20_000
"""Elements that a run with initial elements may deliver while none reaches a sink or the HBM."""


@dataclass(frozen=True)
class Change:
    """A change of a program; ``capacity_bytes`` is None for unlimited memory."""

    capacity_bytes: int | None
    depths: Mapping[str, int] = field(default_factory=dict)
    initial: Mapping[Feedback, int] = field(default_factory=dict)

    def with_depths(self, depths: Mapping[str, int]) -> Change:
        return replace(self, depths={**self.depths, **depths})

    def with_initial(self, feedback: Feedback, count: int) -> Change:
        """Return the change with ``count`` sub-tensors in front of ``feedback``."""
        return replace(self, initial={**self.initial, feedback: count})

    def with_capacity(self, capacity_bytes: int | None) -> Change:
        return replace(self, capacity_bytes=capacity_bytes)


class TrialOutcome(NamedTuple):
    """The end of a run."""

    ending: Ending
    cycle: int  # of the end; in a deadlock, the last cycle in which a unit began to wait
    loops: frozenset[frozenset[str]]  # the names of units
    full: dict[str, int]  # the depth of the shallowest full channel of each loop that has one
    codes: frozenset[str]  # of the loops, from ``KINDS``
    feedbacks: tuple[tuple[Feedback, ...], ...]  # of loops without an element in flight
    elements: int
    enough_bytes: int  # the least on-chip capacity without any wait for capacity
    failure: str | None = None
    record: Record | None = None  # None if the run was not recorded


_NOT_RUN: Final = TrialOutcome("interrupted", 0, frozenset(), {}, frozenset(), (), 0, 0)


class Search:
    """Runs a program with changes, each change once."""

    def __init__(
        self, plan: Plan, depths: Mapping[str, int], hops: Mapping[str, Hop], effort: int | None
    ) -> None:
        """``effort``: elements of all runs, as ``find_remedy`` explains."""
        self.left = EFFORT_ELEMENTS if effort is None else effort
        self.plan: Final = plan
        self.trials = 0
        self.unchanged: Final = Change(plan.program.hardware.on_chip.capacity_bytes)
        self.depths: Final = depths
        self._hops: Final = hops
        self._unlimited: Final = effort is None
        self._compiles = not has_effects(plan)
        self._outcomes: Final[dict[object, TrialOutcome]] = {}

    def depth_before(self, option: str) -> int:
        return self.depths.get(option) or self.plan.program.depth_of(option)

    def outcome_of(self, change: Change) -> TrialOutcome:
        """Return the outcome of ``change``; "interrupted" if it was not tried."""
        return self._outcomes.get(self._key(change), _NOT_RUN)

    def run_unbounded(self, change: Change) -> TrialOutcome:
        """Run with ``change`` and unbounded channels, and record the run."""
        plan = self._plan_with(change)
        deepest = change.with_depths({edge.key: UNBOUNDED for edge in plan.edges})
        unlimited = self._unlimited and change == self.unchanged
        return self._try(plan, deepest, None if unlimited else self.left, records=True)

    def attempt(self, change: Change, *, at_last: bool = False) -> TrialOutcome:
        """Run with ``change``; "interrupted" if the effort is used up before the run ends.

        ``at_last``: no limit of effort, because a similar run has completed.
        """
        key = self._key(change)
        if key in self._outcomes:
            return self._outcomes[key]
        if self.left <= 0 and not at_last:
            return _NOT_RUN
        outcome = self._try(self._plan_with(change), change, None if at_last else self.left)
        if outcome.ending != "interrupted":
            self._outcomes[key] = outcome
        return outcome

    def accepts_initial(self, feedback: Feedback, count: int) -> bool:
        """Whether ``count`` sub-tensors can be put in front of ``feedback``."""
        try:
            elaborate(self.plan.program, {feedback: count})
        except ShapeError:
            return False
        return True

    def _plan_with(self, change: Change) -> Plan:
        if not change.initial:
            return self.plan
        return elaborate(self.plan.program, change.initial)._replace(floor=self.plan.floor)

    def _try(
        self, plan: Plan, change: Change, effort: int | None, *, records: bool = False
    ) -> TrialOutcome:
        self.trials += 1
        depths = {**self.depths, **change.depths}
        recording = Recording(plan) if records else None
        setup = Setup(
            plan=plan,
            depths={edge.key: depths[edge.key] for edge in plan.edges if edge.key in depths},
            hops={edge.key: self._hops[edge.key] for edge in plan.edges if edge.key in self._hops},
            capacity_bytes=change.capacity_bytes,
            keepers=() if recording is None else (recording,),
            compiles=self._compiles,
        )
        machine, ending = _run(setup, effort, may_circulate=bool(change.initial))
        # If the compiled loop gave up once, it gives up with other depths, too.
        self._compiles &= machine.region is not None
        outcome = _outcome(machine, ending, recording)
        self.left -= outcome.elements + _BUILDING_ELEMENTS * len(self.plan.nodes)
        return outcome

    def _key(self, change: Change) -> object:
        return (
            change.capacity_bytes,
            frozenset((o, n) for o, n in change.depths.items() if n != self.depth_before(o)),
            frozenset((loop, n) for loop, n in change.initial.items() if n),
        )


def _run(setup: Setup, effort: int | None, *, may_circulate: bool) -> tuple[Machine, Ending]:
    """Run to the end, or until ``effort`` elements were delivered; None for no limit.

    ``may_circulate``: stop if elements circulate without output. Signals wait until the operators
    have ended.
    """
    cycles = _IDLE_CHECK_CYCLES if may_circulate else _CHECK_CYCLES
    arrived, idle_from, too_long = (0, 0), 0, False

    def check() -> None:
        nonlocal arrived, idle_from, too_long
        elements = machine.elements
        if arrived != watch.arrived:
            arrived, idle_from = watch.arrived, elements
        idles = may_circulate and elements - idle_from > _IDLE_ELEMENTS
        if idles or (effort is not None and elements > effort):
            too_long = machine.clock.stopping = True

    def given_up() -> Ending | None:
        return "livelock" if watch.moving else "interrupted" if too_long else None

    runner = Runner(setup, on_heartbeat=check, beat_cycles=cycles)
    machine = runner.machine
    watch = LivelockWatch(machine, LIVELOCK_CYCLES, LIVELOCK_CYCLES // cycles)
    interrupts = Interrupts()
    ending: Ending = "interrupted"
    with interrupts.handled():
        ending = runner.run(interrupts, given_up)
    if interrupts.seen:
        interrupts.again()
    if machine.region is not None and machine.region.gave_up:
        return _run(replace(setup, compiles=False), effort, may_circulate=may_circulate)
    return machine, ending


def _outcome(machine: Machine, ending: Ending, recording: Recording | None) -> TrialOutcome:
    state = state_of(machine)
    loops = find_stuck(state).cores if ending == "deadlock" else []
    codes = [code(loop, state) for loop in loops]
    full = [channel for loop in loops if (channel := growable(state, loop)) is not None]
    failure = machine.failures.first
    return TrialOutcome(
        ending,
        state.stopped_cycle if ending == "deadlock" else cycles_of(machine),
        frozenset(frozenset(unit.name for unit in loop) for loop in loops),
        {channel.option: channel.depth for channel in full},
        frozenset(codes),
        tuple(
            _feedbacks(machine.plan, state, loop)
            for loop, code_of_loop in zip(loops, codes, strict=True)
            if code_of_loop == "FAB-D002"
        ),
        machine.elements,
        machine.on_chip.enough_bytes,
        None if failure is None else failure.message,
        recording.record(machine) if recording and ending in ("completed", "deadlock") else None,
    )


def _feedbacks(plan: Plan, state: RunState, loop: list[UnitState]) -> tuple[Feedback, ...]:
    edges = [plan.edges[channel.number] for channel in channels_of(state, loop)]
    streams = [edge.consumer.inputs[edge.input] for edge in edges]
    return tuple(dict.fromkeys(stream for stream in streams if isinstance(stream, Feedback)))

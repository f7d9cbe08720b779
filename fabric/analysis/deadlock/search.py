"""Changes to a stuck program, and runs with them, all within one effort.

Where a run was recorded, whether it ends with other depths is found by timing it again.
With the orders of the record it ends if and only if no unit waits for itself in the end, however
long everything takes. Where no unit chooses by what comes first, there are no other orders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fabric.analysis.deadlock.trial import Outcome, Trial
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.telling.errors import ShapeError
from fabric.timing.retiming.record_making import Recording
from fabric.timing.retiming.retimer import Retimer

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.graph.hardware.hop import Hop
    from fabric.graph.wiring.elaborate import Plan
    from fabric.graph.wiring.stream import Feedback
    from fabric.timing.engine.machine_code import Counters
    from fabric.timing.retiming.record import Record

__all__ = ["EFFORT_ELEMENTS", "Change", "Replay", "Search"]

_EFFORT_EVENTS: Final = 500_000_000
"""Of the record, over all timings together: some seconds."""

EFFORT_ELEMENTS: Final = 400_000
"""Elements that all trials of a report may deliver together."""

_BUILDING_ELEMENTS: Final = 10
"""What it takes to build an operator of a machine is counted as if it were elements."""


@dataclass(frozen=True)
class Change:
    """What is done to a program.

    Attributes:
        capacity_bytes: of the on-chip memory; None for no limit.
        depths: of single channels, by option.
        initial: sub-tensors in front of feedbacks.
    """

    capacity_bytes: int | None
    depths: Mapping[str, int] = field(default_factory=dict)
    initial: Mapping[Feedback, int] = field(default_factory=dict)

    def deeper(self, depths: Mapping[str, int]) -> Change:
        """Return the same with other depths of some channels."""
        return replace(self, depths={**self.depths, **depths})

    def with_depth(self, option: str, depth: int) -> Change:
        """Return the same with another depth of one channel."""
        return self.deeper({option: depth})

    def begun(self, feedback: Feedback, count: int) -> Change:
        """Return the same with ``count`` sub-tensors in front of ``feedback``."""
        return replace(self, initial={**self.initial, feedback: count})

    def roomy(self, capacity_bytes: int | None) -> Change:
        """Return the same with another on-chip memory."""
        return replace(self, capacity_bytes=capacity_bytes)


class Replay:
    """Times one record again with changed depths.

    Attributes:
        record: which.
    """

    def __init__(self, record: Record, depth_before: Callable[[str], int]) -> None:
        """Get ready; ``depth_before`` gives the depth of a channel that is not changed."""
        self.record: Final = record
        self._retimer: Final = Retimer(record)
        self._before: Final = np.array(
            [depth_before(channel.option) for channel in record.channels], np.int64
        )
        self._events_left = _EFFORT_EVENTS
        self._too_shallow: Final[list[tuple[Counters, Counters]]] = []

    def completes(self, changed: Mapping[str, int]) -> bool | None:
        """Whether the record ends with depths ``changed``, by option; None where no effort is left.

        What made the units wait for each other once does so wherever these channels, all of them
        full then, are no deeper: that is looked up first.
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
    """Runs of a program with changes, each of which is made once.

    Attributes:
        plan: the program.
        trials: runs so far.
        unchanged: what it was found stuck with.
        replay: of the run that completed once all channels had grown, where it was recorded.
    """

    def __init__(
        self, plan: Plan, depths: Mapping[str, int], hops: Mapping[str, Hop], effort: int | None
    ) -> None:
        """Begin.

        Args:
            plan: the program.
            depths: of single channels, by option, with which it got stuck.
            hops: of single channels, likewise.
            effort: elements that all trials may deliver together. Without a limit, it bounds only
                the trials that do more than to deepen channels until the program completes.
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
        """Return the depth that a channel had."""
        return self._depths.get(option) or self.plan.program.depth_of(option)

    def known(self, change: Change) -> Outcome | None:
        """Return what came of ``change``; None where it was not tried."""
        return self._known.get(self._key(change))

    def grow(self, change: Change, *, records: bool = False) -> Outcome:
        """Run with ``change`` and let full channels of stuck loops grow.

        Args:
            change: to be tried; of depths only where it ``records``.
            records: keep a ``replay`` of it, where it completes and nothing had to grow.
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
        """Whether the program completes with ``change``; see ``attempt``."""
        outcome = self.attempt(change, at_last=at_last)
        return None if outcome is None else outcome.ending == "completed"

    def attempt(self, change: Change, *, at_last: bool = False) -> Outcome | None:
        """Run with ``change``; None where the effort is used up before it ends.

        Args:
            change: to be tried.
            at_last: whatever effort is left: a run much like it has completed.
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
        """Double the depth of all channels until the program completes, with all effort again.

        Returns:
            The depth of those that are given none of their own, and the outcome; None where there
            is none, or not within the effort.
        """
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
        """Return the program with so many elements in front of feedbacks, on the same floor."""
        return elaborate(self.plan.program, initial)._replace(floor=self.plan.floor)

    def _ran(self, trial: Trial, *, counts: bool = True) -> Outcome:
        """Run ``trial``; what it delivers ``counts``, and so does building the machine."""
        self.trials += 1
        outcome = trial.run()
        if counts:
            self._left -= outcome.elements + self._building_elements
        return outcome

    @property
    def _building_elements(self) -> int:
        return _BUILDING_ELEMENTS * len(self.plan.nodes)

    def _key(self, change: Change) -> object:
        """Return what the machine sees: what is as it was does not count."""
        return (
            change.capacity_bytes,
            frozenset((o, n) for o, n in change.depths.items() if n != self.depth_before(o)),
            frozenset((loop, n) for loop, n in change.initial.items() if n),
        )

"""The on-chip capacity with which a program that waits for room completes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fabric.deadlock.document import Capacity, Remedy
from fabric.deadlock.remedy import EFFORT_ELEMENTS, gave_up
from fabric.deadlock.trial import Outcome, Trial

if TYPE_CHECKING:
    from fabric.elaborate import Plan

__all__ = ["find_capacity"]


def find_capacity(
    plan: Plan,
    depths: Mapping[str, int],
    loops: frozenset[frozenset[str]],
    remedy: Remedy,
) -> Remedy:
    """Search for a larger on-chip memory with which the program completes.

    Args:
        plan: the program.
        depths: of single channels, by option, with which it got stuck.
        loops: names of the units of the loops it got stuck in.
        remedy: what was found out about depths.

    Returns:
        The capacity, checked by a run from cycle 0, of which not a byte can be spared; or
        ``remedy`` with the reason why there is none.
    """
    search = _Search(plan, depths, remedy.trials)
    before = plan.program.hardware.on_chip.capacity_bytes
    assert before is not None
    unlimited = search.run(None)
    whole = unlimited and search.run(unlimited.peak_bytes)
    if unlimited is None or whole is None:
        why_not = f"{remedy.why_not}; {gave_up('looking for room', search.trials)}"
        return replace(remedy, why_not=why_not, trials=search.trials)
    if whole.ending != "completed":
        why_not = f"{remedy.why_not}, nor does more room on chip alone"
        return replace(remedy, why_not=why_not, trials=search.trials)
    enough, cycles = unlimited.peak_bytes, whole.cycle
    less: Outcome | None = None
    # Most often not a byte of the most that is ever held can be spared.
    too_little, probe = before, enough - 1
    while too_little < probe:
        outcome = search.run(probe)
        if outcome is None:
            break
        if outcome.ending == "completed":
            enough, cycles = probe, outcome.cycle
        else:
            too_little, less = probe, outcome
        probe = (too_little + enough) // 2
    finished = enough - too_little == 1
    return Remedy(
        [],
        Capacity(
            before,
            enough,
            None if less is None or not finished else less.cycle,
            less is not None and less.loops <= loops,
        ),
        cycles,
        finished,
        search.trials,
        "" if finished else gave_up("lowering the capacity further", search.trials),
    )


class _Search:
    def __init__(self, plan: Plan, depths: Mapping[str, int], trials: int) -> None:
        self._plan = plan
        self._depths = depths
        self._left = EFFORT_ELEMENTS
        self.trials = trials

    def run(self, capacity_bytes: int | None) -> Outcome | None:
        """Run with a capacity; None where the effort is used up."""
        if self._left <= 0:
            return None
        outcome = Trial(
            self._plan,
            self._depths,
            grow=False,
            effort=self._left,
            capacity_bytes=capacity_bytes,
        ).run()
        self.trials += 1
        self._left -= outcome.elements
        return None if outcome.ending == "stopped" else outcome

"""Depths with which a stuck program completes: found by growing, checked by running again.

Channels grow by Parks' rule where a run from cycle 0 stops, until it completes or no growth helps.
Cycles after a growth are not valid, and a merge may choose otherwise in another run: so the depths
found are tried from cycle 0 again. Then each is lowered as far as it goes with the others kept.

Source: T. Parks, Bounded Scheduling of Process Networks, 1995; growth in every loop, also where
others still move: M. Geilen and T. Basten, Requirements on the Execution of Kahn Process
Networks, 2003.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fabric.deadlock.document import Depth, Remedy
from fabric.deadlock.trial import Outcome, Trial

if TYPE_CHECKING:
    from fabric.elaborate import Plan

__all__ = ["EFFORT_ELEMENTS", "find_remedy", "gave_up"]

EFFORT_ELEMENTS: Final = 400_000
"""Elements that all trials of a report may deliver together."""

_REASONS: Final = {
    "livelock": "with deeper channels it moves for ever and gets nowhere",
    "completed": "a run in timing mode completes with the depths given",
}


def find_remedy(
    plan: Plan,
    depths: Mapping[str, int],
    loops: frozenset[frozenset[str]],
    *,
    effort: int | None = EFFORT_ELEMENTS,
) -> Remedy:
    """Search for depths with which the program completes.

    Args:
        plan: the program.
        depths: of single channels, by option, with which it got stuck.
        loops: names of the units of the loops it got stuck in.
        effort: elements that all trials may deliver together. Without a limit, it bounds the
            lowering of the depths only.
    """
    return _Search(plan, depths, loops, effort).run()


def gave_up(doing: str, trials: int) -> str:
    """Say that the effort was used up after so many ``trials``."""
    runs = "1 run" if trials == 1 else f"{trials:,} runs"
    return f"gave up {doing} after {runs} and {EFFORT_ELEMENTS:,} elements"


class _Search:
    def __init__(
        self,
        plan: Plan,
        depths: Mapping[str, int],
        loops: frozenset[frozenset[str]],
        effort: int | None,
    ) -> None:
        self._plan = plan
        self._start = dict(depths)
        self._loops = loops
        self._unlimited = effort is None
        self._left = EFFORT_ELEMENTS if effort is None else effort
        self._trials = 0
        self._known: dict[tuple[tuple[str, int], ...], Outcome] = {}

    def run(self) -> Remedy:
        found: dict[str, int] = {}
        while (outcome := self._grow(found)).grown:
            found |= outcome.grown
            if outcome.ending != "completed":
                break
        if outcome.ending != "completed" or not found:
            return self._nothing(outcome, found)
        finished = self._reduce(found)
        found = {option: n for option, n in found.items() if n != self._before(option)}
        cycles = self._try(found)
        assert cycles is not None
        why_not = "" if finished else gave_up("lowering the depths further", self._trials)
        return Remedy(
            [self._depth(option, found) for option in sorted(found)],
            None,
            cycles.cycle,
            finished,
            self._trials,
            why_not,
        )

    def _grow(self, found: Mapping[str, int]) -> Outcome:
        effort = None if self._unlimited else self._left
        outcome = self._trial(found, grow=True, effort=effort)
        if not self._unlimited:
            self._left -= outcome.elements
        if not outcome.grown:
            self._known[self._key(found)] = outcome
        return outcome

    def _reduce(self, found: dict[str, int]) -> bool:
        """Lower each depth as far as it goes; False where the effort ran out before that."""
        if not self._drop(found):
            return False
        changed = True
        while changed:
            changed = False
            for option in sorted(found, key=lambda each: (-found[each], each)):
                lowest = self._lowest(option, found)
                if lowest is None:
                    return False
                changed |= lowest < found[option]
                found[option] = lowest
        return True

    def _drop(self, found: dict[str, int]) -> bool:
        """Leave out channels that need not grow, in groups first; False as for ``_reduce``."""
        size = len(found) // 2
        while size:
            options = sorted(found)
            for start in range(0, len(options), size):
                group = options[start : start + size]
                fewer = {option: found[option] for option in found if option not in group}
                outcome = self._try(fewer)
                if outcome is None:
                    return False
                if outcome.ending == "completed":
                    for option in group:
                        del found[option]
            size //= 2
        return True

    def _lowest(self, option: str, found: dict[str, int]) -> int | None:
        """Return the smallest depth of one channel that is enough; None where effort ran out.

        Deeper channels never stop a network of blocking reads, so bisection finds it; where they
        might (a merge, a limited on-chip memory) it finds one whose lower neighbour is not enough.
        """
        too_few, enough = self._before(option) - 1, found[option]
        probe = enough - 1
        while too_few < probe:
            outcome = self._try(found | {option: probe})
            if outcome is None:
                return None
            if outcome.ending == "completed":
                enough = probe
            else:
                too_few = probe
            probe = (too_few + enough) // 2
        return enough

    def _try(self, found: Mapping[str, int]) -> Outcome | None:
        """Run with depths; None where the effort is used up."""
        key = self._key(found)
        if key not in self._known:
            if self._left <= 0:
                return None
            outcome = self._trial(found, grow=False, effort=self._left)
            self._left -= outcome.elements
            if outcome.ending == "stopped":
                return None
            self._known[key] = outcome
        return self._known[key]

    def _trial(self, found: Mapping[str, int], *, grow: bool, effort: int | None) -> Outcome:
        self._trials += 1
        return Trial(
            self._plan,
            self._start | dict(found),
            grow=grow,
            effort=effort,
            capacity_bytes=self._plan.program.hardware.on_chip.capacity_bytes,
        ).run()

    def _key(self, found: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        """Return what the machine sees: depths that are as they were do not count."""
        return tuple(
            sorted((option, n) for option, n in found.items() if n != self._before(option))
        )

    def _before(self, option: str) -> int:
        return self._start.get(option, self._plan.program.channel_depth)

    def _depth(self, option: str, found: Mapping[str, int]) -> Depth:
        after = found[option]
        less = self._known.get(self._key(dict(found) | {option: after - 1}))
        return Depth(
            option,
            self._before(option),
            after,
            less.cycle if less is not None and less.ending == "stuck" else None,
            less is not None and less.loops <= self._loops,
        )

    def _nothing(self, outcome: Outcome, found: Mapping[str, int]) -> Remedy:
        if outcome.ending == "stopped":
            why_not = gave_up("looking", self._trials)
        elif outcome.failure is not None:
            why_not = f"no depth helps: with deeper channels it fails: {outcome.failure}"
        elif outcome.ending in _REASONS:
            why_not = f"no depth helps: {_REASONS[outcome.ending]}"
        elif found:
            deeper = ", ".join(f"{option}={depth:,}" for option, depth in sorted(found.items()))
            stuck = min(min(loop) for loop in outcome.loops)
            why_not = f"no depth helps: with {deeper} the program still stops, at {stuck}"
        else:
            why_not = "no depth helps"
        return Remedy([], None, None, False, self._trials, why_not)

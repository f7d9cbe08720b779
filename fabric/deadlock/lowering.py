"""From changes that let a program complete to ones of which nothing can be spared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from fabric.deadlock.change import Change
    from fabric.deadlock.search import Search

__all__ = ["Lowered", "lowered"]


class _EffortUsedUp(Exception):  # noqa: N818 - an answer, no error
    """The search may run nothing more."""


class Lowered(NamedTuple):
    """What came of lowering a change.

    Attributes:
        change: with which a run has completed.
        finished: nothing of it can be lowered, with all else kept.
        replayed: nothing can as long as inputs come in the order in which they came in that run.
    """

    change: Change
    finished: bool
    replayed: bool


def lowered(search: Search, change: Change) -> Lowered:
    """Lower ``change``, with which a run has completed, as far as it goes.

    Where that run was recorded, the record is timed again instead of the program run again; what
    comes of it is run, and so is, as far as the effort goes, one slot less of each channel.
    """
    replay = search.replay
    if replay is not None:
        again = _Lowering(search, change, lambda other: replay.completes(other.depths))
        replayed = again.run()
        if search.completes(again.change, at_last=True):
            settled = _Lowering(search, again.change, search.completes)
            finished = settled.settle() or (replayed and replay.record.orders_are_fixed)
            return Lowered(settled.change, finished, replayed)
    lowering = _Lowering(search, change, search.completes)
    finished = lowering.run()
    return Lowered(lowering.change, finished, replayed=False)


class _Lowering:
    """Lowers depths, initial elements and the on-chip capacity, each with the others kept.

    Attributes:
        change: with which the program completes, as far as it was lowered.
    """

    def __init__(
        self, search: Search, change: Change, completes: Callable[[Change], bool | None]
    ) -> None:
        """Start from ``change``, with which a run has completed.

        Args:
            search: for it.
            change: see above.
            completes: whether the program does, with another change; None where that is not known
                and no effort is left to find out.
        """
        self.change = change
        self._search: Final = search
        self._completes: Final = completes

    def run(self) -> bool:
        """Lower what can be lowered; False where the effort ran out before that."""
        try:
            self._drop()
        except _EffortUsedUp:
            self._limit(at_last=True)
            return False
        return self.settle()

    def settle(self) -> bool:
        """Do the same one by one; soon done where hardly anything can be lowered any more."""
        try:
            while self._lowered():
                pass
        except _EffortUsedUp:
            self._limit(at_last=True)
            return False
        return True

    def _lowered(self) -> bool:
        """Lower each number once; whether one of them was."""
        before = self.change
        depths = before.depths
        for option in sorted(depths, key=lambda each: (-depths[each], each)):
            too_few = self._search.depth_before(option) - 1
            self._lower(too_few, depths[option], partial(self.change.with_depth, option))
        for feedback, count in before.initial.items():
            self._lower(-1, count, partial(self.change.begun, feedback))
        self._limit()
        capacity_bytes, given_bytes = self.change.capacity_bytes, self._given_bytes
        if capacity_bytes is not None and given_bytes is not None:
            self._lower(given_bytes - 1, capacity_bytes, self.change.roomy)
        return self.change != before

    @property
    def _given_bytes(self) -> int | None:
        return self._search.unchanged.capacity_bytes

    def _drop(self) -> None:
        """Leave out channels that need not grow, in groups first."""
        size = len(self.change.depths) // 2
        while size:
            options = sorted(self.change.depths)
            for start in range(0, len(options), size):
                group = options[start : start + size]
                depths = {o: n for o, n in self.change.depths.items() if o not in group}
                self._try(replace(self.change, depths=depths))
            size //= 2

    def _limit(self, *, at_last: bool = False) -> None:
        """Where room was unlimited, be content with the most that was held; or with as it was."""
        if self.change.capacity_bytes is not None or self._given_bytes is None:
            return
        held = self._search.attempt(self.change)
        assert held is not None
        whole = self.change.roomy(max(held.enough_bytes, self._given_bytes))
        if self._search.attempt(whole, at_last=at_last) is None:
            raise _EffortUsedUp
        self.change = whole
        if not at_last:
            self._try(self.change.roomy(self._given_bytes))

    def _lower(self, too_few: int, enough: int, changed: Callable[[int], Change]) -> None:
        """Find the smallest number that is enough, all else kept.

        Deeper channels never stop a network of blocking reads, so bisection finds it; where they
        might (a merge, a limited on-chip memory) it finds one whose lower neighbour is not enough.
        """
        probe = enough - 1
        while too_few < probe:
            if self._try(changed(probe)):
                enough = probe
            else:
                too_few = probe
            probe = (too_few + enough) // 2

    def _try(self, change: Change) -> bool:
        """Take ``change`` where the program completes with it."""
        completes = self._completes(change)
        if completes is None:
            raise _EffortUsedUp
        if completes:
            self.change = change
        return completes

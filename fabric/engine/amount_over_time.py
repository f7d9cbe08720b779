"""How much of something there is over time, told in any order, and the most in any cycle."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Final

__all__ = ["AmountOverTime"]

_FOLD: Final = 1 << 17
"""Changes after which the past is folded into one level and one peak."""


class AmountOverTime:
    """An amount over time, of which the most in any cycle is asked for."""

    def __init__(self, now: Callable[[], int]) -> None:
        """Begin with nothing; before the cycle ``now`` nothing is recorded any more."""
        self._now: Final = now
        self._changes: list[tuple[int, int]] = []
        self._fold_at = _FOLD
        self._level = 0
        self._peak = 0

    def record(self, cycle: int, change: int) -> None:
        """Count a change."""
        self._changes.append((cycle, change))
        if len(self._changes) >= self._fold_at:
            self._fold(before=self._now())

    def extend(self, changes: Iterable[tuple[int, int]]) -> None:
        """Count changes: cycles and amounts."""
        self._changes.extend(changes)
        if len(self._changes) >= self._fold_at:
            self._fold(before=self._now())

    @property
    def peak(self) -> int:
        """The most in any cycle so far."""
        self._fold(before=None)
        return self._peak

    @property
    def level(self) -> int:
        """What is left after all changes so far."""
        return self._level + sum(change for _, change in self._changes)

    def _fold(self, before: int | None) -> None:
        changes = sorted(self._changes)
        end = len(changes) if before is None else bisect.bisect_left(changes, (before,))
        levels = list(accumulate((change for _, change in changes[:end]), initial=self._level))
        self._peak = max(self._peak, *levels)
        self._level = levels[-1]
        self._changes = changes[end:]
        # What is ahead of the clock stays: it is sorted again when there is twice as much.
        self._fold_at = max(_FOLD, 2 * len(self._changes))

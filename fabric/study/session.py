"""A study in progress: which point is next, what is known, and what need not run."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from fabric.study.evaluation import Before, Job, known_before
from fabric.study.front import dominates, nondominated, values_of
from fabric.study.kept import Kept, NotKept
from fabric.study.outcome import PROVED, Outcome, Point, Status
from fabric.study.study import Study

__all__ = ["WINDOW_POINTS", "Look", "StudySession"]

WINDOW_POINTS: Final = 4096
"""So many points are ordered among each other: larger grids are never held as a whole."""

Look: TypeAlias = Callable[[Sequence[Point]], Iterable[Before]]


class StudySession:
    """Hands out the points of a study that have to run, the most promising ones first.

    With metrics to minimise, a point does not run whose bounds show that a run dominates it or that
    it breaks a condition. The front stays that of the whole grid: what is skipped is, in every
    metric, at least its bound, so at least what the run that dominates it has, and in one metric
    more; and only runs that keep all conditions dominate.

    ::

        session = StudySession(study)
        while (point := session.ask()) is not None:
            session.tell(run_point(study, point))
        print(session.front())

    Attributes:
        study: which it is.
        outcomes: so far, by the index of the point.
        resumed: how many of them were known before, or come from other processes, and are no
            proofs.
    """

    def __init__(self, study: Study, kept: Kept | None = None, look: Look | None = None) -> None:
        """Begin with the outcomes of earlier sessions.

        Args:
            study: which it is.
            kept: has the outcomes of earlier sessions and keeps those of this one; nothing stays
                where None.
            look: finds what is known of points before they run; here and now where None.
        """
        self.study: Final = study
        self.outcomes: Final[dict[int, Outcome]] = {}
        self.resumed = 0
        self._kept: Final[Kept] = kept or NotKept()
        self._look: Final[Look] = look or self._look_here
        self._rivals: list[Outcome] = []
        self._before: dict[int, Before] = {}
        self._learn(self._kept.known())
        self._next = 0
        self._waiting: deque[int] = deque()
        self._put_last: dict[int, None] = {}
        """Points that other processes work on."""
        self._last: Iterator[int] | None = None

    def ask(self) -> Point | None:
        """Return the next point that has to run; None where there is none.

        A point that another process works on goes last: by then its outcome is known, or the other
        one is gone.
        """
        self._learn(self._kept.news())
        while (index := self._candidate()) is not None:
            if index in self.outcomes:
                continue  # another process has dealt with it
            settled = self._settled(index)
            if settled is not None:
                self._take(settled)
                self._kept.keep(settled)
                continue
            point = self.study.point(index)
            if self._kept.claim(point, insist=index in self._put_last):
                return point
            self._put_last[index] = None
        return None

    def tell(self, outcome: Outcome) -> Outcome:
        """Take what became of a point, and return it with what was known before."""
        before = self._before.pop(outcome.index, None)
        if before is not None:
            outcome = replace(outcome, bounds=before.bounds, exact=before.exact)
        self._take(outcome)
        self._kept.keep(outcome)
        return outcome

    def front(self) -> tuple[int, ...]:
        """Return the indices of the points that nothing dominates so far, in ascending order."""
        return tuple(sorted(nondominated(self._rivals, self.study.minimize)))

    def _candidate(self) -> int | None:
        """Return a point that may have to run."""
        while not self._waiting and self._next < len(self.study.space):
            self._open_window()
        if self._waiting:
            return self._waiting.popleft()
        if self._last is None:
            self._last = iter(self._put_last)
        return next(self._last, None)

    def _open_window(self) -> None:
        end = min(len(self.study.space), self._next + WINDOW_POINTS)
        window = [index for index in range(self._next, end) if index not in self.outcomes]
        self._next = end
        self._look_at(window)
        self._waiting.extend(sorted(window, key=self._promise))

    def _look_at(self, indices: Sequence[int]) -> None:
        """Find what is known of points before they run, where that may spare a run."""
        if self.study.minimize or self.study.where:
            for before in self._look([self.study.point(index) for index in indices]):
                self._before[before.index] = before

    def _look_here(self, points: Sequence[Point]) -> Iterable[Before]:
        return (known_before(Job.of(self.study, point)) for point in points)

    def _promise(self, index: int) -> tuple[float, int]:
        """Return what points are ordered by: the product of their bounds, as a sum of logarithms.

        Any order gives the same front. A small product is near the front whatever the metrics'
        units are, and is quick to run, for cycles are among the metrics as a rule.
        """
        before = self._before.get(index)
        bounds = {} if before is None else before.bounds
        names = self.study.minimize
        return sum(math.log1p(bounds.get(name, 0)) for name in names), index

    def _settled(self, index: int) -> Outcome | None:
        """Return the outcome of a point that need not run."""
        before = self._before.get(index)
        if before is None:
            return None
        if before.refused is not None:
            return before.refused
        for condition in self.study.conditions:
            if condition.broken_by(before.bounds, before.exact):
                return self._proved(before, "infeasible", str(condition))
        names = self.study.minimize
        if not names or any(name not in before.bounds for name in names):
            return None
        bounds = tuple(before.bounds[name] for name in names)
        for rival in self._rivals:
            values = values_of(rival, names)
            if values is not None and dominates(values, bounds):
                return self._proved(before, "pruned", rival.index)
        return None

    def _proved(self, before: Before, status: Status, by: int | str) -> Outcome:
        return Outcome(
            index=before.index,
            setting=self.study.space[before.index],
            status=status,
            bounds=before.bounds,
            exact=before.exact,
            pruned_by=by,
        )

    def _learn(self, outcomes: Iterable[Outcome]) -> None:
        """Take outcomes that are kept already."""
        for outcome in outcomes:
            if outcome.index not in self.outcomes:
                self.resumed += outcome.status not in PROVED
                self._take(outcome)

    def _take(self, outcome: Outcome) -> None:
        self._before.pop(outcome.index, None)
        self.outcomes[outcome.index] = outcome
        self._compete(outcome)

    def _compete(self, outcome: Outcome) -> None:
        """Keep a run that nothing dominates, and drop those that it dominates."""
        names = self.study.minimize
        values = values_of(outcome, names) if names else None
        if values is None or not all(each.holds(outcome) for each in self.study.conditions):
            return
        rivals = [(each, values_of(each, names) or ()) for each in self._rivals]
        if any(dominates(theirs, values) for _, theirs in rivals):
            return
        self._rivals = [each for each, theirs in rivals if not dominates(values, theirs)]
        self._rivals.append(outcome)

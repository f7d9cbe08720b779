"""A study in progress: which point is next, what is known, and what need not run."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from fabric.study.evaluation import Before, Job, known_before
from fabric.study.front import dominates, nondominated, values_of
from fabric.study.outcome import Outcome, Point, Status
from fabric.study.study import Study

__all__ = ["WINDOW_POINTS", "StudySession"]

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
    """

    def __init__(
        self, study: Study, known: Iterable[Outcome] = (), look: Look | None = None
    ) -> None:
        """Begin with the outcomes of earlier sessions.

        Args:
            study: which it is.
            known: from earlier sessions.
            look: finds what is known of points before they run; here and now where None.
        """
        self.study: Final = study
        self.outcomes: Final[dict[int, Outcome]] = {each.index: each for each in known}
        self._look: Final[Look] = look or self._look_here
        self._rivals: list[Outcome] = []
        for each in self.outcomes.values():
            self._compete(each)
        self._next = 0
        self._before: dict[int, Before] = {}
        self._waiting: deque[int] = deque()

    def ask(self) -> Point | None:
        """Return the next point that has to run; None where there is none."""
        while True:
            while self._waiting:
                index = self._waiting.popleft()
                before = self._before.get(index)
                settled = None if before is None else self._settled(before)
                if settled is None:
                    return self.study.point(index)
                self._before.pop(index)
                self.outcomes[index] = settled
            if self._next >= len(self.study.space):
                return None
            self._open_window()

    def tell(self, outcome: Outcome) -> Outcome:
        """Take what became of a point, and return it with what was known before."""
        before = self._before.pop(outcome.index, None)
        if before is not None:
            outcome = _with(outcome, before)
        self.outcomes[outcome.index] = outcome
        self._compete(outcome)
        return outcome

    def front(self) -> tuple[int, ...]:
        """Return the indices of the points that nothing dominates so far, in ascending order."""
        return tuple(sorted(nondominated(self._rivals, self.study.minimize)))

    def _open_window(self) -> None:
        end = min(len(self.study.space), self._next + WINDOW_POINTS)
        window = [index for index in range(self._next, end) if index not in self.outcomes]
        self._next = end
        if self.study.minimize or self.study.where:
            for before in self._look([self.study.point(index) for index in window]):
                self._before[before.index] = before
        self._waiting.extend(sorted(window, key=self._promise))

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

    def _settled(self, before: Before) -> Outcome | None:
        """Return the outcome of a point that need not run."""
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

    def _compete(self, outcome: Outcome) -> None:
        """Keep a run that nothing dominates, and drop those that it dominates."""
        if outcome.status != "completed" or not self.study.minimize:
            return
        if not all(condition.holds(outcome) for condition in self.study.conditions):
            return
        front = set(nondominated([*self._rivals, outcome], self.study.minimize))
        self._rivals = [each for each in (*self._rivals, outcome) if each.index in front]


def _with(outcome: Outcome, before: Before) -> Outcome:
    return replace(outcome, bounds=before.bounds, exact=before.exact)

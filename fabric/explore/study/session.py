"""A study in progress: the next point to run, the outcomes so far, and the pruned points."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from fabric.explore.study.evaluation import Job, known_before
from fabric.explore.study.outcome import (
    PROVED,
    Before,
    Outcome,
    Point,
    Status,
    dominates,
    judged,
    nondominated,
    values_of,
)
from fabric.explore.study.result import design_before, design_outcome, has_failed
from fabric.explore.study.study import Study
from fabric.messages.text import counted

WINDOW_POINTS: Final = 4096
"""Number of points that are ordered together, so that a larger grid is never held as a whole."""

Look: TypeAlias = Callable[[Sequence[Point]], Iterable[Before]]


class BaseStore:
    """A store of outcomes that outlives the session; this class stores nothing.

    Attributes:
        drawn: indices of points that a search has drawn.
    """

    def __init__(self) -> None:
        self.drawn: set[int] = set()

    def known(self) -> list[Outcome]:
        return []

    def news(self) -> list[Outcome]:
        """Return the outcomes that other processes have stored since the last call."""
        return []

    def claim(self, point: Point, *, insist: bool) -> bool:  # noqa: ARG002 - no process competes
        """Claim a point for this process; False if another has claimed it, unless ``insist``."""
        return True

    def keep(self, outcome: Outcome, *, drawn: bool = False) -> None:
        """Store an outcome immediately."""


class StudySession:
    """Hands out the points of a study that have to run, the most promising ones first.

    If metrics are minimised, a point does not run if its bounds prove that a finished run
    dominates it, or that it breaks a condition. The front still equals the front of the whole
    grid: every metric of a pruned point is at least its bound, so the run dominates the point,
    too. Only runs that meet all conditions dominate points.

    If designs run with several inputs, the points are single runs. The bound of a design is then
    a statistic over its finished runs and the bounds of its other runs. Once a design is
    dominated, or one of its runs has failed, its other runs are skipped. Held-out inputs run at
    the end, with the designs on the front.

    ::

        session = StudySession(study)
        while (point := session.ask()) is not None:
            session.tell(run_point(study, point))
        print(session.front())

    Attributes:
        outcomes: by the index of the design, so far.
        runs: by the index of the run, so far; equal to the outcomes if designs have one run.
    """

    def __init__(
        self, study: Study, kept: BaseStore | None = None, look: Look | None = None
    ) -> None:
        """Begin with the outcomes of earlier sessions.

        ``kept``: stores outcomes; by default, they are lost with the session. ``look``: computes
        bounds of points before they run; by default in this process.
        """
        self.study: Final = study
        self.outcomes: Final[dict[int, Outcome]] = {}
        self.runs: Final[dict[int, Outcome]] = {}
        self._resumed: Final[set[int]] = set()
        self._kept: Final[BaseStore] = kept or BaseStore()
        self._look: Final[Look] = look or self._look_here
        self._rivals: list[Outcome] = []
        self._before: dict[int, Before] = {}
        self._pruned_before: Final[set[int]] = set()
        """Runs that the store has as pruned, with their bounds."""
        self._learn(self._kept.known())
        self._next = 0
        self._waiting: deque[int] = deque()
        self._put_last: dict[int, None] = {}
        """Points claimed by other processes."""
        self._last: Iterator[int] | None = None
        self._held_out: Iterator[int] | None = None

    def __repr__(self) -> str:
        designs = f"{len(self.outcomes)} of {counted(len(self.study.space), 'design')} known"
        return f"StudySession({self.study.name!r}, {designs})"

    @property
    def resumed(self) -> int:
        """Number of designs that earlier sessions or other processes have run."""
        if not self.study.has_inputs:
            return len(self._resumed)
        return sum(
            outcome.status not in PROVED and self._is_resumed(design)
            for design, outcome in self.outcomes.items()
        )

    @property
    def resumed_runs(self) -> int:
        """Number of runs from earlier sessions or other processes."""
        return len(self._resumed)

    def ask(self) -> Point | None:
        """Return the next point that has to run; None if all are finished or handed out.

        Points claimed by another process come last: by then, that process has stored the outcome
        or ended.
        """
        self._learn(self._kept.news())
        while (index := self._candidate()) is not None:
            if index in self.runs:
                continue  # another process has run it
            settled = self._settled(index)
            if settled is not None:
                self._take(settled)
                if index not in self._pruned_before:
                    self._keep(settled)
                continue
            point = self.study.point(index)
            insist = index in self._put_last or self._held_out is not None
            if self._kept.claim(point, insist=insist):
                return point
            self._put_last[index] = None
        return None

    def tell(self, outcome: Outcome) -> Outcome:
        """Take the outcome of a point, and return it with its bounds."""
        before = self._before.pop(outcome.index, None)
        if before is not None:
            outcome = replace(
                outcome,
                bounds=before.bounds,
                exact=before.exact,
                executed=outcome.executed or before.executed,
            )
        # Stored before it is judged: other studies judge by other metrics.
        self._keep(outcome)
        return self._take(outcome)

    def front(self) -> tuple[int, ...]:
        """Return the indices of the points that no point dominates so far, in ascending order."""
        return tuple(sorted(nondominated(self._rivals, self.study.minimize)))

    def _keep(self, outcome: Outcome) -> None:
        self._kept.keep(outcome)

    def _candidate(self) -> int | None:
        while not self._waiting and self._next < len(self.study.space):
            self._open_window()
        if self._waiting:
            return self._waiting.popleft()
        if self._last is None:
            self._last = iter(self._put_last)
        index = next(self._last, None)
        if index is None and self.study.held_out and len(self.outcomes) == len(self.study.space):
            if self._held_out is None:
                runs_of = self.study.runs_of
                front = self.front()
                self._held_out = (run for each in front for run in runs_of(each, held_out=True))
            index = next(self._held_out, None)
        return index

    def _open_window(self) -> None:
        designs = max(1, WINDOW_POINTS // len(self.study.runs_of(0)))
        end = min(len(self.study.space), self._next + designs)
        window = [index for index in range(self._next, end) if index not in self.outcomes]
        self._next = end
        runs = {design: self.study.runs_of(design) for design in window}
        unknown = (run for each in runs.values() for run in each if run not in self.runs)
        self._look_at([run for run in unknown if run not in self._before])
        for design in sorted(window, key=self._promise):
            self._waiting.extend(runs[design])

    def _look_at(self, indices: Sequence[int]) -> None:
        if self.study.judged_by:  # otherwise bounds cannot prune
            for before in self._look([self.study.point(index) for index in indices]):
                self._before[before.index] = before

    def _look_here(self, points: Sequence[Point]) -> Iterable[Before]:
        return (known_before(Job.of(self.study, point)) for point in points)

    def _promise(self, design: int) -> tuple[float, int]:
        # The product of the bounds, as a sum of logarithms. Any order gives the same front. A small
        # product is near the front in any units, and quick to run, since cycles are usually among
        # the metrics.
        bounds = self._design_before(design).bounds
        names = self.study.minimize
        return sum(math.log1p(bounds.get(name, 0)) for name in names), design

    def _design_before(self, design: int) -> Before:
        runs = self.study.runs_of(design)
        befores = [self._before.get(run, Before(run)) for run in runs]
        return design_before(self.study, design, list(map(self.runs.get, runs)), befores)

    def _settled(self, index: int) -> Outcome | None:
        before = self._before.get(index)
        if before is None or before.refused is not None:
            return None if before is None else before.refused
        design = self.study.design_of(index)
        if self._fails_elsewhere(design):
            return self._proved(before, "skipped", None)
        return self._pruned(before, self._design_before(design))

    def _pruned(self, before: Before, design: Before) -> Outcome | None:
        for condition in self.study.conditions:
            if condition.broken_by(design.bounds, design.exact):
                return self._proved(before, "infeasible", str(condition))
        names = self.study.minimize
        if not names or any(name not in design.bounds for name in names):
            return None
        bounds = tuple(design.bounds[name] for name in names)
        for rival in self._rivals:
            values = values_of(rival, names)
            if values is not None and dominates(values, bounds):
                return self._proved(before, "pruned", rival.index)
        return None

    def _fails_elsewhere(self, design: int) -> bool:
        for run in self.study.runs_of(design):
            outcome, before = self.runs.get(run), self._before.get(run)
            if outcome is not None and has_failed(outcome):
                return True
            if before is not None and before.refused is not None:
                return True
        return False

    def _proved(self, before: Before, status: Status, by: int | str | None) -> Outcome:
        return self.study.point(before.index).outcome(
            status,
            bounds=before.bounds,
            exact=before.exact,
            pruned_by=by,
            executed=before.executed,
        )

    def _learn(self, outcomes: Iterable[Outcome]) -> None:
        # A pruned design over inputs is proved again from the stored bounds, because some of the
        # runs that proved it may be outdated.
        for outcome in outcomes:
            index = outcome.index
            if index in self.runs:
                continue
            if outcome.status not in PROVED:
                self._resumed.add(index)
            elif self.study.has_inputs:
                before = Before(index, outcome.bounds, outcome.exact, executed=outcome.executed)
                self._before.setdefault(index, before)
                self._pruned_before.add(index)
                continue
            self._take(outcome)

    def _is_resumed(self, design: int) -> bool:
        runs = (self.runs[run] for run in self.study.runs_of(design))
        return all(each.index in self._resumed for each in runs if each.status not in PROVED)

    def _take(self, outcome: Outcome) -> Outcome:
        self._before.pop(outcome.index, None)
        outcome = judged(outcome, self.study.judged_by_run)
        self.runs[outcome.index] = outcome
        if not self.study.is_held_out(outcome.index):
            self._conclude(self.study.design_of(outcome.index))
        return outcome

    def _conclude(self, design: int) -> None:
        runs = [self.runs.get(run) for run in self.study.runs_of(design)]
        ended = [each for each in runs if each is not None]
        if len(ended) == len(runs):
            self.outcomes[design] = design_outcome(self.study, design, ended)
            self._compete(self.outcomes[design])

    def _compete(self, outcome: Outcome) -> None:
        names = self.study.minimize
        values = values_of(outcome, names) if names else None
        if values is None or not all(each.holds(outcome) for each in self.study.conditions):
            return
        rivals = [(each, values_of(each, names) or ()) for each in self._rivals]
        if any(dominates(theirs, values) for _, theirs in rivals):
            return
        self._rivals = [each for each, theirs in rivals if not dominates(values, theirs)]
        self._rivals.append(outcome)

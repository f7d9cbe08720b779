"""Store of a study's outcomes in Optuna's storage: every finished or pruned point is a trial."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fabric.explore.study.evaluation import Identities
from fabric.explore.study.outcome import (
    PROVED,
    Condition,
    Outcome,
    Point,
    metric,
    split_metric,
    values_of,
)
from fabric.explore.study.space import Axis, Scalar, Setting, Space
from fabric.explore.study.storage import open_storage, reading, study_of_form, writing
from fabric.explore.study.study import Study
from fabric.messages.addresses import shown_address
from fabric.messages.text import counted, plain

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, Trial, TrialState

_POINT: Final = "point"
"""Attribute of a trial with the fields of ``_Content``."""

_WORKS_ON: Final = "works on, "

_GIVEN_UP: Final = "given_up"
"""A trial of a process that ended without an outcome."""


class _Content(msgspec.Struct, frozen=True):
    identity: str
    process: str
    whole: Setting
    drawn: bool
    outcome: Outcome


class Store:
    """An ``OutcomeStore`` in a storage of Optuna.

    A completed run is a complete trial, whose values are the minimised metrics. A pruned point is
    a pruned trial. All others are failed trials. The user attribute ``point`` has the rest.

    All studies of the storage share runs with the same identity. Pruned points are shared by
    studies with the same metrics, conditions and axes. Points that lost their worker, or that
    exceeded a timeout shorter than the present one, run again.

    Attributes:
        form: the layout of points in ``history``.
        ignored: number of stored outcomes with another program, hardware or fabric.
        drawn: indices of points that a search has drawn.
    """

    def __init__(
        self, study: Study, url: str | None = None, timeout_seconds: float | None = None
    ) -> None:
        """Open the storage; without ``url`` it is in memory. ``timeout_seconds`` limits a point."""
        self._study: Final = study
        self._url: Final = url
        self._timeout_seconds: Final = timeout_seconds
        self._metrics: Final = tuple(
            dict.fromkeys(split_metric(each)[1] for each in study.objectives)
        )
        self.form: Final = TrialForm(study.runs)
        self._identities: Final = Identities(study)
        form: dict[str, Any] = {
            "objectives": list(self._metrics),
            "where": list(study.where),
            "axes": [
                [[list(axis.names), [list(row) for row in axis.rows]] for axis in axes]
                for axes in study.runs.products
            ],
        }
        if study.has_inputs:
            form["minimize"] = list(study.minimize)
            form["over"] = list(study.over.values)
            form["hold_out"] = study.hold_out
        self._storage: Final = open_storage(url)
        with reading(url), writing(url):
            self.history: Final[optuna.Study] = study_of_form(
                self._storage, study.name or "study", form
            )
        self.ignored = 0
        self._process: Final = f"{socket.gethostname()}:{os.getpid()}"
        self._claimed: Final[list[str]] = []
        self._trials: Final[dict[int, Trial | None]] = {}
        self._seen = 0
        self._unfinished: list[int] = []
        self.drawn: Final[set[int]] = set()

    def known(self) -> list[Outcome]:
        """Return the outcomes of earlier sessions that are still valid."""
        import optuna

        outcomes: dict[int, Outcome] = {}
        with reading(self._url):
            names = optuna.study.get_all_study_names(self._storage)
        for name in names:
            own = name == self.history.study_name
            with reading(self._url):
                other = (
                    self.history
                    if own
                    else optuna.load_study(study_name=name, storage=self._storage)
                )
                trials = other.get_trials(deepcopy=False)
            if own:
                self._seen = len(trials)
            for trial in trials:
                for outcome in self._outcomes_of(trial, proved=own):
                    first = outcomes.setdefault(outcome.index, outcome)
                    if first.status in PROVED and outcome.status not in PROVED:
                        outcomes[outcome.index] = outcome
        if self._study.has_inputs:
            return list(outcomes.values())  # the session proves pruned designs again
        return [
            each
            for each in outcomes.values()
            if not isinstance(each.pruned_by, int) or each.pruned_by in outcomes
        ]

    def news(self) -> list[Outcome]:
        """Return the outcomes that other processes have stored since the last call."""
        if self._url is None:
            return []
        with reading(self._url):
            trials = self.history.get_trials(deepcopy=False)
        fresh = [*(trials[number] for number in self._unfinished), *trials[self._seen :]]
        self._seen = len(trials)
        self._unfinished = [each.number for each in fresh if not each.state.is_finished()]
        return [
            outcome
            for trial in fresh
            if self._content(trial).get("process") != self._process
            for outcome in self._outcomes_of(trial, proved=True)
        ]

    def claim(self, point: Point, *, insist: bool) -> bool:
        """Claim a point for this process; False if a process that may be alive has claimed it."""
        if self._url is None:
            return True
        identity = self._identities.of(point.setting)
        with writing(self._url):
            if not insist and identity in self._claimed_elsewhere():
                return False
            self._claimed.append(identity)
            self._store_claims()
        return True

    def draw(self, sampler: Callable[[int], BaseSampler]) -> tuple[int, int, Trial]:
        """Begin the next trial; return its number, the index of its point, and the trial.

        ``sampler`` returns the sampler for a number of earlier trials.
        """
        with reading(self._url), writing(self._url):
            trials = self.history.get_trials(deepcopy=False)
            number = sum(_GIVEN_UP not in trial.user_attrs for trial in trials)
            self.history.sampler = sampler(number)
            trial = self.history.ask()
            return number, self.form.drawn(trial), trial

    def register(self, index: int, trial: Trial | None) -> None:
        """Register a drawn point; ``trial`` is None without a sampler."""
        self._trials[index] = trial
        if trial is not None:
            with writing(self._url):
                trial.set_user_attr(_POINT, {"process": self._process})

    def give_up_lost_trials(self) -> None:
        """End the trials of ended processes; later draws do not count them."""
        import optuna

        with reading(self._url), writing(self._url):
            for trial in self.history.get_trials(deepcopy=False):
                process = self._content(trial).get("process")
                running = trial.state == optuna.trial.TrialState.RUNNING
                if running and process is not None and not self._may_live(process):
                    self._storage.set_trial_user_attr(trial._trial_id, _GIVEN_UP, True)
                    self.history.tell(trial.number, state=optuna.trial.TrialState.FAIL)

    def keep(self, outcome: Outcome) -> None:
        """Store an outcome immediately, before the point's files can change."""
        if self._identities.have_changed(outcome.setting):
            outcome = replace(outcome, executed={})
        identity = self._identities.of(outcome.setting)
        drawn = outcome.index in self._trials
        content = {
            "identity": identity,
            "process": self._process,
            "whole": self._study.whole(outcome.setting),
            "drawn": drawn,
            "outcome": json.loads(json.dumps(asdict(outcome), default=plain)),
        }
        with writing(self._url):
            trial = self._trials.pop(outcome.index, None)
            if trial is None:
                self._add(outcome, content)
            else:
                self._end(trial, outcome, content)
            if drawn:
                self.drawn.add(outcome.index)
            if identity in self._claimed:
                self._claimed.remove(identity)
                self._store_claims()

    def end_again(self, trial: Trial, outcome: Outcome | None) -> None:
        """End a trial whose point has run, or is running if ``outcome`` is None."""
        import optuna

        with writing(self._url):
            if outcome is None:
                self.history.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                self._end(trial, outcome, None)

    def ignored_note(self) -> str:
        """Return a sentence about the number of ignored outcomes."""
        assert self._url is not None
        of = f"{counted(self.ignored, 'point')} {'is' if self.ignored == 1 else 'are'}"
        return (
            f"{of} in {shown_address(self._url)} as another program, hardware or version of the "
            "fabric had it: not used"
        )

    def _add(self, outcome: Outcome, content: dict[str, Any]) -> None:
        import optuna

        parameters, distributions = self.form.parameters(outcome.index)
        values = self._values(outcome)
        self.history.add_trial(
            optuna.trial.create_trial(
                state=self._state(outcome),
                values=values,
                params=parameters,
                distributions=distributions,
                user_attrs={_POINT: content},
                constraints=self._constraints(outcome),
            )
        )

    def _end(self, trial: Trial, outcome: Outcome, content: dict[str, Any] | None) -> None:
        if content is not None:
            trial.set_user_attr(_POINT, content)
        for name, value in self._constraints(outcome).items():
            trial.set_constraint(name, value)
        self.history.tell(trial, self._values(outcome), self._state(outcome))

    def _values(self, outcome: Outcome) -> tuple[float, ...] | None:
        return values_of(outcome, self._metrics)

    def _state(self, outcome: Outcome) -> TrialState:
        import optuna

        if outcome.status in PROVED:
            return optuna.trial.TrialState.PRUNED
        if self._values(outcome) is None:
            return optuna.trial.TrialState.FAIL
        return optuna.trial.TrialState.COMPLETE

    def _constraints(self, outcome: Outcome) -> dict[str, float]:
        if outcome.status == "infeasible":
            return {str(outcome.pruned_by): 1.0}
        amounts = {str(each): violation(each, outcome) for each in self._study.conditions}
        return {name: amount for name, amount in amounts.items() if amount is not None}

    def _outcomes_of(self, trial: FrozenTrial, *, proved: bool) -> Iterator[Outcome]:
        content = self._content(trial)
        if "outcome" not in content:
            return
        with reading(self._url):
            kept = msgspec.convert(content, _Content)
        outcome = kept.outcome
        if outcome.status == "lost" or (outcome.status in PROVED and not proved):
            return
        if outcome.status == "timeout" and not self._would_exceed(outcome.wall_seconds):
            return
        same = self._identities.executed_still(outcome.executed)
        for index in self.form.indices(kept.whole):
            setting = self._study.runs[index]
            if same and self._identities.of(setting) == kept.identity:
                if proved and kept.drawn:
                    self.drawn.add(index)
                yield replace(outcome, index=index, setting=setting)
            elif proved:  # of this study: other studies may have other hardware
                self.ignored += 1

    def _content(self, trial: FrozenTrial) -> dict[str, Any]:
        with reading(self._url):
            return msgspec.convert(trial.user_attrs.get(_POINT, {}), dict[str, Any])

    def _would_exceed(self, seconds: float | None) -> bool:
        return (
            seconds is not None
            and self._timeout_seconds is not None
            and self._timeout_seconds <= seconds
        )

    def _store_claims(self) -> None:
        self.history.set_user_attr(_WORKS_ON + self._process, self._claimed)

    def _claimed_elsewhere(self) -> set[str]:
        with reading(self._url):
            return {
                identity
                for name, claimed in self.history.user_attrs.items()
                if name.startswith(_WORKS_ON) and claimed
                for identity in claimed
                if self._may_live(name.removeprefix(_WORKS_ON))
            }

    def _may_live(self, process: str) -> bool:
        host, _, number = process.rpartition(":")
        if process == self._process:
            return False
        if host != socket.gethostname():
            return True  # unknown
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True


PRODUCT: Final = "product"
"""The parameter with the number of the product, in a space that is a sum of products."""


@dataclass(frozen=True)
class Choice:
    """An axis as one parameter of a trial: zipped axes are chosen together."""

    name: str
    axis: Axis

    @cached_property
    def values(self) -> tuple[Scalar, ...]:
        """The parameter's value for each row of the axis."""
        rows = self.axis.rows
        if len(self.axis.names) == 1 and len({value for (value,) in rows}) == len(rows):
            return tuple(value for (value,) in rows)
        # Optuna considers 1, 1.0 and True equal.
        single = len(self.axis.names) == 1
        return tuple(repr(row[0]) if single else ":".join(map(str, row)) for row in rows)

    @cached_property
    def distribution(self) -> BaseDistribution:
        """The distribution of the parameter; evenly spaced integers have an order and a step."""
        from optuna.distributions import CategoricalDistribution, IntDistribution

        first, *others = self.values
        if type(first) is int and others and all(type(each) is int for each in others):
            low, high = first, self.values[-1]
            step = self.values[1]
            assert isinstance(high, int)
            assert isinstance(step, int)
            if step > low and self.values == tuple(range(low, high + 1, step - low)):
                return IntDistribution(low, high, step=step - low)
        return CategoricalDistribution(self.values)

    def drawn(self, trial: Trial) -> int:
        """Have Optuna draw the parameter, and return the number of its row in the axis."""
        from optuna.distributions import IntDistribution

        drawn: Scalar
        if isinstance(self.distribution, IntDistribution):
            low, high, step = self.distribution.low, self.distribution.high, self.distribution.step
            drawn = trial.suggest_int(self.name, low, high, step=step)
        else:
            drawn = trial.suggest_categorical(self.name, self.values)
        return self.values.index(drawn)


class TrialForm:
    """The parameters of a space's points in Optuna's storage."""

    def __init__(self, space: Space) -> None:
        """Make a parameter for every axis, and one for the product in a sum of products."""
        self._space: Final = space
        several = len(space.products) > 1
        self.choices: Final = tuple(
            tuple(
                Choice(":".join(axis.names) + (f" ({number})" if several else ""), axis)
                for axis in axes
            )
            for number, axes in enumerate(space.products)
        )

    def drawn(self, trial: Trial) -> int:
        """Have Optuna draw a point, and return its index."""
        product = 0
        if len(self.choices) > 1:
            product = trial.suggest_categorical(PRODUCT, tuple(range(len(self.choices))))
        return self._index(product, [choice.drawn(trial) for choice in self.choices[product]])

    def parameters(self, index: int) -> tuple[dict[str, Any], dict[str, BaseDistribution]]:
        """Return a point's parameters and their distributions, by name."""
        from optuna.distributions import CategoricalDistribution

        values: dict[str, Any] = {}
        distributions: dict[str, BaseDistribution] = {}
        for product, choices in enumerate(self.choices):
            size = 1
            for choice in choices:
                size *= len(choice.axis.rows)
            if index >= size:
                index -= size
                continue
            if len(self.choices) > 1:
                values[PRODUCT] = product
                distributions[PRODUCT] = CategoricalDistribution(tuple(range(len(self.choices))))
            for choice in choices:
                size //= len(choice.axis.rows)
                row, index = divmod(index, size)
                values[choice.name] = choice.values[row]
                distributions[choice.name] = choice.distribution
            return values, distributions
        raise IndexError(index)

    def indices(self, whole: Setting) -> Iterator[int]:
        """Return the points with the values of a whole setting, at most one in each product."""
        for product, choices in enumerate(self.choices):
            numbers = [_row_of(choice.axis, whole) for choice in choices]
            rows = [number for number in numbers if number is not None]
            if len(rows) == len(numbers):
                yield self._index(product, rows)

    def _index(self, product: int, rows: list[int]) -> int:
        index = 0
        for choice, row in zip(self.choices[product], rows, strict=True):
            index = index * len(choice.axis.rows) + row
        before = Space(self._space.products[:product])
        return len(before) + index


def violation(condition: Condition, outcome: Outcome) -> float | None:
    """Return a run's relative violation of a condition, as Optuna expects; None if unknown."""
    value = metric(outcome, condition.metric)
    if value is None:
        return None
    over = value - condition.value if condition.sign[0] == "<" else condition.value - value
    over /= abs(condition.value) or 1
    return min(over, 0.0) if condition.holds(outcome) else max(over, sys.float_info.min)


def _row_of(axis: Axis, whole: Mapping[str, Scalar]) -> int | None:
    if not all(name in whole for name in axis.names):
        return None
    values = [(type(whole[name]), whole[name]) for name in axis.names]
    for number, row in enumerate(axis.rows):
        if [(type(value), value) for value in row] == values:
            return number
    return None

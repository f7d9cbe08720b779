"""Search of spaces too large to enumerate: Optuna's samplers draw the points."""

from __future__ import annotations

import hashlib
import itertools
import random
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, TypeAlias

from typing_extensions import override

from fabric.explore.study.outcome import (
    PROVED,
    Condition,
    Outcome,
    Point,
    metric,
    split_metric,
    values_of,
)
from fabric.explore.study.session import BaseStore, Look, StudySession
from fabric.explore.study.space import Axis, Space
from fabric.explore.study.study import Study
from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Described
from fabric.messages.errors import ConfigurationError, FabricError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial

Method: TypeAlias = Literal["tpe", "nsga2", "random"]
"""Tree-structured Parzen estimator, non-dominated sorting genetic algorithm, or uniform draws."""

_SAMPLER_DRAWS: Final = 5
_MOST_DRAWS_PER_RUN: Final = 10
_POPULATION: Final = (10, 50)
_GENERATIONS: Final = 5
_RANDOM_DRAWS: Final = 1000
_PRODUCT: Final = "product"


@dataclass(frozen=True)
class Search(Described):
    """A method, the number of points to run in all sessions, and a seed."""

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    method: Method
    points: Annotated[int, Bounds(1)]
    seed: Annotated[int, Bounds(0)] = 0


class SearchSession(StudySession):
    """Hands out the points that a sampler draws, up to ``search.points`` or the size of the space.

    If a point is drawn again, the sampler receives its outcome, and the point does not run again.
    Points that are proved to be dominated, or to break a condition, do not run and do not count.

    Draws depend on the seed and on the outcomes so far. A search that runs one point at a time is
    reproducible, also after a stop; otherwise the order in which points end matters. The points
    of an earlier session are drawn again, and the sampler receives their outcomes, so that it
    continues as if the session had not ended.

    Attributes:
        history: Optuna's study in memory, with a trial for each draw.
    """

    def __init__(
        self,
        study: Study,
        search: Search,
        kept: BaseStore | None = None,
        look: Look | None = None,
    ) -> None:
        """Begin with the outcomes of earlier sessions, which count towards ``search.points``."""
        import optuna

        if study.has_inputs:
            raise ConfigurationError(
                "a search draws designs of one run each: expected no inputs (--over), or no "
                "--search"
            )
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        metrics = [split_metric(each)[1] for each in study.objectives]
        self.history: Final = optuna.create_study(directions=["minimize"] * len(metrics))
        self._metrics: Final = metrics
        self._search: Final = search
        self._under_way: Final[dict[int, Trial | None]] = {}
        """Points that run, with their trials; None for a point that no sampler has drawn."""
        self._drawn: Final[set[int]] = set()
        self._elsewhere: Final[set[int]] = set()
        """Points that other processes run."""
        self._replayed: Final[dict[int, None]] = {}
        """Points of earlier sessions that are not yet drawn again."""
        self._began = False
        super().__init__(study, kept, look)
        self._began = True

    @override
    def ask(self) -> Point | None:
        self._learn(self._kept.news())
        while self._has_more():
            index, trial = self._draw()
            if index in self._replayed:
                del self._replayed[index]
                self._end(trial, index, self.outcomes[index])
                continue
            # If several points ran at a time, the sampler does not draw all of them again.
            for each in self._replayed:
                self._end(None, each, self.outcomes[each])
            self._replayed.clear()
            self._under_way[index] = trial
            self._look_at([index])
            settled = self._settled(index)
            if settled is not None:
                self._take(settled)
                self._keep(settled)
            elif self._kept.claim(point := self.study.point(index), insist=False):
                return point
            else:
                self._end(self._under_way.pop(index), index, None)
                self._elsewhere.add(index)
        return None

    @override
    def _keep(self, outcome: Outcome) -> None:
        self._drawn.add(outcome.index)
        self._kept.keep(outcome, drawn=True)

    @override
    def _take(self, outcome: Outcome) -> Outcome:
        outcome = super()._take(outcome)
        trial = self._under_way.pop(outcome.index, None)
        if not self._began and outcome.index in self._kept.drawn:
            self._replayed[outcome.index] = None
        else:
            self._end(trial, outcome.index, outcome)
        return outcome

    def _has_more(self) -> bool:
        begun = self._kept.drawn | self._drawn | self._under_way.keys()
        ran = sum(
            index in self._under_way or self.outcomes[index].status not in PROVED for index in begun
        )
        seen = self.outcomes.keys() | self._under_way.keys() | self._elsewhere
        points = self._search.points
        new = len(seen) < len(self.study.space)
        return new and ran < points and len(begun) < points * _MOST_DRAWS_PER_RUN

    def _draw(self) -> tuple[int, Trial | None]:
        space = self.study.space
        for _ in range(_SAMPLER_DRAWS):
            number = len(self.history.get_trials(deepcopy=False))
            self.history.sampler = self._sampler(number)
            trial = self.history.ask()
            index = _drawn(space, trial)
            if self._is_new(index):
                return index, trial
            self._end(trial, index, self.outcomes.get(index))
        chance = random.Random(f"{self._search.seed} {number}")
        drawn = (chance.randrange(len(space)) for _ in range(_RANDOM_DRAWS))
        return next(filter(self._is_new, itertools.chain(drawn, range(len(space))))), None

    def _is_new(self, index: int) -> bool:
        seen = self.outcomes, self._under_way, self._elsewhere
        return index in self._replayed or not any(index in each for each in seen)

    def _sampler(self, number: int) -> BaseSampler:
        from optuna.samplers import NSGAIISampler, RandomSampler, TPESampler

        digest = hashlib.sha256(f"{self._search.seed} {number}".encode()).digest()
        seed = int.from_bytes(digest[:4])
        if self._search.method == "random":
            return RandomSampler(seed=seed)
        if self._search.method == "tpe":
            return TPESampler(seed=seed)
        size = max(_POPULATION[0], min(_POPULATION[1], self._search.points // _GENERATIONS))
        return NSGAIISampler(population_size=size, seed=seed)

    def _end(self, trial: Trial | None, index: int, outcome: Outcome | None) -> None:
        # The outcome is None if the point still runs, in another process or after an earlier draw.
        from optuna.trial import TrialState, create_trial

        values = None if outcome is None else values_of(outcome, self._metrics)
        state = TrialState.FAIL if values is None else TrialState.COMPLETE
        if outcome is not None and outcome.status in PROVED:
            state = TrialState.PRUNED
        constraints = {} if outcome is None else self._constraints(outcome)
        if trial is not None:
            for name, value in constraints.items():
                trial.set_constraint(name, value)
            self.history.tell(trial, values, state)
        elif outcome is not None:
            parameters, distributions = _trial(self.study.space, index)
            self.history.add_trial(
                create_trial(
                    state=state,
                    values=values,
                    params=parameters,
                    distributions=distributions,
                    constraints=constraints,
                )
            )

    def _constraints(self, outcome: Outcome) -> dict[str, float]:
        if outcome.status == "infeasible":
            return {str(outcome.pruned_by): 1.0}
        amounts = {str(each): violation(each, outcome) for each in self.study.conditions}
        return {name: amount for name, amount in amounts.items() if amount is not None}


def violation(condition: Condition, outcome: Outcome) -> float | None:
    """Return how far a run breaks a condition, relative to the condition's value.

    It is at most 0 if the condition holds, and None if unknown.
    """
    value = metric(outcome, condition.metric)
    if value is None:
        return None
    over = value - condition.value if condition.sign[0] == "<" else condition.value - value
    over /= abs(condition.value) or 1
    return min(over, 0.0) if condition.holds(outcome) else max(over, sys.float_info.min)


def _drawn(space: Space, trial: Trial) -> int:
    products = len(space.products)
    product = trial.suggest_categorical(_PRODUCT, range(products)) if products > 1 else 0
    rows = []
    for name, axis in _parameters(space, product):
        size = len(axis.rows)
        if _is_ordered(axis):
            rows.append(trial.suggest_int(name, 0, size - 1))
        else:
            rows.append(trial.suggest_categorical(name, range(size)))
    return space.index_of(product, rows)


def _trial(space: Space, index: int) -> tuple[dict[str, int], dict[str, BaseDistribution]]:
    """Return the parameters of a point's trial, the rows of its axes, and their distributions."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    product, rows = space.rows_of(index)
    names = [name for name, _ in _parameters(space, product)]
    distributions: dict[str, BaseDistribution] = {
        name: IntDistribution(0, len(axis.rows) - 1)
        if _is_ordered(axis)
        else CategoricalDistribution(range(len(axis.rows)))
        for name, axis in _parameters(space, product)
    }
    values = dict(zip(names, rows, strict=True))
    if len(space.products) == 1:
        return values, distributions
    of_product = CategoricalDistribution(range(len(space.products)))
    return values | {_PRODUCT: product}, distributions | {_PRODUCT: of_product}


def _parameters(space: Space, product: int) -> list[tuple[str, Axis]]:
    return [(f"{product}.{place}", axis) for place, axis in enumerate(space.products[product])]


def _is_ordered(axis: Axis) -> bool:
    values = [row[0] for row in axis.rows if len(row) == 1]
    numbers = [value for value in values if isinstance(value, int | float)]
    return len(numbers) == len(axis.rows) and numbers == sorted(numbers)

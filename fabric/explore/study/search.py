"""Search of spaces too large to enumerate: Optuna's samplers draw the points."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from typing_extensions import override

from fabric.explore.study.outcome import PROVED, Outcome, Point
from fabric.explore.study.session import Look, StudySession
from fabric.explore.study.store import Store
from fabric.explore.study.study import Study
from fabric.messages.errors import ConfigurationError

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

Method: TypeAlias = Literal["tpe", "nsga2", "random"]

SAMPLERS: Final[Mapping[Method, str]] = {
    "tpe": "tree-structured Parzen estimator",
    "nsga2": "non-dominated sorting genetic algorithm",
    "random": "each point as likely as any other",
}

_REPEATS: Final = 5

_DRAWN_FOR_A_RUN: Final = 10

_POPULATION: Final = (10, 50)

_GENERATIONS: Final = 5

_TRIES: Final = 1000


@dataclass(frozen=True)
class Search:
    """A method of ``SAMPLERS``, the number of points to run in all sessions, and a seed."""

    method: Method
    points: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        if self.method not in SAMPLERS:
            raise ConfigurationError(
                f"search is {self.method!r}: expected one of {', '.join(SAMPLERS)}"
            )
        if self.points < 1:
            raise ConfigurationError(f"points is {self.points}: expected at least 1")
        if self.seed < 0:
            raise ConfigurationError(f"seed is {self.seed}: expected 0 or more")


class SearchSession(StudySession):
    """Hands out points of a sampler, up to ``search.points`` or the size of the space.

    If a point is drawn again, the sampler receives its outcome and the point does not run again.
    Points proved to be dominated or to break a condition neither run nor count. Draws depend on
    the seed and the outcomes so far. A search is reproducible, also after a stop, if it runs one
    point at a time; otherwise the order of completion matters.
    """

    def __init__(
        self,
        study: Study,
        search: Search,
        store: Store | None = None,
        look: Look | None = None,
    ) -> None:
        """Begin with the outcomes of earlier sessions, which count towards ``search.points``."""
        if study.has_inputs:
            raise ConfigurationError(
                "a search draws designs of one run each: expected no inputs (--over), or no "
                "--search"
            )
        self._search: Final = search
        self._store: Final = store or Store(study)
        self._under_way: Final[set[int]] = set()
        super().__init__(study, self._store, look)
        self._store.give_up_lost_trials()

    @override
    def ask(self) -> Point | None:
        self._learn(self._kept.news())
        while self._has_more():
            index = self._draw()
            self._look_at([index])
            settled = self._settled(index)
            if settled is None:
                self._under_way.add(index)
                return self.study.point(index)
            self._take(settled)
            self._kept.keep(settled)
        return None

    @override
    def tell(self, outcome: Outcome) -> Outcome:
        self._under_way.discard(outcome.index)
        return super().tell(outcome)

    def _has_more(self) -> bool:
        begun = self._store.drawn | self._under_way
        ran = sum(
            index in self._under_way or self.outcomes[index].status not in PROVED for index in begun
        )
        new = len(self.outcomes.keys() | self._under_way) < len(self.study.space)
        points = self._search.points
        return new and ran < points and len(begun) < points * _DRAWN_FOR_A_RUN

    def _draw(self) -> int:
        for _ in range(_REPEATS):
            number, index, trial = self._store.draw(self._sampler)
            if index not in self.outcomes and index not in self._under_way:
                self._store.register(index, trial)
                return index
            self._store.end_again(trial, self.outcomes.get(index))
        chance = random.Random(f"{self._search.seed} {number}")
        size = len(self.study.space)
        drawn = (chance.randrange(size) for _ in range(_TRIES))
        index = next(
            index
            for index in itertools.chain(drawn, range(size))
            if index not in self.outcomes and index not in self._under_way
        )
        self._store.register(index, None)
        return index

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

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import count, product
from math import prod
from random import Random

import numpy as np

from fabric.analysis.depths.problem import Depths, Limit, Problem, Slot, Variable
from fabric.explore.sizing.goal import Cost, Goal
from fabric.explore.sizing.running import recorded
from fabric.explore.sizing.size import cost_function
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import NO_LIMIT
from tests.fabric.sizing.by_hand import cycles_of
from tests.fabric.sizing.networks import Network, network, options_of, program_of, shape

GOALS = tuple(map(Goal.parse, ("same-cycles", "slowdown=1.1", "deadlock-free")))

BYTES = cost_function("bytes")

_VECTORS = 20_000


class Case:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.most: Depths = tuple(max(1, elements) for elements in network.elements)
        self._cycles: dict[Depths, int] = {}

    @cached_property
    def record(self) -> Record:
        options = dict(zip(options_of(self.network.shape), self.most, strict=True))
        return recorded(program_of(self.network), options).record

    def cycles(self, depths: Depths) -> int:
        if depths not in self._cycles:
            cycles = cycles_of(self.network, depths)
            self._cycles[depths] = NO_LIMIT + 1 if cycles is None else cycles
        return self._cycles[depths]

    def limit(self, goal: Goal) -> int:
        return goal.limit_cycles(self.cycles(self.most))

    def keeps(self, depths: Depths, goal: Goal) -> bool:
        return self.cycles(depths) <= self.limit(goal)

    def slots(self) -> list[Slot]:
        of = self.network.shape
        return list(map(Slot, options_of(of), of.element_bytes))

    def problem(
        self, goal: Goal, cost: Cost = BYTES, pinned: Mapping[int, int] | None = None
    ) -> Problem:
        pins = pinned or {}
        variables = tuple(
            Variable(slot.option, (slot,), pins.get(number, 1), pins.get(number, most))
            for number, (slot, most) in enumerate(zip(self.slots(), self.most, strict=True))
        )
        limits = (Limit(self.record, self.limit(goal)),)
        return Problem(variables, limits, cost)


def cases(how_many: int, first: int = 0) -> Iterator[Case]:
    yielded = 0
    for seed in count(first):
        random = Random(seed)
        case = Case(network(random, shape(random)))
        if prod(case.most) <= _VECTORS:
            yield case
            yielded += 1
            if yielded == how_many:
                return


def least_cost(problem: Problem, keeps: Callable[[Depths], bool]) -> int | None:
    # All cheaper depths are tried first.
    ranges = [range(variable.least, variable.most + 1) for variable in problem.variables]
    by_number = [
        np.array([problem.cost_at(number, depth) for depth in depths])
        for number, depths in enumerate(ranges)
    ]
    costs = sum(np.ix_(*by_number), np.zeros((), np.int64)).reshape(-1)
    vectors = list(product(*ranges))
    for place in np.argsort(costs, kind="stable").tolist():
        if keeps(vectors[place]):
            return int(costs[place])
    return None

"""Points as Optuna's trials: the parameters of a setting, and the setting of parameters."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from fabric.study.conditions import Condition
from fabric.study.outcome import Outcome, metric
from fabric.study.space import Axis, Scalar, Setting, Space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

__all__ = ["Choice", "TrialForm", "violation"]

PRODUCT: Final = "product"
"""The parameter that says which product of a sum a point is of."""


@dataclass(frozen=True)
class Choice:
    """An axis as one parameter of a trial: axes that are zipped are chosen together.

    Attributes:
        name: of the parameter.
        axis: what is chosen from.
    """

    name: str
    axis: Axis

    @cached_property
    def values(self) -> tuple[Scalar, ...]:
        """What the parameter has for each row of the axis."""
        rows = self.axis.rows
        if len(self.axis.names) == 1 and len({value for (value,) in rows}) == len(rows):
            return tuple(value for (value,) in rows)
        # Optuna takes 1, 1.0 and True for one choice.
        single = len(self.axis.names) == 1
        return tuple(repr(row[0]) if single else ":".join(map(str, row)) for row in rows)

    @cached_property
    def distribution(self) -> BaseDistribution:
        """What Optuna draws the parameter from: evenly spaced integers have an order and a step."""
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
        """Have Optuna draw the parameter, and return which row of the axis it stands for."""
        from optuna.distributions import IntDistribution

        drawn: Scalar
        if isinstance(self.distribution, IntDistribution):
            low, high, step = self.distribution.low, self.distribution.high, self.distribution.step
            drawn = trial.suggest_int(self.name, low, high, step=step)
        else:
            drawn = trial.suggest_categorical(self.name, self.values)
        return self.values.index(drawn)


class TrialForm:
    """How the points of a space stand in Optuna's storage."""

    def __init__(self, space: Space) -> None:
        """Make a parameter of every axis; a sum of products has one that chooses the product."""
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
        """Return the parameters of a point, and what they are drawn from, by name."""
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
        """Return the points with the values of a whole setting, one in each product at most."""
        for product, choices in enumerate(self.choices):
            rows = [_row_of(choice.axis, whole) for choice in choices]
            known = [row for row in rows if row is not None]
            if len(known) == len(rows):
                yield self._index(product, known)

    def _index(self, product: int, rows: list[int]) -> int:
        index = 0
        for choice, row in zip(self.choices[product], rows, strict=True):
            index = index * len(choice.axis.rows) + row
        before = Space(self._space.products[:product])
        return len(before) + index


def violation(condition: Condition, outcome: Outcome) -> float | None:
    """Return by how much of its bound a run breaks a condition, as Optuna has it.

    Zero or less keeps it. None where the run has no such number.
    """
    value = metric(outcome, condition.metric)
    if value is None:
        return None
    over = value - condition.value if condition.sign[0] == "<" else condition.value - value
    over /= abs(condition.value) or 1
    return min(over, 0.0) if condition.holds(outcome) else max(over, sys.float_info.min)


def _row_of(axis: Axis, whole: Mapping[str, Scalar]) -> int | None:
    if not all(name in whole for name in axis.names):
        return None
    wanted = [(type(whole[name]), whole[name]) for name in axis.names]
    for number, row in enumerate(axis.rows):
        if [(type(value), value) for value in row] == wanted:
            return number
    return None

"""Metrics of runs, of one input or over several, and conditions on them."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Final

from fabric.explore.study.outcome import Outcome, metric
from fabric.graph.arguments.described import refuse
from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import one_of
from fabric.runs.report import Report
from fabric.timing.engine.off_chip import BusCycles, MemoryCounters

__all__ = [
    "METRICS",
    "STATISTICS",
    "Condition",
    "check_metric",
    "memory_numbers",
    "over_inputs",
    "split_metric",
]

PERCENT: Final = 95
"""So many of a hundred inputs have no more than p95."""

_ROWS: Final = ("row_hits", "row_misses", "row_conflicts")

_BUS: Final = tuple(each.name for each in fields(BusCycles))

MEMORY_METRICS: Final = tuple(
    f"hbm.{name}" for name in (*_ROWS, *(f"{each}_bus_cycles" for each in _BUS))
)
"""Requests by what became of their row, and cycles of data buses, each pseudo channel's counted."""

_NUMBERS: Final = ("int | None", "float | None")

_OF_THE_HOST: Final = ("wall_seconds", "signal")

METRICS: Final = tuple(
    each.name for each in fields(Report) if each.type in _NUMBERS and each.name not in _OF_THE_HOST
)
"""The numbers of every report; what a memory counts is ``hbm.NAME``, what a program adds
``extra.NAME``."""

_HOLDS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}

_UPWARDS: Final = ("mean", "median")
"""Statistics that say something of numbers to have much of, beside ``least``."""

_FORM: Final = re.compile(
    r"\s*(?P<metric>(?:\w+:)?[\w.]+)\s*(?P<sign><=|>=|<|>)\s*(?P<value>\S+)\s*"
)


def over_inputs(statistic: str, values: Sequence[float]) -> float:
    """Return a statistic of the values that a metric has, one for each input.

    No statistic becomes less where a value becomes more: of lower bounds it is a lower bound. A
    value of minus infinity stands for one of which nothing is known.
    """
    return STATISTICS[statistic](values)


def split_metric(name: str) -> tuple[str, str]:
    """Return the statistic of a name, empty where it has none, and its metric."""
    statistic, colon, metric = name.partition(":")
    return (statistic, metric) if colon and statistic in STATISTICS else ("", name)


def _mean(values: Sequence[float]) -> float:
    """Return the mean, rounded once: rounded sums depend on the order of their terms."""
    if not all(map(math.isfinite, values)):
        return -math.inf
    if all(isinstance(each, int) for each in values):
        return _whole(Fraction(sum(map(int, values)), len(values)))
    return float(sum(map(Fraction, values)) / len(values))


def _median(values: Sequence[float]) -> float:
    """Return the value in the middle, of two there their mean."""
    ordered = sorted(values)
    return _mean(ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1])


def _p95(values: Sequence[float]) -> float:
    """Return the least of the values that 95 % of all are no more than."""
    return sorted(values)[-(-PERCENT * len(values) // 100) - 1]


def _whole(value: Fraction) -> float:
    return value.numerator if value.denominator == 1 else float(value)


STATISTICS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "mean": _mean,
    "worst": max,
    "p95": _p95,
    "median": _median,
    "least": min,
}
"""In the words of metrics. All are of numbers to have little of: the worst is the most."""


def memory_numbers(counters: MemoryCounters | None) -> dict[str, int]:
    """Return the numbers of all channels together; none where the memory counts nothing."""
    if counters is None:
        return {}
    rows = (sum(getattr(each, name) for each in counters.channels) for name in _ROWS)
    bus = counters.bus
    cycles = (getattr(bus, name) for name in _BUS)
    return dict(zip(MEMORY_METRICS, (*rows, *cycles), strict=True))


@dataclass(frozen=True)
class Condition:
    """``METRIC <= VALUE``, or with another sign.

    Attributes:
        metric: whose value.
        sign: ``<=``, ``<``, ``>=`` or ``>``.
        value: the bound.
    """

    metric: str
    sign: str
    value: float

    @staticmethod
    def parse(text: str) -> Condition:
        """Read a condition.

        Raises:
            ConfigurationError: it is none, or on a metric that there is not.
        """
        found = _FORM.fullmatch(text)
        try:
            value = float(found["value"].replace("_", "")) if found else None
        except ValueError:
            value = None
        if found is None or value is None or value != value:  # noqa: PLR0124 - not a number
            refuse(
                f"condition {text!r}: expected METRIC <= NUMBER, or with <, >= or >",
                ConfigurationError,
            )
        check_metric(found["metric"])
        statistic, metric = split_metric(found["metric"])
        if found["sign"] in (">", ">=") and statistic not in ("", "least", *_UPWARDS):
            others = [f"{each}:{metric}" for each in _UPWARDS]
            refuse(
                f"condition {text!r}: {statistic} is of the inputs with most: expected "
                f"least:{metric}, so much on every input, or {' or '.join(others)}",
                ConfigurationError,
            )
        return Condition(found["metric"], found["sign"], value)

    def __str__(self) -> str:
        """Return it as it is read."""
        number = int(self.value) if self.value.is_integer() else self.value
        return f"{self.metric} {self.sign} {number}"

    def holds(self, outcome: Outcome) -> bool:
        """Say whether a run completed and keeps the condition."""
        value = metric(outcome, self.metric)
        return value is not None and _HOLDS[self.sign](value, self.value)

    def broken_by(self, bounds: Mapping[str, float], exact: tuple[str, ...]) -> bool:
        """Say whether no run with these bounds can keep the condition."""
        bound = bounds.get(self.metric)
        if bound is None or (self.sign in (">", ">=") and self.metric not in exact):
            return False
        return not _HOLDS[self.sign](bound, self.value)


def check_metric(name: str) -> None:
    """Refuse a metric that no report has, or a statistic that there is not.

    Raises:
        ConfigurationError: there is none of that name.
    """
    statistic, colon, metric = name.partition(":")
    if colon and statistic not in STATISTICS:
        known = [f"{each}:{metric}" for each in STATISTICS]
        refuse(
            f"there is no statistic {statistic}: expected {one_of(known, name)}",
            ConfigurationError,
        )
    _, name = split_metric(name)
    if name not in (*METRICS, *MEMORY_METRICS) and not re.fullmatch(r"extra\.\w+", name):
        refuse(
            f"there is no metric {name}: expected extra.NAME, hbm.NAME of a memory with banks, or "
            f"{one_of(list(METRICS), name)}",
            ConfigurationError,
        )

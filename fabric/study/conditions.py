"""Metrics of runs, and conditions on them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Final

from fabric.arguments.described import refuse
from fabric.runs.report import Report
from fabric.study.memory_numbers import MEMORY_METRICS
from fabric.study.outcome import Outcome, metric
from fabric.study.statistics import STATISTICS, split_metric
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import one_of

__all__ = ["METRICS", "Condition", "check_metric"]

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

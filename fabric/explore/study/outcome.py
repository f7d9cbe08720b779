"""What became of one point of a study: its metrics, conditions on them, and fronts."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from typing_extensions import TypeIs

from fabric.explore.study.space import Setting
from fabric.graph.arguments.described import refuse
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import JsonObject, found_text, one_of
from fabric.runs.report import Report
from fabric.timing.engine.off_chip import BusCycles, MemoryCounters

Status: TypeAlias = Literal[
    "completed",
    "wrong",
    "unjudged",
    "deadlock",
    "livelock",
    "error",
    "refused",
    "timeout",
    "lost",
    "pruned",
    "infeasible",
    "skipped",
]

ENDED: Final[Mapping[Status, str]] = {
    "completed": "ran to its end",
    "wrong": "ran to its end with a wrong result",
    "unjudged": "ran to its end and cannot be judged",
    "deadlock": "deadlocked",
    "livelock": "ran without getting anything done",
    "error": "failed while it ran",
    "refused": "was refused before it ran",
    "timeout": "was given up",
    "lost": "lost its worker",
    "pruned": "was proved to be dominated, and did not run",
    "infeasible": "was proved to break a condition, and did not run",
    "skipped": "did not run, since its design had failed on another input",
}

PROVED: Final[tuple[Status, ...]] = ("pruned", "infeasible", "skipped")
"""Points that are dealt with and did not run."""

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
"""Statistics that suit metrics to maximise, beside ``least``."""

_FORM: Final = re.compile(
    r"\s*(?P<metric>(?:\w+:)?[\w.]+)\s*(?P<sign><=|>=|<|>)\s*(?P<value>\S+)\s*"
)


@dataclass(frozen=True)
class Point:
    """One design, or one input of it.

    Attributes:
        index: of the setting in its space.
        setting: what varies.
    """

    index: int
    setting: Setting


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a point.

    Attributes:
        index: of the point.
        setting: what varied.
        parameters: every parameter of ``build`` with its value; empty where it was never known.
        hardware: the resolved hardware; None where it was never known.
        status: see ``ENDED``.
        numbers: the numbers of the report by name; what the program adds as ``extra.NAME``.
        bounds: what was known before the run: at least so much; of ``exact`` just so much.
        exact: names of ``bounds`` that are no bounds but the values.
        pruned_by: the point that dominates it, or the condition it cannot meet.
        reason: why there are no numbers, or wrong ones.
        wall_seconds: the run alone, on the host.
        executed: the SHA-256 of each file of the program that was executed until it was known what
            became of the point: of the program's own, by the name "", and of modules beside it, by
            their paths from its folder without a suffix. None where a module was looked for there
            and not found. Empty where nobody knows.
    """

    index: int
    setting: Setting
    parameters: JsonObject = field(default_factory=dict)
    hardware: JsonObject | None = None
    status: Status
    numbers: JsonObject = field(default_factory=dict)
    bounds: Mapping[str, int | float] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    pruned_by: int | str | None = None
    reason: str | None = None
    wall_seconds: float | None = None
    executed: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def point(self) -> Point:
        """The design."""
        return Point(self.index, self.setting)

    @property
    def ended(self) -> str:
        """What became of it, in words."""
        return ENDED[self.status]

    def number(self, name: str) -> object:
        """Return a number of the run; None where there is none."""
        return self.numbers.get(name)

    def as_json(self) -> JsonObject:
        """Return it as ``study --json`` prints it: the numbers beside the rest, without files."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        del told["numbers"], told["executed"]
        return told | self.numbers


def metric(outcome: Outcome, name: str) -> float | None:
    """Return a number of a run that completed; None where there is none that can be compared."""
    value = outcome.number(name) if outcome.status == "completed" else None
    return value if _is_number(value) else None


def _is_number(value: object) -> TypeIs[int | float]:
    """Return whether a value is a finite number, as a float too."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def judged(outcome: Outcome, names: Iterable[str]) -> Outcome:
    """Return ``outcome``, as failed if it lacks one of the metrics ``names``."""
    for name in names if outcome.status == "completed" else ():
        value = outcome.numbers.get(name)
        if not _is_number(value):
            known = [each for each, number in outcome.numbers.items() if _is_number(number)]
            reason = (
                f"it has no {name}: expected {one_of(known, name)}"
                if value is None
                else f"{name} is {found_text(value)}: expected a finite number"
            )
            return replace(outcome, status="unjudged", reason=reason)
    return outcome


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Say whether ``one`` is nowhere larger than ``other`` and somewhere smaller."""
    return all(a <= b for a, b in zip(one, other, strict=True)) and any(
        a < b for a, b in zip(one, other, strict=True)
    )


def values_of(outcome: Outcome, names: Sequence[str]) -> tuple[float, ...] | None:
    """Return the metrics of a run; None where it has not all of them."""
    values = [metric(outcome, name) for name in names]
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else None


def nondominated(outcomes: Iterable[Outcome], names: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the runs that no other run dominates, in the order given.

    Runs that are equal in every metric are on the front together.
    """
    found: list[tuple[int, tuple[float, ...]]] = []
    for outcome in outcomes:
        values = values_of(outcome, names)
        if values is None or any(dominates(other, values) for _, other in found):
            continue
        found = [each for each in found if not dominates(values, each[1])]
        found.append((outcome.index, values))
    return tuple(index for index, _ in found)


def over_inputs(statistic: str, values: Sequence[float]) -> float:
    """Return a statistic of a metric's values over inputs.

    Statistics are monotonic: of lower bounds they are a lower bound. Minus infinity is an unknown
    value.
    """
    return STATISTICS[statistic](values)


def split_metric(name: str) -> tuple[str, str]:
    """Return the statistic of a name, empty where it has none, and its metric."""
    statistic, colon, metric = name.partition(":")
    return (statistic, metric) if colon and statistic in STATISTICS else ("", name)


def _mean(values: Sequence[float]) -> float:
    """Return the mean, rounded once, independent of the order of terms."""
    if not all(map(math.isfinite, values)):
        return -math.inf
    if all(isinstance(each, int) for each in values):
        return _whole(Fraction(sum(map(int, values)), len(values)))
    return float(sum(map(Fraction, values)) / len(values))


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return _mean(ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1])


def _p95(values: Sequence[float]) -> float:
    """Return the least value that is at least 95 % of all."""
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
    """``METRIC <= VALUE``, or with another sign."""

    metric: str
    sign: str
    value: float

    @staticmethod
    def parse(text: str) -> Condition:
        """Read a condition."""
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
    """Refuse an unknown metric or statistic."""
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

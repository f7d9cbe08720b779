"""Outcomes of a study's points: metrics, conditions and fronts."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction

# Any: fields of an outcome, by name.
from typing import Any, Final, Literal, Protocol, TypeAlias

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
    "livelock": "ran without progress",
    "error": "failed while it ran",
    "refused": "was refused before it ran",
    "timeout": "exceeded its time limit",
    "lost": "lost its worker",
    "pruned": "was proved to be dominated, and did not run",
    "infeasible": "was proved to break a condition, and did not run",
    "skipped": "did not run, since its design had failed on another input",
}

PROVED: Final[tuple[Status, ...]] = ("pruned", "infeasible", "skipped")
"""Statuses of points that did not have to run."""

PERCENT: Final = 95
"""Percentage of inputs with at most the value ``p95``."""

_ROWS: Final = ("row_hits", "row_misses", "row_conflicts")
_BUS: Final = tuple(each.name for each in fields(BusCycles))

MEMORY_METRICS: Final = tuple(
    f"hbm.{name}" for name in (*_ROWS, *(f"{each}_bus_cycles" for each in _BUS))
)
"""Requests by row hit, miss or conflict, and cycles of data buses, summed over pseudo channels."""

_NUMBERS: Final = ("int | None", "float | None")
_HOST_FIELDS: Final = ("wall_seconds", "signal")

METRICS: Final = tuple(
    each.name for each in fields(Report) if each.type in _NUMBERS and each.name not in _HOST_FIELDS
)
"""Numbers of every report. Counts of a memory are ``hbm.NAME``, numbers of a program
``extra.NAME``."""

_HOLDS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}

_AVERAGES: Final = ("mean", "median")

_FORM: Final = re.compile(
    r"\s*(?P<metric>(?:\w+:)?[\w.]+)\s*(?P<sign><=|>=|<|>)\s*(?P<value>\S+)\s*"
)


@dataclass(frozen=True)
class Point:
    """A setting of a study, and its index among the designs, or among their runs with inputs."""

    index: int
    setting: Setting

    def outcome(self, status: Status = "completed", **fields: Any) -> Outcome:
        """Return the outcome of the point; ``fields`` are other fields of ``Outcome``."""
        return Outcome(index=self.index, setting=self.setting, status=status, **fields)

    def bounds(self, bounds: Mapping[str, int | float], exact: Sequence[str] = ()) -> Before:
        """Return lower bounds of metrics; those named in ``exact`` are equal to the metrics."""
        return Before(self.index, bounds, tuple(exact))


@dataclass(frozen=True)
class Before:
    """The bounds of a point before it runs; fields are as in ``Outcome``.

    Attributes:
        refused: the outcome if the point cannot run.
    """

    index: int
    bounds: Mapping[str, int | float] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    refused: Outcome | None = None
    executed: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The status, the numbers and the bounds of a point of a study.

    Attributes:
        parameters: every parameter of ``build`` with its value; empty if the build failed.
        hardware: the resolved hardware; None if it could not be resolved.
        numbers: the report's numbers by name, and the program's numbers as ``extra.NAME``.
        bounds: lower bounds of metrics, computed without a run.
        exact: metrics with exact ``bounds``.
        pruned_by: index of the dominating point, or the condition that cannot be met.
        reason: why the numbers are missing or wrong.
        code: the kind of the deadlock or livelock, as its report names it.
        wall_seconds: time of the run on the host.
        executed: SHA-256 of each executed file by name, or None if there is no such file; empty if
            unknown. The name of the program's own file is "". The name of a module is its path in
            the folder of the program, without a suffix.
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
    code: str | None = None
    wall_seconds: float | None = None
    executed: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def point(self) -> Point:
        return Point(self.index, self.setting)

    @property
    def ended(self) -> str:
        """The status as a phrase."""
        return ENDED[self.status]

    def number(self, name: str) -> object:
        """Return a number of the run; None if missing."""
        return self.numbers.get(name)

    def as_json(self) -> JsonObject:
        """Return the JSON object of a point, with its numbers and without its files."""
        result = {each.name: getattr(self, each.name) for each in fields(self)}
        del result["numbers"], result["executed"]
        return result | self.numbers


def metric(outcome: Outcome, name: str) -> float | None:
    """Return a finite number of a completed run, otherwise None."""
    value = outcome.number(name) if outcome.status == "completed" else None
    return value if _is_number(value) else None


def _is_number(value: object) -> TypeIs[int | float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # an integer may be too large for a float


def judged(outcome: Outcome, names: Iterable[str]) -> Outcome:
    """Return ``outcome``, or an unjudged one if it lacks one of the metrics ``names``."""
    for name in names if outcome.status == "completed" else ():
        value = outcome.numbers.get(name)
        if not _is_number(value):
            numbers = [each for each, number in outcome.numbers.items() if _is_number(number)]
            reason = (
                f"it has no {name}: expected {one_of(numbers, name)}"
                if value is None
                else f"{name} is {found_text(value)}: expected a finite number"
            )
            return replace(outcome, status="unjudged", reason=reason)
    return outcome


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether ``one`` is nowhere larger than ``other`` and somewhere smaller."""
    return all(a <= b for a, b in zip(one, other, strict=True)) and any(
        a < b for a, b in zip(one, other, strict=True)
    )


def values_of(outcome: Outcome, names: Sequence[str]) -> tuple[float, ...] | None:
    """Return the metrics of a run; None if one is missing."""
    values = [metric(outcome, name) for name in names]
    present = tuple(value for value in values if value is not None)
    return present if len(present) == len(values) else None


def nondominated(outcomes: Iterable[Outcome], names: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the runs that no other run dominates, in the order of ``outcomes``.

    Runs that are equal in every metric do not dominate each other.
    """
    front: list[tuple[int, tuple[float, ...]]] = []
    for outcome in outcomes:
        values = values_of(outcome, names)
        if values is None or any(dominates(other, values) for _, other in front):
            continue
        front = [each for each in front if not dominates(values, each[1])]
        front.append((outcome.index, values))
    return tuple(index for index, _ in front)


def split_metric(name: str) -> tuple[str, str]:
    """Split ``STATISTIC:METRIC``; the statistic is empty if ``name`` has none."""
    statistic, colon, metric = name.partition(":")
    return (statistic, metric) if colon and statistic in STATISTICS else ("", name)


def _mean(values: Sequence[float]) -> float:
    if not all(map(math.isfinite, values)):
        return -math.inf
    # Sums of fractions are exact: the mean is rounded once and independent of the order.
    if all(isinstance(each, int) for each in values):
        mean = Fraction(sum(map(int, values)), len(values))
        return mean.numerator if mean.denominator == 1 else float(mean)
    return float(sum(map(Fraction, values)) / len(values))


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return _mean(ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1])


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[-(-PERCENT * len(values) // 100) - 1]


STATISTICS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "mean": _mean,
    "worst": max,
    "p95": _p95,
    "median": _median,
    "least": min,
}
"""Statistics over inputs by name. They assume that smaller is better: ``worst`` is the maximum.

Each is monotonic, so that a statistic of lower bounds is a lower bound. An unknown lower bound is
minus infinity.
"""


def memory_numbers(counters: MemoryCounters | None) -> dict[str, int]:
    if counters is None:
        return {}
    rows = (sum(getattr(each, name) for each in counters.channels) for name in _ROWS)
    bus = counters.bus
    cycles = (getattr(bus, name) for name in _BUS)
    return dict(zip(MEMORY_METRICS, (*rows, *cycles), strict=True))


class Question(Protocol):
    """A question about the points of a study's space. Workers receive it pickled."""

    def identity(self, setting: Setting) -> str:
        """Return a text, such as a digest of the inputs; points with one text have one answer."""

    def bounds(self, point: Point) -> Before:
        """Return lower bounds of the metrics before a run; without bounds, ``point.bounds({})``."""

    def run(self, point: Point) -> Outcome:
        """Return the answer: ``point.outcome(numbers={...})``, with a number for each metric."""


@dataclass(frozen=True)
class Condition:
    """``METRIC <= VALUE``, or with another sign."""

    metric: str
    sign: str
    value: float

    @staticmethod
    def parse(text: str) -> Condition:
        match = _FORM.fullmatch(text)
        try:
            value = float(match["value"].replace("_", "")) if match else None
        except ValueError:
            value = None
        if match is None or value is None or math.isnan(value):
            refuse(
                f"condition {text!r}: expected METRIC <= NUMBER, or with <, >= or >",
                ConfigurationError,
            )
        statistic, metric = split_metric(match["metric"])
        if match["sign"] in (">", ">=") and statistic not in ("", "least", *_AVERAGES):
            averages = [f"{each}:{metric}" for each in _AVERAGES]
            refuse(
                f"condition {text!r}: {statistic} is one of the largest values: expected "
                f"least:{metric}, for every input, or {' or '.join(averages)}",
                ConfigurationError,
            )
        return Condition(match["metric"], match["sign"], value)

    def __str__(self) -> str:
        """Return the text that ``parse`` reads."""
        number = int(self.value) if self.value.is_integer() else self.value
        return f"{self.metric} {self.sign} {number}"

    def holds(self, outcome: Outcome) -> bool:
        value = metric(outcome, self.metric)
        return value is not None and _HOLDS[self.sign](value, self.value)

    def broken_by(self, bounds: Mapping[str, float], exact: tuple[str, ...]) -> bool:
        """Return whether these bounds prove that the condition is broken."""
        bound = bounds.get(self.metric)
        if bound is None or (self.sign in (">", ">=") and self.metric not in exact):
            return False
        return not _HOLDS[self.sign](bound, self.value)


def check_metric(name: str) -> None:
    """Refuse an unknown metric or statistic."""
    statistic, colon, metric = name.partition(":")
    if colon and statistic not in STATISTICS:
        names = [f"{each}:{metric}" for each in STATISTICS]
        refuse(
            f"there is no statistic {statistic}: expected {one_of(names, name)}",
            ConfigurationError,
        )
    _, name = split_metric(name)
    if name not in (*METRICS, *MEMORY_METRICS) and not re.fullmatch(r"extra\.\w+", name):
        refuse(
            f"there is no metric {name}: expected extra.NAME, hbm.NAME of a memory with banks, or "
            f"{one_of(list(METRICS), name)}",
            ConfigurationError,
        )

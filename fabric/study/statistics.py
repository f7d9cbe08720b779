"""What a metric comes to over several inputs: ``mean:cycles``, ``worst:cycles``, ``p95:cycles``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

__all__ = ["PERCENT", "STATISTICS", "over_inputs", "split_metric"]

PERCENT: Final = 95
"""So many of a hundred inputs have no more than p95."""


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

"""Fronts: which runs no other run beats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fabric.study.outcome import Outcome, metric

__all__ = ["dominates", "nondominated", "values_of"]


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

"""What became of one point of a study; and fronts: which runs no other run beats."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final, Literal, TypeAlias

from typing_extensions import TypeIs

from fabric.explore.study.space import Setting
from fabric.messages.telling.plain import JsonObject
from fabric.messages.telling.wording import found_text, one_of

__all__ = [
    "ENDED",
    "PROVED",
    "Outcome",
    "Point",
    "Status",
    "dominates",
    "judged",
    "metric",
    "nondominated",
    "values_of",
]

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
    """Whether a value is one that all who compare it can hold: finite, as a float too."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def judged(outcome: Outcome, names: Iterable[str]) -> Outcome:
    """Return ``outcome``; a run that has not all numbers by which it is judged has failed.

    Args:
        outcome: of a point.
        names: of the metrics that a study minimises, or has conditions on.
    """
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

"""What became of one point of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal, TypeAlias

from fabric.study.space import Setting
from fabric.telling.plain import JsonObject

__all__ = ["ENDED", "PROVED", "Outcome", "Point", "Status", "metric"]

Status: TypeAlias = Literal[
    "completed",
    "wrong",
    "deadlock",
    "livelock",
    "error",
    "refused",
    "timeout",
    "lost",
    "pruned",
    "infeasible",
]

ENDED: Final[Mapping[Status, str]] = {
    "completed": "ran to its end",
    "wrong": "ran to its end with a wrong result",
    "deadlock": "deadlocked",
    "livelock": "ran without getting anything done",
    "error": "failed while it ran",
    "refused": "was refused before it ran",
    "timeout": "was given up",
    "lost": "lost its worker",
    "pruned": "was proved to be dominated, and did not run",
    "infeasible": "was proved to break a condition, and did not run",
}

PROVED: Final[tuple[Status, ...]] = ("pruned", "infeasible")
"""Points that are dealt with and did not run."""


@dataclass(frozen=True)
class Point:
    """One design.

    Attributes:
        index: of the setting in its space.
        setting: what varies.
    """

    index: int
    setting: Setting


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a point.

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
    """

    index: int
    setting: Setting
    parameters: JsonObject = field(default_factory=dict)
    hardware: JsonObject | None = None
    status: Status
    numbers: JsonObject = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    pruned_by: int | str | None = None
    reason: str | None = None
    wall_seconds: float | None = None

    @property
    def point(self) -> Point:
        """The design."""
        return Point(self.index, self.setting)

    def as_json(self) -> JsonObject:
        """Return it as ``study --json`` prints it: the numbers beside the rest."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        del told["numbers"]
        return told | self.numbers


def metric(outcome: Outcome, name: str) -> float | None:
    """Return a number of a run that completed; None where there is none."""
    value = outcome.numbers.get(name) if outcome.status == "completed" else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value

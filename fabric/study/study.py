"""A study: one program, what varies, what is wanted, and what is known."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from typing_extensions import override

from fabric.arguments.described import Described, refuse
from fabric.runs.simulation import Mode
from fabric.study.conditions import Condition, check_metric
from fabric.study.known import Claim, KnownValue
from fabric.study.outcome import Point
from fabric.study.space import Scalar, Setting, Space
from fabric.telling.errors import ConfigurationError, FabricError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fabric.study.findings import Findings

__all__ = ["Picture", "Study", "StudyTable"]

DEFAULT_METRIC: Final = "cycles"


@dataclass(frozen=True)
class Picture(Described):
    """A picture of a study's points.

    Attributes:
        name: of its files, without a suffix.
        title: above it.
        draw: draws it.
        caption: what to see in it.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    name: str
    title: str
    draw: Callable[[Findings, Figure], None]
    caption: str = ""


@dataclass(frozen=True)
class StudyTable(Described):
    """A table of a study's points.

    Attributes:
        title: above it.
        columns: their titles.
        rows: computes them, a text, a number or None for each column.
        caption: what to see in it.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    title: str
    columns: tuple[str, ...]
    rows: Callable[[Findings], Iterable[Sequence[object]]]
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Study(Described):
    """A set of runs that answers one question.

    Attributes:
        program: the path of its file.
        space: what varies; parameters, hardware keys and depths.
        question: what it answers.
        fixed: parameters, hardware keys and depths that do not vary.
        hardware: the path of a hardware file; the paper's where None.
        mode: ``timing`` or ``functional``; what the program states where None.
        minimize: metrics; without any, every point runs.
        where: conditions on metrics, as in ``on_chip_requirement_bytes <= 2e6``.
        known: published values.
        claims: sentences to be computed again.
        tables: beside those of every study.
        pictures: beside those of every study.
        name: the file's where empty.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    program: Path
    space: Space
    question: str = ""
    fixed: Setting = field(default_factory=dict)
    hardware: Path | None = None
    mode: Mode | None = None
    minimize: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    known: tuple[KnownValue, ...] = ()
    claims: tuple[Claim, ...] = ()
    tables: tuple[StudyTable, ...] = ()
    pictures: tuple[Picture, ...] = ()
    name: str = ""

    @override
    def __post_init__(self) -> None:
        """Refuse what cannot be studied.

        Raises:
            ConfigurationError: no points, metrics that there are not, a condition that is none or
                contradicts another, an axis that is fixed as well.
        """
        super().__post_init__()
        if not len(self.space):
            refuse("the study has no points: expected an axis with values", ConfigurationError)
        for name in self.minimize:
            check_metric(name)
            if self.minimize.count(name) > 1:
                refuse(f"{name} is minimised twice: expected each metric once", ConfigurationError)
        both = [name for name in self.space.values if name in self.fixed]
        if both:
            refuse(f"{both[0]} is varied and fixed: expected one of both", ConfigurationError)
        _check_together(self.conditions)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """``where``, as conditions."""
        return tuple(map(Condition.parse, self.where))

    @property
    def objectives(self) -> tuple[str, ...]:
        """What is minimised; the cycles where nothing is said."""
        return self.minimize or (DEFAULT_METRIC,)

    def point(self, index: int) -> Point:
        """Return a point of the space."""
        return Point(index, self.space[index])

    def whole(self, setting: Setting) -> dict[str, Scalar]:
        """Return a point's setting with what is fixed."""
        return {**self.fixed, **setting}


def _check_together(conditions: tuple[Condition, ...]) -> None:
    """Refuse conditions that no number can keep together."""
    for one, other in itertools.permutations(conditions, 2):
        if one.metric != other.metric or one.sign not in (">", ">=") or other.sign[0] != "<":
            continue
        strict = one.sign == ">" or other.sign == "<"
        if one.value > other.value or (one.value == other.value and strict):
            refuse(
                f"conditions {one} and {other} contradict each other: no point can keep both",
                ConfigurationError,
            )

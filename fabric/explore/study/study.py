"""A study: a program, its designs, its inputs, conditions, and what is known from elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from typing_extensions import override

from fabric.explore.study.outcome import Condition, Outcome, Point, check_metric, split_metric
from fabric.explore.study.space import Scalar, Setting, Space
from fabric.explore.study.written.words import setting_names
from fabric.graph.arguments.described import Described, refuse
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.files import hardware_file
from fabric.messages.text import counted
from fabric.runs.options import Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GOLDEN: Final = 0x9E3779B97F4A7C15

_TURN: Final = 1 << 64
"""Golden-section steps spread evenly and repeat no pattern."""

DEFAULT_METRIC: Final = "cycles"

_NO_INPUTS: Final = Space(((),))
"""The only input of a design that is a single run."""


class Findings(Protocol):
    """The points of a study and their outcomes."""

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Those that were dealt with, in the order of the space."""

    @property
    def front(self) -> Sequence[int]:
        """Indices of the points that nothing dominates."""

    def matching(self, **setting: object) -> list[Outcome]:
        """Return the outcomes whose settings, with what is fixed, have these values."""

    def value(self, metric: str, **setting: object) -> float | None:
        """Return a metric of the only point with these values; None where it did not complete.

        Raises:
            ConfigurationError: there is no such point, or there are several.
        """


@dataclass(frozen=True)
class KnownValue(Described):
    """A published value of a point.

    Attributes:
        setting: what names the point; of its axes, as many as it takes.
        metric: whose value.
        value: as published.
        source: who says so.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    setting: Setting
    metric: str
    value: float
    source: str


class Verdict(StrEnum):
    """What may come of checking a claim.

    Attributes:
        REPRODUCED: our points give what is claimed.
        UNEQUAL: they give it as the authors compare, but not if both sides have equal resources.
        RECOMPUTED: the published points give it; ours do not decide it.
        INCONSISTENT: other published numbers contradict it, whatever our points say.
        UNPUBLISHED: nothing decides it, because something is not published.
        CONTRADICTED: our points say otherwise.
    """

    REPRODUCED = "reproduced"
    UNEQUAL = "reproduced only on unequal terms"
    RECOMPUTED = "true of the published points"
    INCONSISTENT = "inconsistent with what is published"
    UNPUBLISHED = "not reproducible from what is published"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True)
class Judgement(Described):
    """The result of checking a claim.

    Attributes:
        found: what we find instead of the published value; empty where it cannot be computed.
        verdict: what comes of it.
        note: how it was computed, and why the verdict is what it is.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    found: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Claim(Described):
    """A statement, such as a sentence of a paper, that a study's points decide.

    Attributes:
        text: what is claimed.
        location: where, as in ``section 5.2``.
        published: the value there.
        judge: computes it again.
    """

    refusal: ClassVar[type[FabricError]] = ConfigurationError

    text: str
    location: str
    published: str
    judge: Callable[[Findings], Judgement]


def places_apart(total: int, count: int, *, said: str, what: str, use: str) -> frozenset[int]:
    """Return the ``count`` of ``total`` inputs that are held out.

    They are spread over all inputs, and the first one is never held out. A larger count holds out
    the same inputs and more. ``said``, ``what`` and ``use`` are for the error.
    """
    if not 0 <= count < total:
        raise ConfigurationError(
            f"{said}: of {counted(total, what)} at least one is to be {use}: expected "
            + (f"at most {total - 1:,}" if count >= total else "0 or more")
        )
    order = sorted(range(total), key=lambda index: -(index * _GOLDEN % _TURN))
    return frozenset(order[:count])


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
class Study(Options):
    """A set of runs that answers one question.

    It takes the options of runs that ``simulate`` takes, mode, exact, depths, hops, placement and
    livelock_cycles, for all points. It takes no on_deadlock: a point that deadlocks is
    reported without a remedy, because a neighbouring point may be one.

    Attributes:
        program: the path of its file.
        space: what varies: parameters, hardware keys, depths and hops; over ``depths``, ``hops``.
        question: what it answers.
        fixed: parameters, hardware keys, depths and hops that do not vary.
        hardware: a hardware file, or the name of one that comes with the fabric; the paper's
            if None.
        minimize: metrics; without any, every point runs.
        where: conditions on metrics, as in ``on_chip_requirement_bytes <= 2e6``.
        over: inputs that every design has to handle. A point is then a design that runs once with
            each input, and metrics are ``mean:METRIC``, ``worst:METRIC``, ``p95:METRIC``,
            ``median:METRIC`` or ``least:METRIC``.
        hold_out: so many inputs are set aside; at the end the designs on the front run with them.
        known: published values.
        claims: statements that the study checks.
        tables: beside those of every study.
        pictures: beside those of every study.
        name: the file's where empty.
    """

    without: ClassVar[Mapping[str, str]] = {
        "on_deadlock": "the deadlock of a point is described, and no remedy is looked for"
    }

    program: Path
    space: Space
    question: str = ""
    fixed: Setting = field(default_factory=dict)
    hardware: Path | None = None
    minimize: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    over: Space = _NO_INPUTS
    hold_out: int = 0
    known: tuple[KnownValue, ...] = ()
    claims: tuple[Claim, ...] = ()
    tables: tuple[StudyTable, ...] = ()
    pictures: tuple[Picture, ...] = ()
    name: str = ""

    @override
    def __post_init__(self) -> None:
        """Refuse what cannot be studied.

        Raises:
            ConfigurationError: an option that has no meaning, no points, metrics that there are
                not, a condition that is none or contradicts another, an axis that is fixed as
                well; inputs that are none, or all held out.
        """
        super().__post_init__()
        for name, why in self.without.items():
            if getattr(self, name) != getattr(Options, name):
                refuse(f"{name} is given: {why}: expected none", ConfigurationError)
        if self.hardware is not None:
            object.__setattr__(self, "hardware", hardware_file(self.hardware))
        if not len(self.space):
            refuse("the study has no points: expected an axis with values", ConfigurationError)
        for name in self.minimize:
            check_metric(name)
            if self.minimize.count(name) > 1:
                refuse(f"{name} is minimised twice: expected each metric once", ConfigurationError)
        both = [name for name in self.space.values if name in self.fixed]
        if both:
            refuse(f"{both[0]} is varied and fixed: expected one of both", ConfigurationError)
        self._check_inputs()
        _check_together(self.conditions)

    def _check_inputs(self) -> None:
        """Refuse inputs that are none, and metrics that are not of as many inputs as there are."""
        if not len(self.over):
            refuse("over has no inputs: expected an axis with values", ConfigurationError)
        if len(self.over.products) > 1:
            refuse("over is a sum of grids: expected one grid, or zipped axes", ConfigurationError)
        for others, what in ((self.space.values, "varied"), (self.fixed, "fixed")):
            both = [name for name in self.over.values if name in others]
            if both:
                refuse(
                    f"{both[0]} is an input and {what}: expected one of both", ConfigurationError
                )
        for name in self.judged_by:
            _check_statistic(name, has_inputs=self.has_inputs)
        if self.hold_out:
            self._check_held_out()

    def _check_held_out(self) -> None:
        """Refuse to hold inputs out where that has no meaning."""
        said = f"hold_out is {self.hold_out}"
        if not self.has_inputs:
            refuse(f"{said} and there are no inputs: expected some as over", ConfigurationError)
        if not self.minimize:
            refuse(
                f"{said} and nothing is chosen: expected a metric to minimize", ConfigurationError
            )
        try:
            _ = self.held_out
        except ConfigurationError as error:
            refuse(error.message, ConfigurationError)

    @property
    def has_inputs(self) -> bool:
        """Whether a design is more than a run."""
        return bool(self.over.values)

    @cached_property
    def runs(self) -> Space:
        """Every design with every input, those of one design after each other."""
        return self.space * self.over

    @cached_property
    def held_out(self) -> frozenset[int]:
        """Places of the inputs that are kept apart."""
        said = f"hold_out is {self.hold_out}"
        return places_apart(len(self.over), self.hold_out, said=said, what="input", use="chosen on")

    def runs_of(self, design: int, *, held_out: bool = False) -> tuple[int, ...]:
        """Return the indices of a design's runs, of the inputs held out or of all others."""
        first = design * len(self.over)
        return tuple(
            first + place for place in range(len(self.over)) if (place in self.held_out) is held_out
        )

    def design_of(self, run: int) -> int:
        """Return the design of a run."""
        return run // len(self.over)

    def is_held_out(self, run: int) -> bool:
        """Say whether the input of a run is one of those kept apart."""
        return run % len(self.over) in self.held_out

    def input_name(self, run: int) -> str:
        """Return what the input of a run is called: ``seed=3, routing=a.npz``."""
        return self._input_names[run % len(self.over)]

    @cached_property
    def _input_names(self) -> list[str]:
        return setting_names(self.over)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """``where``, as conditions."""
        return tuple(map(Condition.parse, self.where))

    @property
    def objectives(self) -> tuple[str, ...]:
        """What is minimised; the cycles where nothing is said."""
        return self.minimize or (f"mean:{DEFAULT_METRIC}" if self.has_inputs else DEFAULT_METRIC,)

    @property
    def judged_by(self) -> tuple[str, ...]:
        """The metrics that a point has to have: those that are minimised or have conditions."""
        return (*self.minimize, *(each.metric for each in self.conditions))

    @property
    def judged_by_run(self) -> tuple[str, ...]:
        """The metrics that a run has to have for that."""
        return tuple(dict.fromkeys(split_metric(each)[1] for each in self.judged_by))

    @property
    def shown(self) -> tuple[str, ...]:
        """The metrics that it is about: what is minimised, and what has conditions.

        An area is never shown without its range.
        """
        named = dict.fromkeys([*self.objectives, *(each.metric for each in self.conditions)])
        found: dict[str, None] = {}
        for name in named:
            found[name] = None
            statistic, metric = split_metric(name)
            if metric == "area_mm2":
                ends = ("area_low_mm2", "area_high_mm2")
                found |= dict.fromkeys(f"{statistic}:{end}" if statistic else end for end in ends)
        return tuple(found)

    def point(self, index: int) -> Point:
        """Return a point of the space; where it has inputs, one of ``runs``."""
        return Point(index, self.runs[index])

    def whole(self, setting: Setting) -> dict[str, Scalar]:
        """Return a point's setting with what is fixed."""
        return {**self.fixed, **setting}


def _check_statistic(name: str, *, has_inputs: bool) -> None:
    """Refuse run metrics with inputs, and statistics without."""
    statistic, metric = split_metric(name)
    if has_inputs and not statistic:
        refuse(
            f"{metric} is of one run, and a design has one for each input: expected "
            f"mean:{metric}, worst:{metric} or p95:{metric}",
            ConfigurationError,
        )
    if statistic and not has_inputs:
        refuse(
            f"{name} is of several inputs, and there are none: expected {metric}, or inputs as "
            "over",
            ConfigurationError,
        )


def _check_together(conditions: tuple[Condition, ...]) -> None:
    """Refuse contradictory conditions."""
    for one, other in itertools.permutations(conditions, 2):
        if one.metric != other.metric or one.sign not in (">", ">=") or other.sign[0] != "<":
            continue
        strict = one.sign == ">" or other.sign == "<"
        if one.value > other.value or (one.value == other.value and strict):
            refuse(
                f"conditions {one} and {other} contradict each other: no point can keep both",
                ConfigurationError,
            )

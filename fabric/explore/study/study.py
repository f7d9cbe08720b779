"""A study: a program, its designs, inputs and conditions, and published values and claims."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from typing_extensions import override

from fabric.explore.study.outcome import (
    Condition,
    Outcome,
    Point,
    Question,
    check_metric,
    split_metric,
)
from fabric.explore.study.space import Scalar, Setting, Space, listed
from fabric.explore.study.written.words import setting_names
from fabric.graph.arguments.described import Described, refuse
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.files import hardware_file
from fabric.messages.text import counted
from fabric.runs.options import Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TURN: Final = 1 << 64

_GOLDEN_STEP: Final = 0x9E3779B97F4A7C15
"""The golden section of ``_TURN``: its multiples, modulo ``_TURN``, are spread evenly."""

DEFAULT_METRIC: Final = "cycles"

_NO_AXES: Final = Space(((),))
"""A space with one empty setting."""


class Findings(Protocol):
    """The outcomes of a study, which claims, tables and pictures receive."""

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """The outcomes so far, in the order of the space."""

    @property
    def front(self) -> Sequence[int]:
        """Indices of the points that no point dominates."""

    def matching(self, **setting: object) -> list[Outcome]:
        """Return the outcomes with these values of axes and fixed parameters."""

    def value(self, metric: str, **setting: object) -> float | None:
        """Return a metric of the only point with these values; None if it did not complete.

        Raises:
            ConfigurationError: no point has these values, or several have.
        """


class _InStudy(Described):
    refusal: ClassVar[type[FabricError]] = ConfigurationError


@dataclass(frozen=True)
class KnownValue(_InStudy):
    """A published value of a point.

    Attributes:
        setting: values of the axes that identify the point.
        value: in the metric's unit.
    """

    setting: Setting
    metric: str
    value: float
    source: str


class Verdict(StrEnum):
    """The result of checking a claim.

    Attributes:
        REPRODUCED: our points show the claim.
        UNEQUAL: they show it in the authors' comparison, but not if both sides have equal
            resources.
        RECOMPUTED: the published points show it; ours do not decide it.
        INCONSISTENT: other published numbers contradict it.
        UNPUBLISHED: undecided, because a needed number is not published.
        CONTRADICTED: our points contradict it.
    """

    REPRODUCED = "reproduced"
    UNEQUAL = "reproduced only on unequal terms"
    RECOMPUTED = "true of the published points"
    INCONSISTENT = "inconsistent with what is published"
    UNPUBLISHED = "not reproducible from what is published"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True)
class Judgement(_InStudy):
    """A verdict on a claim.

    Attributes:
        found: our value as text; empty if it cannot be computed.
        note: how the value was computed, and the reason of the verdict.
    """

    found: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Claim(_InStudy):
    """A statement, such as a sentence of a paper, that a study's points decide.

    Attributes:
        location: the place of the statement, as in ``section 5.2``.
        published: the published value as text.
        judge: computes our value and the verdict.
    """

    text: str
    location: str
    published: str
    judge: Callable[[Findings], Judgement]


def held_out_places(total: int, count: int, option: str) -> frozenset[int]:
    """Return the places of the held-out inputs: ``count`` of ``total``.

    They are spread over all inputs, without the first. A larger count holds out the same inputs and
    more. ``option`` begins the text of the error.
    """
    if not 0 <= count < total:
        refuse(
            f"{option} of {counted(total, 'input')}: expected 0 to {total - 1:,}, to keep at least "
            "one",
            ConfigurationError,
        )
    order = sorted(range(total), key=lambda index: -(index * _GOLDEN_STEP % _TURN))
    return frozenset(order[:count])


@dataclass(frozen=True)
class Picture(_InStudy):
    """A picture of a study's points.

    Attributes:
        name: name of its files, without a suffix.
        draw: draws the points into the figure.
    """

    name: str
    title: str
    draw: Callable[[Findings, Figure], None]
    caption: str = ""


@dataclass(frozen=True)
class StudyTable(_InStudy):
    """A table of a study's points.

    Attributes:
        rows: computes the rows, each with a text, a number or None for each column.
    """

    title: str
    columns: tuple[str, ...]
    rows: Callable[[Findings], Iterable[Sequence[object]]]
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Study(Options):
    """A set of runs that answers one question.

    The options of ``simulate`` apply to all points: mode, exact, depths, hops, placement and
    livelock_cycles. A study takes no on_deadlock: deadlocks are reported without a remedy,
    because a neighbouring point may be a remedy.

    Attributes:
        program: the path of the program's file.
        space: values of parameters, hardware keys, depths and hops; they override ``depths`` and
            ``hops``.
        question: a sentence for reports.
        fixed: parameters, hardware keys, depths and hops that do not vary.
        hardware: a hardware file, or the name of one that comes with the fabric; the paper's
            if None.
        minimize: metrics to minimise; without any, every point runs.
        where: conditions on metrics, as in ``on_chip_requirement_bytes <= 2e6``.
        over: inputs that every design has to handle. A point is then a design that runs once with
            each input, and metrics are ``mean:METRIC``, ``worst:METRIC``, ``p95:METRIC``,
            ``median:METRIC`` or ``least:METRIC``.
        hold_out: number of inputs to hold out; at the end, the designs on the front run with them.
        again: changes of fixed values or defaults, such as another memory. At the end, the designs
            on the front run again with each.
        asks: a question of your own, which takes the place of a program.
        name: by default, the name of the study's file.
    """

    without: ClassVar[Mapping[str, str]] = {
        "on_deadlock": "the deadlock of a point is described, and no remedy is looked for"
    }

    program: Path | None = None
    space: Space
    question: str = ""
    fixed: Setting = field(default_factory=dict)
    hardware: Path | None = None
    minimize: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    over: Space = _NO_AXES
    hold_out: int = 0
    again: Space = _NO_AXES
    known: tuple[KnownValue, ...] = ()
    claims: tuple[Claim, ...] = ()
    tables: tuple[StudyTable, ...] = ()
    pictures: tuple[Picture, ...] = ()
    asks: Question | None = None
    name: str = ""

    @override
    def __post_init__(self) -> None:
        """Check the study, and find the hardware file by its name.

        Raises:
            ConfigurationError: on_deadlock is given; program and asks are both given or missing;
                the space or ``over`` is empty; a metric is unknown; a condition is malformed or
                contradicts another; a name is varied and fixed; all inputs are held out; or
                ``again`` or ``hold_out`` is given without a metric to minimise.
        """
        super().__post_init__()
        if self.hardware is not None:
            object.__setattr__(self, "hardware", hardware_file(self.hardware))

    @override
    def _faults(self) -> Iterator[str]:
        for name, why in self.without.items():
            if getattr(self, name) != getattr(Options, name):
                yield f"{name} is given: {why}: expected a study without it"
        if (self.program is None) == (self.asks is None):
            yield "program and asks are both given or both missing: expected one of the two"
        if not len(self.space):
            yield "space has no points: expected an axis with values"
        for name in self.judged_by if self.asks is None else ():
            check_metric(name)
        for name in self.minimize:
            if self.minimize.count(name) > 1:
                yield f"{name} is minimised twice: expected each metric once"
        yield from _two_roles(self.space.values, self.fixed, "varied and fixed")
        yield from self._faults_of_inputs()
        if len(self.again.products) > 1:
            yield "again is a sum of grids: expected one grid, or zipped axes"
        if self.again.values and not self.minimize:
            yield "again needs a front to run again: expected a metric to minimize"
        yield from _two_roles(self.again.values, self.runs.values, "in again and varied")
        yield from _contradictions(self.conditions)

    def _faults_of_inputs(self) -> Iterator[str]:
        if not len(self.over):
            yield "over has no inputs: expected an axis with values"
        if len(self.over.products) > 1:
            yield "over is a sum of grids: expected one grid, or zipped axes"
        yield from _two_roles(self.over.values, self.space.values, "an input and varied")
        yield from _two_roles(self.over.values, self.fixed, "an input and fixed")
        for name in self.judged_by:
            statistic, metric = split_metric(name)
            if self.has_inputs and not statistic:
                yield (
                    f"{metric} is a number of one run, and a design has a run for each input: "
                    f"expected mean:{metric}, worst:{metric} or p95:{metric}"
                )
            if statistic and not self.has_inputs:
                yield (
                    f"{name} is a statistic over inputs, and the study has no inputs: expected "
                    f"{metric}, or inputs as over"
                )
        option = f"hold_out is {self.hold_out}"
        if self.hold_out and not self.has_inputs:
            yield f"{option} without inputs: expected inputs, as over"
        if self.hold_out and not self.minimize:
            yield f"{option} and there is no front to test: expected a metric to minimize"
        _ = self.held_out

    @property
    def has_inputs(self) -> bool:
        return bool(self.over.values)

    def repeated(self, designs: Space) -> Study:
        """Return the study that runs ``designs`` with each change of ``again``, without pruning."""
        chosen = [self.over[n] for n in range(len(self.over)) if n not in self.held_out]
        return replace(
            self,
            name=f"{self.name}, again",
            space=designs * self.again,
            fixed={name: x for name, x in self.fixed.items() if name not in self.again.values},
            over=listed(chosen) if self.held_out else self.over,
            minimize=(), where=(), known=(), claims=(), tables=(), pictures=(),
            hold_out=0,
            again=_NO_AXES,
        )  # fmt: skip

    @cached_property
    def runs(self) -> Space:
        """Every design with every input; the runs of a design follow each other."""
        return self.space * self.over

    @cached_property
    def held_out(self) -> frozenset[int]:
        """Places of the held-out inputs in ``over``."""
        return held_out_places(len(self.over), self.hold_out, f"hold_out is {self.hold_out}")

    def runs_of(self, design: int, *, held_out: bool = False) -> tuple[int, ...]:
        """Return the indices of a design's runs: those with held-out inputs, or the rest."""
        first = design * len(self.over)
        return tuple(
            first + place for place in range(len(self.over)) if (place in self.held_out) is held_out
        )

    def design_of(self, run: int) -> int:
        return run // len(self.over)

    def is_held_out(self, run: int) -> bool:
        return run % len(self.over) in self.held_out

    def input_name(self, run: int) -> str:
        """Return the name of a run's input: ``seed=3, routing=a.npz``."""
        return self._input_names[run % len(self.over)]

    @cached_property
    def _input_names(self) -> list[str]:
        return setting_names(self.over)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(map(Condition.parse, self.where))

    @property
    def objectives(self) -> tuple[str, ...]:
        """The metrics to minimise; by default, the cycles."""
        return self.minimize or (f"mean:{DEFAULT_METRIC}" if self.has_inputs else DEFAULT_METRIC,)

    @property
    def judged_by(self) -> tuple[str, ...]:
        """Metrics that a point needs: those that are minimised or have conditions."""
        return (*self.minimize, *(each.metric for each in self.conditions))

    @property
    def judged_by_run(self) -> tuple[str, ...]:
        """Metrics that a run needs, without statistics."""
        return tuple(dict.fromkeys(split_metric(each)[1] for each in self.judged_by))

    @property
    def shown(self) -> tuple[str, ...]:
        """Metrics in tables and pictures: objectives and metrics of conditions.

        An area is shown with its range.
        """
        named = dict.fromkeys([*self.objectives, *(each.metric for each in self.conditions)])
        shown: dict[str, None] = {}
        for name in named:
            shown[name] = None
            statistic, metric = split_metric(name)
            if metric == "area_mm2":
                ends = ("area_low_mm2", "area_high_mm2")
                shown |= dict.fromkeys(f"{statistic}:{end}" if statistic else end for end in ends)
        return tuple(shown)

    def point(self, index: int) -> Point:
        return Point(index, self.runs[index])

    def whole(self, setting: Setting) -> dict[str, Scalar]:
        """Return a point's setting with the fixed values."""
        return {**self.fixed, **setting}


def _two_roles(names: Iterable[str], others: Container[str], roles: str) -> Iterator[str]:
    return (f"{x} is {roles}: expected one of the two" for x in names if x in others)


def _contradictions(conditions: tuple[Condition, ...]) -> Iterator[str]:
    for one, other in itertools.permutations(conditions, 2):
        if one.metric != other.metric or one.sign not in (">", ">=") or other.sign[0] != "<":
            continue
        strict = one.sign == ">" or other.sign == "<"
        if one.value > other.value or (one.value == other.value and strict):
            yield (
                f"conditions {one} and {other} contradict each other: expected conditions that a "
                "point can meet together"
            )

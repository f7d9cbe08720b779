"""What a study found, over several inputs, too, and what its own functions compute of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from typing_extensions import override

from fabric.explore.study.evaluation import Before
from fabric.explore.study.outcome import (
    ENDED,
    METRICS,
    PROVED,
    STATISTICS,
    Outcome,
    metric,
    nondominated,
    over_inputs,
    split_metric,
)
from fabric.explore.study.outcome import metric as value_of
from fabric.explore.study.study import Judgement, KnownValue, Study
from fabric.messages.telling.errors import ConfigurationError, FabricError, said
from fabric.messages.telling.place import raising_place
from fabric.messages.telling.plain import JsonObject
from fabric.messages.telling.sheet import ShownAsTables
from fabric.messages.telling.users_code import pass_signals
from fabric.messages.telling.wording import counted

if TYPE_CHECKING:
    from fabric.explore.study.study import Claim, Findings, StudyTable

_Known: TypeAlias = tuple[Mapping[str, float], Sequence[str]]
"""Of an input: metrics that are at least so much, and the names of those that are just so much."""

_SPREAD: Final = tuple(STATISTICS)

_Found = TypeVar("_Found")


@dataclass(frozen=True, kw_only=True)
class DesignOutcome(Outcome):
    """The outcome of a design that runs with several inputs.

    Its numbers are statistics of its runs, as in ``mean:cycles``, of each metric that the study
    asks for; ``number`` computes others when they are asked for.

    Attributes:
        runs: what became of each, in the order of the inputs; without those held out.
    """

    runs: tuple[Outcome, ...]

    @property
    @override
    def ended(self) -> str:
        if self.pruned_by is None:
            return super().ended
        what = "break a condition" if self.status == "infeasible" else "be dominated"
        return f"was proved to {what} before all of its runs were made"

    @override
    def number(self, name: str) -> object:
        return self.numbers[name] if name in self.numbers else _over(name, self.runs)

    @override
    def as_json(self) -> JsonObject:
        return super().as_json() | {"runs": [each.as_json() for each in self.runs]}


def design_outcome(study: Study, design: int, runs: Sequence[Outcome]) -> Outcome:
    """Return what became of a design.

    Without inputs it is its only run. Otherwise it was proved away if that spared it a run; it has
    failed as the first of its runs that has; else it has completed.

    Args:
        study: which it is of.
        design: its index in the study's space.
        runs: one for each input that the study chooses on, in their order.
    """
    if not study.has_inputs:
        return runs[0]
    proved = next((each for each in runs if each.pruned_by is not None), None)
    decisive = proved or next((each for each in runs if has_failed(each)), runs[0])
    reason = decisive.reason
    if reason is not None:
        reason = f"with {study.input_name(decisive.index)}: {reason}"
    known = [_known(study, each) if proved else (each.bounds, each.exact) for each in runs]
    bounds, exact = _bounds(study.judged_by, known)
    seconds = [each.wall_seconds for each in runs if each.wall_seconds is not None]
    return DesignOutcome(
        index=design,
        setting=study.space[design],
        parameters=_alike([each.parameters for each in runs if each.parameters]),
        hardware=_alike([each.hardware for each in runs if each.hardware]) or None,
        status=decisive.status,
        numbers=_spread(study, runs) if decisive.status == "completed" else {},
        bounds=bounds,
        exact=exact,
        pruned_by=decisive.pruned_by,
        reason=reason,
        wall_seconds=math.fsum(seconds) if seconds else None,
        runs=tuple(runs),
    )


def _spread(study: Study, runs: Sequence[Outcome]) -> dict[str, float]:
    """Return the statistics of what the study shows of its runs, where they have it."""
    asked = dict.fromkeys(split_metric(each)[1] for each in study.shown)
    names = [f"{of}:{name}" for name in asked for of in _SPREAD]
    return {name: value for name in names if (value := _over(name, runs)) is not None}


def design_before(
    study: Study,
    design: int,
    runs: Sequence[Outcome | None],
    befores: Sequence[Before | None],
) -> Before:
    """Return what is known of a design from its finished runs, and of the others before they run.

    Args:
        study: which it is of.
        design: its index in the study's space.
        runs: one for each input that the study chooses on; None where it has not ended.
        befores: what is known of each input before its run; None where nothing is.
    """
    if not study.has_inputs:
        return befores[0] or Before(design)
    known: list[_Known] = []
    for run, before in zip(runs, befores, strict=True):
        if run is not None:
            known.append(_known(study, run))
        elif before is not None:
            known.append((before.bounds, before.exact))
        else:
            known.append(({}, ()))
    bounds, exact = _bounds(study.judged_by, known)
    return Before(design, bounds, exact)


def has_failed(run: Outcome) -> bool:
    """Say whether a run has ended, and not as it should."""
    return run.status not in ("completed", *PROVED)


def _known(study: Study, run: Outcome) -> _Known:
    """Return what a run came to, as what is known of its input: no bound is closer."""
    if run.status != "completed":
        return run.bounds, run.exact
    values = {name: metric(run, name) for name in study.judged_by_run}
    known = {name: value for name, value in values.items() if value is not None}
    return known, tuple(known)


def _bounds(
    names: Iterable[str], known: Sequence[_Known]
) -> tuple[dict[str, int | float], tuple[str, ...]]:
    """Return what is known of statistics, and which of them are known exactly."""
    bounds: dict[str, int | float] = {}
    exact = []
    for name in dict.fromkeys(names):
        statistic, of = split_metric(name)
        least = over_inputs(statistic, [bounds.get(of, -math.inf) for bounds, _ in known])
        if least > -math.inf:
            bounds[name] = least
            if all(of in names for _, names in known):
                exact.append(name)
    return bounds, tuple(exact)


def _over(name: str, runs: Sequence[Outcome]) -> float | None:
    """Return a statistic of what runs have; None where it is none, or a run has no such number."""
    statistic, of = split_metric(name)
    values = [metric(each, of) for each in runs]
    known = [each for each in values if each is not None]
    return over_inputs(statistic, known) if statistic and len(known) == len(values) else None


def _alike(objects: Sequence[JsonObject]) -> JsonObject:
    """Return what all of some objects have."""
    first = objects[0] if objects else {}
    return {
        name: value
        for name, value in first.items()
        if all(name in each and each[name] == value for each in objects)
    }


@dataclass(frozen=True)
class Filled:
    """A table with its rows.

    Attributes:
        table: which.
        rows: none where they could not be computed.
        trouble: why.
    """

    table: StudyTable
    rows: tuple[tuple[object, ...], ...]
    trouble: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim, and what came of computing it again.

    Attributes:
        claim: which.
        judgement: None where it could not be computed.
        trouble: why.
    """

    claim: Claim
    judgement: Judgement | None
    trouble: str = ""


def filled(table: StudyTable, findings: Findings) -> Filled:
    """Compute a table; one whose points are missing, or that raises, says so."""
    rows, trouble = _computed(lambda: _rows(table, findings))
    return Filled(table, rows or (), trouble)


def judged(claim: Claim, findings: Findings) -> Judged:
    """Compute a claim again; one whose points are missing, or that raises, says so."""
    return Judged(claim, *_computed(lambda: claim.judge(findings)))


def _computed(compute: Callable[[], _Found]) -> tuple[_Found | None, str]:
    """Return what is computed; None, and why, where that was not possible."""
    try:
        return compute(), ""
    except FabricError as error:
        return None, str(error)
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        pass_signals(error)
        place = raising_place(error)
        return None, f"{place}: {said(error)}" if place else said(error)


def _rows(wanted: StudyTable, findings: Findings) -> tuple[tuple[object, ...], ...]:
    rows = tuple(map(tuple, wanted.rows(findings)))
    for row in rows:
        if len(row) != len(wanted.columns):
            raise ConfigurationError(
                f"a row has {counted(len(row), 'cell')}: expected {len(wanted.columns)}, one "
                f"for each column"
            )
    return rows


@dataclass(frozen=True, repr=False)
class StudyResult(ShownAsTables):
    """The outcomes of a study's points.

    Attributes:
        study: which it is of.
        outcomes: of the points that were dealt with, in the order of the space.
        resumed: how many of them were known from an earlier session.
        wall_seconds: that this session took.
        interrupted: whether points are missing because somebody stopped it.
        runs: of designs over inputs, in the order of ``Study.runs``; those of designs that are not
            dealt with, and those of inputs held out, among them.
        resumed_runs: how many of them were known from an earlier session.
    """

    study: Study
    outcomes: tuple[Outcome, ...]
    resumed: int = 0
    wall_seconds: float = 0.0
    interrupted: bool = False
    runs: tuple[Outcome, ...] = ()
    resumed_runs: int = 0

    @cached_property
    def front(self) -> tuple[int, ...]:
        """Indices of the points that nothing dominates; empty where nothing is minimised."""
        if not self.study.minimize:
            return ()
        return tuple(sorted(nondominated(self.kept(), self.study.minimize)))

    @cached_property
    def filled_tables(self) -> tuple[Filled, ...]:
        """The study's own tables with their rows, or why they could not be computed."""
        return tuple(filled(each, self) for each in self.study.tables)

    @cached_property
    def judged_claims(self) -> tuple[Judged, ...]:
        """The study's claims with their verdicts, or why they could not be computed."""
        return tuple(judged(each, self) for each in self.study.claims)

    @cached_property
    def held_out(self) -> tuple[Outcome, ...]:
        """What became of the front's designs on the inputs held out, where all have run."""
        known = {each.index: each for each in self.runs}
        found = []
        for design in self.front if self.study.held_out else ():
            runs = [known.get(run) for run in self.study.runs_of(design, held_out=True)]
            ended = [each for each in runs if each is not None]
            if len(ended) == len(runs):
                found.append(design_outcome(self.study, design, ended))
        return tuple(found)

    def kept(self) -> list[Outcome]:
        """Return the runs that completed and keep all conditions."""
        conditions = self.study.conditions
        return [
            each
            for each in self.outcomes
            if each.status == "completed" and all(one.holds(each) for one in conditions)
        ]

    def matching(self, **setting: object) -> list[Outcome]:
        """Return the outcomes whose settings have these values."""
        return list(self._where(setting))

    def value(self, metric: str, **setting: object) -> float | None:
        """Return a metric of the only point with these values; None where it did not complete.

        Raises:
            ConfigurationError: there is no such point, or there are several.
        """
        found = self.matching(**setting)
        if len(found) != 1:
            told = ", ".join(f"{name}={value}" for name, value in setting.items())
            raise ConfigurationError(
                f"study {self.study.name}: {counted(len(found), 'point')} have {told}: expected one"
            )
        return value_of(found[0], metric)

    def beside(self) -> list[tuple[KnownValue, Outcome | None]]:
        """Return each known value with the point it is of, where there is one."""
        return [(known, next(self._where(known.setting), None)) for known in self.study.known]

    def _where(self, setting: object) -> Iterator[Outcome]:
        assert isinstance(setting, dict)
        for each in self.outcomes:
            whole = self.study.whole(each.setting)
            if all(name in whole and whole[name] == value for name, value in setting.items()):
                yield each

    @property
    def answered(self) -> bool:
        """Whether a point completed, with every metric that was asked for."""
        return any(each.status == "completed" for each in self.outcomes)

    @property
    def counts(self) -> dict[str, int]:
        """How many points there are, ran, were proved away, failed, and were known before."""
        statuses = [each.status for each in self.outcomes]
        proved = sum(status in PROVED for status in statuses)
        failed = sum(status not in ("completed", *PROVED) for status in statuses)
        return {
            "total": len(self.study.space),
            "run": len(statuses) - proved - self.resumed,
            "pruned": proved,
            "failed": failed,
            "resumed": self.resumed,
        }

    @property
    def run_counts(self) -> dict[str, int]:
        """How many runs designs over inputs have, and what became of them.

        ``held_out`` are beside ``total``, and among those that ran or were known before.
        """
        chosen = [each for each in self.runs if not self.study.is_held_out(each.index)]
        spared = sum(each.status in PROVED for each in chosen)
        return {
            "total": len(self.study.space) * len(self.study.runs_of(0)),
            "run": len(self.runs) - spared - self.resumed_runs,
            "spared": spared,
            "resumed": self.resumed_runs,
            "held_out": len(self.runs) - len(chosen),
        }

    @property
    def ended(self) -> dict[str, int]:
        """How many points ended in which way, in words."""
        found = dict.fromkeys(ENDED, 0)
        for each in self.outcomes:
            found[each.status] += 1
        return {ENDED[status]: count for status, count in found.items() if count}

    def as_json(self) -> JsonObject:
        """Return the object that ``study --json`` prints."""
        told = {
            "study": self.study.name,
            "question": self.study.question,
            "minimize": list(self.study.minimize),
            "where": list(self.study.where),
            "points": [_as_point(each) for each in self.outcomes],
            "pareto": list(self.front),
            "counts": self.counts,
            "tables": [_as_table(each) for each in self.filled_tables],
            "known": [self._as_known(*each) for each in self.beside()],
            "claims": [_as_claim(each) for each in self.judged_claims],
            "wall_seconds": self.wall_seconds,
            "status": "interrupted" if self.interrupted else "completed",
            "error": None,
        }
        if not self.study.has_inputs:
            return told
        return told | {
            "over": list(self.study.over),
            "run_counts": self.run_counts,
            "held_out": [self._as_held_out(each) for each in self.held_out],
        }

    def _as_held_out(self, outcome: Outcome) -> JsonObject:
        """Return what became of a design on the inputs held out, and which conditions it breaks."""
        broken = [str(each) for each in self.study.conditions if not each.holds(outcome)]
        return _as_point(outcome) | {"breaks": broken if outcome.status == "completed" else []}

    def _as_known(self, known: KnownValue, outcome: Outcome | None) -> JsonObject:
        """Return a published value and ours, None where there is none."""
        ours = None if outcome is None else value_of(outcome, known.metric)
        return {
            "setting": known.setting,
            "metric": known.metric,
            "published": known.value,
            "ours": ours,
            "source": known.source,
        }


def _as_point(outcome: Outcome) -> JsonObject:
    """Return a point with all metrics of reports; those of a design over inputs are of its runs."""
    told = outcome.as_json()
    if "runs" in told:
        return told | {"runs": [dict.fromkeys(METRICS) | run for run in told["runs"]]}
    return dict.fromkeys(METRICS) | told


def _as_table(filled: Filled) -> JsonObject:
    return {
        "title": filled.table.title,
        "columns": list(filled.table.columns),
        "rows": [list(row) for row in filled.rows],
        "caption": filled.table.caption,
        "trouble": filled.trouble or None,
    }


def _as_claim(judged: Judged) -> JsonObject:
    claim, judgement = judged.claim, judged.judgement
    return {
        "text": claim.text,
        "location": claim.location,
        "published": claim.published,
        "found": None if judgement is None else judgement.found,
        "verdict": None if judgement is None else str(judgement.verdict),
        "note": None if judgement is None else judgement.note,
        "trouble": judged.trouble or None,
    }

"""Results of studies: outcomes of designs over inputs, fronts, tables and claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from typing_extensions import override

from fabric.display.parts import Sheet
from fabric.display.result import Result
from fabric.explore.study.outcome import (
    METRICS,
    PROVED,
    STATISTICS,
    Before,
    Outcome,
    metric,
    nondominated,
    split_metric,
)
from fabric.explore.study.outcome import metric as value_of
from fabric.explore.study.space import Setting, typed
from fabric.explore.study.study import Judgement, KnownValue, Study
from fabric.messages.errors import ConfigurationError, FabricError, error_text
from fabric.messages.place import raising_place
from fabric.messages.text import JsonObject, counted
from fabric.messages.users_code import pass_signals

if TYPE_CHECKING:
    from fabric.explore.study.study import Claim, Findings, StudyTable

_Bounds: TypeAlias = tuple[Mapping[str, float], Sequence[str]]
"""Lower bounds of a run's metrics, and the names of the exact ones."""

_Computed = TypeVar("_Computed")


@dataclass(frozen=True, kw_only=True)
class DesignOutcome(Outcome):
    """The outcome of a design that runs with several inputs.

    Its numbers are statistics of its runs, as in ``mean:cycles``, for the metrics of the study;
    ``number`` also computes statistics of other metrics.

    Attributes:
        runs: in the order of the inputs, without held-out inputs.
    """

    runs: tuple[Outcome, ...]

    @property
    @override
    def ended(self) -> str:
        if self.pruned_by is None:
            return super().ended
        flaw = "break a condition" if self.status == "infeasible" else "be dominated"
        return f"was proved to {flaw} before all of its runs were made"

    @override
    def number(self, name: str) -> object:
        return self.numbers[name] if name in self.numbers else _over(name, self.runs)

    @override
    def as_json(self) -> JsonObject:
        return super().as_json() | {"runs": [each.as_json() for each in self.runs]}


def design_outcome(study: Study, design: int, runs: Sequence[Outcome]) -> Outcome:
    """Return the outcome of a design from its runs, one for each input that is not held out.

    A study without inputs has one run for each design, which is its outcome. Otherwise a design
    with a pruned run is pruned, and one with a failed run has the status of the first failed run.
    """
    if not study.has_inputs:
        return runs[0]
    proved = next((each for each in runs if each.pruned_by is not None), None)
    decisive = proved or next((each for each in runs if has_failed(each)), runs[0])
    reason = decisive.reason
    if reason is not None:
        reason = f"with {study.input_name(decisive.index)}: {reason}"
    of_runs = [_run_bounds(study, each) if proved else (each.bounds, each.exact) for each in runs]
    bounds, exact = _bounds(study.judged_by, of_runs)
    seconds = [each.wall_seconds for each in runs if each.wall_seconds is not None]
    return DesignOutcome(
        index=design,
        setting=study.space[design],
        parameters=_common([each.parameters for each in runs if each.parameters]),
        hardware=_common([each.hardware for each in runs if each.hardware]) or None,
        status=decisive.status,
        numbers=_statistics(study, runs) if decisive.status == "completed" else {},
        bounds=bounds,
        exact=exact,
        pruned_by=decisive.pruned_by,
        reason=reason,
        code=decisive.code,
        wall_seconds=math.fsum(seconds) if seconds else None,
        runs=tuple(runs),
    )


def _statistics(study: Study, runs: Sequence[Outcome]) -> dict[str, float]:
    metrics = dict.fromkeys(split_metric(each)[1] for each in study.shown)
    names = [f"{statistic}:{name}" for name in metrics for statistic in STATISTICS]
    return {name: value for name in names if (value := _over(name, runs)) is not None}


def design_before(
    study: Study, design: int, runs: Sequence[Outcome | None], befores: Sequence[Before]
) -> Before:
    """Return a design's bounds from its finished runs, and the bounds of its other runs."""
    if not study.has_inputs:
        return befores[0]
    of_runs = [
        (before.bounds, before.exact) if run is None else _run_bounds(study, run)
        for run, before in zip(runs, befores, strict=True)
    ]
    bounds, exact = _bounds(study.judged_by, of_runs)
    return Before(design, bounds, exact)


def has_failed(run: Outcome) -> bool:
    """Return whether a run was needed and did not complete."""
    return run.status not in ("completed", *PROVED)


def _run_bounds(study: Study, run: Outcome) -> _Bounds:
    if run.status != "completed":
        return run.bounds, run.exact
    values = {name: metric(run, name) for name in study.judged_by_run}
    exact = {name: value for name, value in values.items() if value is not None}
    return exact, tuple(exact)


def _bounds(
    names: Iterable[str], of_runs: Sequence[_Bounds]
) -> tuple[dict[str, int | float], tuple[str, ...]]:
    bounds: dict[str, int | float] = {}
    exact = []
    for name in dict.fromkeys(names):
        statistic, inner = split_metric(name)
        least = STATISTICS[statistic]([each.get(inner, -math.inf) for each, _ in of_runs])
        if least > -math.inf:
            bounds[name] = least
            if all(inner in names for _, names in of_runs):
                exact.append(name)
    return bounds, tuple(exact)


def _over(name: str, runs: Sequence[Outcome]) -> float | None:
    statistic, inner = split_metric(name)
    values = [metric(each, inner) for each in runs]
    present = [each for each in values if each is not None]
    return STATISTICS[statistic](present) if statistic and len(present) == len(values) else None


def _common(objects: Sequence[JsonObject]) -> JsonObject:
    first = objects[0] if objects else {}
    return {
        name: value
        for name, value in first.items()
        if all(name in each and each[name] == value for each in objects)
    }


@dataclass(frozen=True)
class Filled:
    """A table and its rows; ``trouble`` is the text of the error if the rows failed."""

    table: StudyTable
    rows: tuple[tuple[object, ...], ...]
    trouble: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim and its judgement; without a judgement, ``trouble`` is the text of the error."""

    claim: Claim
    judgement: Judgement | None
    trouble: str = ""


def computed(compute: Callable[[], _Computed]) -> tuple[_Computed | None, str]:
    """Return the result of a study's own code, or None and the text of the error it raised."""
    try:
        return compute(), ""
    except FabricError as error:
        return None, str(error)
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        pass_signals(error)
        place = raising_place(error)
        return None, f"{place}: {error_text(error)}" if place else error_text(error)


def _rows(table: StudyTable, findings: Findings) -> tuple[tuple[object, ...], ...]:
    rows = tuple(map(tuple, table.rows(findings)))
    for row in rows:
        if len(row) != len(table.columns):
            raise ConfigurationError(
                f"a row has {counted(len(row), 'cell')}: expected {len(table.columns)}, one "
                f"for each column"
            )
    return rows


@dataclass(frozen=True, repr=False)
class StudyResult(Result):
    """The outcomes of a study's points, in the order of the space.

    Attributes:
        resumed: number of outcomes from earlier sessions.
        interrupted: whether points are missing because the study was stopped.
        runs: if designs run over inputs, every run in the order of ``Study.runs``, also runs of
            incomplete designs and runs with held-out inputs.
        resumed_runs: number of runs from earlier sessions.
        again: the designs on the front, each with every change of ``Study.again``; None if they did
            not run again.
        command: the command line of the study; empty if Python code ran it.
    """

    study: Study
    outcomes: tuple[Outcome, ...]
    resumed: int = 0
    wall_seconds: float = 0.0
    interrupted: bool = False
    runs: tuple[Outcome, ...] = ()
    resumed_runs: int = 0
    again: StudyResult | None = None
    command: str = ""

    def sheet(self) -> Sheet:
        from fabric.explore.study.written.sheet import study_sheet

        return study_sheet(self)

    @cached_property
    def front(self) -> tuple[int, ...]:
        """Indices of the points that no point dominates; empty if no metric is minimised."""
        if not self.study.minimize:
            return ()
        return tuple(sorted(nondominated(self.kept(), self.study.minimize)))

    @cached_property
    def filled_tables(self) -> tuple[Filled, ...]:
        tables = ((each, *computed(partial(_rows, each, self))) for each in self.study.tables)
        return tuple(Filled(table, rows or (), trouble) for table, rows, trouble in tables)

    @cached_property
    def judged_claims(self) -> tuple[Judged, ...]:
        claims = self.study.claims
        return tuple(Judged(each, *computed(partial(each.judge, self))) for each in claims)

    @cached_property
    def held_out(self) -> tuple[Outcome, ...]:
        """Outcomes of the front's designs on the held-out inputs, if all have run."""
        by_index = {each.index: each for each in self.runs}
        outcomes = []
        for design in self.front if self.study.held_out else ():
            runs = [by_index.get(run) for run in self.study.runs_of(design, held_out=True)]
            ended = [each for each in runs if each is not None]
            if len(ended) == len(runs):
                outcomes.append(design_outcome(self.study, design, ended))
        return tuple(outcomes)

    @cached_property
    def by_design(self) -> dict[int, Outcome]:
        return {each.index: each for each in self.outcomes}

    def changed(self) -> list[tuple[Setting, dict[int, Outcome]]]:
        """Return each change of ``Study.again`` with the new outcomes of the front's designs."""
        if self.again is None:
            return []
        changes: list[tuple[Setting, dict[int, Outcome]]] = [(x, {}) for x in self.study.again]
        keys = [typed(self.study.space[design]) for design in self.front]
        distinct = list(dict.fromkeys(keys))
        for each in self.again.outcomes:
            place, at = divmod(each.index, len(changes))
            alike = (n for n, key in zip(self.front, keys, strict=True) if key == distinct[place])
            changes[at][1].update(dict.fromkeys(alike, each))
        return changes

    def front_of(self, outcomes: Mapping[int, Outcome]) -> set[int]:
        """Return the designs that no other one of ``outcomes`` dominates."""
        of_design = [replace(each, index=design) for design, each in outcomes.items()]
        return set(nondominated(self.kept(of_design), self.study.minimize))

    def kept(self, outcomes: Iterable[Outcome] | None = None) -> list[Outcome]:
        """Return the outcomes, by default all, that completed and meet all conditions."""
        conditions = self.study.conditions
        return [
            each
            for each in (self.outcomes if outcomes is None else outcomes)
            if each.status == "completed" and all(one.holds(each) for one in conditions)
        ]

    def matching(self, **setting: object) -> list[Outcome]:
        """Return the outcomes of settings with these values."""
        return list(self._where(setting))

    def value(self, metric: str, **setting: object) -> float | None:
        """Return a metric of the only point with these values; None if it did not complete."""
        points = self.matching(**setting)
        if len(points) != 1:
            values = ", ".join(f"{name}={value}" for name, value in setting.items())
            raise ConfigurationError(
                f"study {self.study.name}: {counted(len(points), 'point')} have {values}: expected "
                "one"
            )
        return value_of(points[0], metric)

    def beside(self) -> list[tuple[KnownValue, Outcome | None]]:
        """Return each published value with the outcome of its point, None if it has not run."""
        return [(each, next(self._where(each.setting), None)) for each in self.study.known]

    def _where(self, setting: Mapping[str, object]) -> Iterator[Outcome]:
        for each in self.outcomes:
            whole = self.study.whole(each.setting)
            if all(name in whole and whole[name] == value for name, value in setting.items()):
                yield each

    @property
    def answered(self) -> bool:
        """Whether a point completed with every metric of the study."""
        return any(each.status == "completed" for each in self.outcomes)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of points: all, newly run, pruned, failed, and from earlier sessions."""
        statuses = [each.status for each in self.outcomes]
        proved = sum(status in PROVED for status in statuses)
        return {
            "total": len(self.study.space),
            "run": len(statuses) - proved - self.resumed,
            "pruned": proved,
            "failed": sum(map(has_failed, self.outcomes)),
            "resumed": self.resumed,
        }

    @property
    def run_counts(self) -> dict[str, int]:
        """Numbers of runs by outcome, for designs over inputs.

        ``total`` leaves out runs with held-out inputs; ``run`` and ``resumed`` count them, too.
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

    def as_json(self) -> JsonObject:
        """Return the object that ``study --json`` prints."""
        result = {
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
            "again": [self._as_again(*each) for each in self.changed()],
            "wall_seconds": self.wall_seconds,
            "status": "interrupted" if self.interrupted else "completed",
            "error": None,
        }
        if not self.study.has_inputs:
            return result
        return result | {
            "over": list(self.study.over),
            "run_counts": self.run_counts,
            "held_out": [self._as_held_out(each) for each in self.held_out],
        }

    def _as_again(self, change: Setting, outcomes: Mapping[int, Outcome]) -> JsonObject:
        points = [_as_point(each) | {"index": design} for design, each in outcomes.items()]
        return {"change": change, "points": points, "pareto": sorted(self.front_of(outcomes))}

    def _as_held_out(self, outcome: Outcome) -> JsonObject:
        broken = [str(each) for each in self.study.conditions if not each.holds(outcome)]
        return _as_point(outcome) | {"breaks": broken if outcome.status == "completed" else []}

    def _as_known(self, known: KnownValue, outcome: Outcome | None) -> JsonObject:
        ours = None if outcome is None else value_of(outcome, known.metric)
        return {
            "setting": known.setting,
            "metric": known.metric,
            "published": known.value,
            "ours": ours,
            "source": known.source,
        }


def _as_point(outcome: Outcome) -> JsonObject:
    point = outcome.as_json()
    if "runs" in point:
        return point | {"runs": [dict.fromkeys(METRICS) | run for run in point["runs"]]}
    return dict.fromkeys(METRICS) | point


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

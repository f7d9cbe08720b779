"""A design over several inputs: what its runs come to together, and what is known before them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from typing_extensions import override

from fabric.explore.study.conditions import STATISTICS, over_inputs, split_metric
from fabric.explore.study.evaluation import Before
from fabric.explore.study.outcome import PROVED, Outcome, metric
from fabric.explore.study.study import Study
from fabric.messages.telling.plain import JsonObject

__all__ = ["DesignOutcome", "design_before", "design_outcome", "has_failed"]

_Known: TypeAlias = tuple[Mapping[str, float], Sequence[str]]
"""Of an input: metrics that are at least so much, and the names of those that are just so much."""

_SPREAD: Final = tuple(STATISTICS)


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

"""What the page of a study draws from: its points, in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.study.conditions import METRICS
from fabric.study.outcome import Outcome, metric
from fabric.study.written.rows import metrics_shown
from fabric.study.written.words import axis_values, label, scalar_text, varying
from fabric.telling.plain import JsonObject
from fabric.telling.wording import visible

if TYPE_CHECKING:
    from fabric.study.result import StudyResult

__all__ = ["POINTS", "page_data", "points_on_page"]

POINTS: Final = 5000
"""A page has no more points than this."""


def points_on_page(result: StudyResult) -> list[Outcome]:
    """Return the points that the page has: all, or the front and the first of the others."""
    if len(result.outcomes) <= POINTS:
        return list(result.outcomes)
    front = set(result.front)
    others = [each for each in result.outcomes if each.index not in front]
    ran = sorted(others, key=lambda each: each.status != "completed")
    on_front = [each for each in result.outcomes if each.index in front]
    chosen = [*on_front, *ran][:POINTS]
    return sorted(chosen, key=lambda each: each.index)


def page_data(result: StudyResult) -> JsonObject:
    """Return the points of a page.

    ``axes``: ``name``, ``texts`` of its values, ``numbers`` where all values are numbers, ``at``
    each point's value by its place (-1 for none). ``metrics``: ``name``, ``unit``, ``whole``,
    ``values`` of each point (null for none), ``bounds`` of those proved away.
    ``about``: how many of the metrics the study is about. ``index``, ``status``, ``why`` of each
    point; ``front``: places of its points.
    """
    outcomes = points_on_page(result)
    front = set(result.front)
    meanings = {each.status: each.ended for each in outcomes}
    statuses = list(meanings)
    return {
        "index": [each.index for each in outcomes],
        "axes": [_axis(result, outcomes, name) for name in varying(result.study.space.values)],
        "metrics": [_metric(outcomes, name) for name in _metrics(result, outcomes)],
        "about": len(metrics_shown(result)),
        "statuses": [{"name": each, "meaning": meanings[each]} for each in statuses],
        "status": [statuses.index(each.status) for each in outcomes],
        "why": [_why(each) for each in outcomes],
        "front": [place for place, each in enumerate(outcomes) if each.index in front],
    }


def _metrics(result: StudyResult, outcomes: list[Outcome]) -> list[str]:
    """Return the metrics that tell points apart, those that the study is about first."""
    shown = metrics_shown(result)
    extra = dict.fromkeys(name for each in outcomes for name in each.numbers)
    others = [
        name
        for name in dict.fromkeys([*METRICS, *extra])
        if name not in shown and len({metric(each, name) for each in outcomes} - {None}) > 1
    ]
    return [*shown, *others]


def _metric(outcomes: list[Outcome], name: str) -> JsonObject:
    values = [metric(each, name) for each in outcomes]
    called = label(name)
    return {
        "id": name,
        "name": called.name,
        "unit": called.unit,
        "whole": all(isinstance(each, int) for each in values if each is not None),
        "values": values,
        "bounds": [
            each.bounds.get(name) if each.status in ("pruned", "infeasible") else None
            for each in outcomes
        ],
    }


def _axis(result: StudyResult, outcomes: list[Outcome], name: str) -> JsonObject:
    values = result.study.space.values[name]
    places = {(type(each), each): place for place, each in enumerate(values)}
    plain_numbers = all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in values
    )
    found = (
        places[type(each.setting[name]), each.setting[name]] if name in each.setting else -1
        for each in outcomes
    )
    return {
        "name": visible(name),
        "texts": axis_values(values),
        "whole": [scalar_text(each) for each in values],
        "numbers": list(values) if plain_numbers else None,
        "at": list(found),
    }


def _why(outcome: Outcome) -> str:
    """Return why a point has no numbers."""
    if outcome.status == "pruned":
        return f"dominated by point {outcome.pruned_by}"
    if outcome.status == "infeasible":
        return f"cannot keep {outcome.pruned_by}"
    return visible(outcome.reason or "")

"""The page of a study: its question, its answer and its points, in one offline file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from fabric.analysis.trace.pages.parts import filled, head, part
from fabric.display.html import fragment, section, sections, text
from fabric.display.parts import Drawing, Title
from fabric.explore.study.outcome import METRICS, Outcome, metric
from fabric.explore.study.written.again import again_sheet
from fabric.explore.study.written.answer import answer, caveats, counts_table
from fabric.explore.study.written.markup import own_part, script_data, style, titled
from fabric.explore.study.written.sheet import counts_sheet, findings_sheet, front_sheet
from fabric.explore.study.written.words import label, scalar_text, varying
from fabric.messages.text import JsonObject, counted, visible

if TYPE_CHECKING:
    from fabric.explore.study.result import StudyResult
    from fabric.explore.study.space import Scalar
    from fabric.explore.study.written.pictures import Drawn

_SHARED_SCRIPTS: Final = ("common", "watching", "table")
_ROWS: Final = 50
_REASONS: Final = 20


def page_html(result: StudyResult, pictures: Sequence[Drawn]) -> str:
    best = [*front_sheet(result, _ROWS)] or [Title("The front")]
    front = [Drawing(partial(titled, each)) for each in pictures if each.name == "front"]
    others = [each for each in pictures if each.name != "front"]
    scripts = [*(part(f"script/{name}.js") for name in _SHARED_SCRIPTS), own_part("script/main.js")]
    return filled(
        own_part("page.html"),
        {
            "head": head(
                text(result.study.name),
                style(),
                "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:",
            ),
            "title": text(result.study.name),
            "question": f"<p>{text(result.study.question)}</p>" if result.study.question else "",
            "answer": text(answer(result)),
            "notes": "".join(
                f"<p>{text(each)}</p>" for each in (*caveats(result), *_left_out(result))
            ),
            "counts": text(counts_table(result).title)
            + fragment([*counts_sheet(result, _REASONS)][1:]),
            "front": sections([*best[:1], *front, *best[1:], *again_sheet(result, _ROWS)]),
            "pictures": section("Pictures", "\n".join(map(titled, others))),
            "findings": sections(findings_sheet(result)),
            "again": section(
                "How to run it again", f"<pre>{text(result.command)}</pre>" * bool(result.command)
            ),
            "data": script_data(page_data(result)),
            "script": "".join(scripts),
        },
    )


def _left_out(result: StudyResult) -> Iterator[str]:
    here, every = len(points_on_page(result)), len(result.outcomes)
    if here < every:
        yield (
            f"This page has {here:,} of {counted(every, 'point')}, the front among them; "
            "points.parquet and points.csv have all."
        )


POINTS: Final = 5000
"""Maximum number of points on a page."""


def points_on_page(result: StudyResult) -> list[Outcome]:
    """Return the points of the page: all, or the front and the first completed points."""
    if len(result.outcomes) <= POINTS:
        return list(result.outcomes)
    front = set(result.front)

    def rank(outcome: Outcome) -> tuple[bool, bool]:
        return outcome.index not in front, outcome.status != "completed"

    return sorted(sorted(result.outcomes, key=rank)[:POINTS], key=lambda outcome: outcome.index)


def page_data(result: StudyResult) -> JsonObject:
    """Return the points of a page.

    ``index`` has the points' indices, and ``front`` the places of the front in ``index``.
    ``columns`` has parameters, metrics and, if a point did not complete, statuses and reasons. A
    column has a ``title``, its ``values`` (null if missing), and ``whole`` if all are integers.
    """
    outcomes = points_on_page(result)
    front = set(result.front)
    columns = [
        _column(visible(name), [_plain(each.setting.get(name)) for each in outcomes])
        for name in varying(result.study.space.values)
    ]
    if any(each.status != "completed" for each in outcomes):
        columns.append(_column("status", [each.status for each in outcomes]))
        columns.append(_column("why", [_why(each) for each in outcomes]))
    columns += [
        _column(str(label(name)), [metric(each, name) for each in outcomes])
        for name in _metrics(result, outcomes)
    ]
    return {
        "index": [each.index for each in outcomes],
        "columns": columns,
        "front": [place for place, each in enumerate(outcomes) if each.index in front],
    }


def _metrics(result: StudyResult, outcomes: list[Outcome]) -> list[str]:
    shown = result.study.shown
    extra = dict.fromkeys(name for each in outcomes for name in each.numbers)
    differing = [
        name
        for name in dict.fromkeys([*METRICS, *extra])
        if name not in shown and len({metric(each, name) for each in outcomes} - {None}) > 1
    ]
    return [*shown, *differing]


def _column(title: str, values: list[str | int | float | None]) -> JsonObject:
    whole = all(isinstance(each, int) for each in values if each is not None)
    return {"title": title, "values": values, "whole": whole}


def _plain(value: Scalar) -> str | int | float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if value is None or is_number else scalar_text(value)


def _why(outcome: Outcome) -> str:
    if outcome.status == "pruned":
        return f"dominated by point {outcome.pruned_by}"
    if outcome.status == "infeasible":
        return f"cannot keep {outcome.pruned_by}"
    return visible(outcome.reason or "")

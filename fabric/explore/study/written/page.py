"""The page of a study: its question, its answer and its points, in one offline file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from fabric.analysis.trace.pages.parts import filled, head, part
from fabric.explore.study.outcome import METRICS, Outcome, metric, split_metric
from fabric.explore.study.study import Verdict
from fabric.explore.study.written.answer import (
    answer,
    beside,
    best_table,
    caveats,
    counts,
    failures,
    held_out_table,
    metrics_shown,
    ratio_text,
    verdict_text,
    verdicts_text,
)
from fabric.explore.study.written.markup import (
    Markup,
    own_part,
    script_data,
    section,
    style,
    table,
    text,
    titled,
)
from fabric.explore.study.written.words import (
    axis_values,
    label,
    number_text,
    scalar_text,
    setting_text,
    varying,
)
from fabric.messages.text import JsonObject, counted, visible
from fabric.runs.options import Options

if TYPE_CHECKING:
    from fabric.explore.study.result import Filled, Judged, StudyResult
    from fabric.explore.study.written.pictures import Pictures

_SHARED: Final = ("common", "watching", "table")

_SCRIPTS: Final = ("points", "scatter", "parallel", "main")

_ROWS: Final = 50

_REASONS: Final = 20

_MARKS: Final = {
    Verdict.REPRODUCED: "good",
    Verdict.UNEQUAL: "partly",
    Verdict.RECOMPUTED: "open",
    Verdict.INCONSISTENT: "partly",
    Verdict.UNPUBLISHED: "open",
    Verdict.CONTRADICTED: "bad",
}


def page_html(result: StudyResult, pictures: Pictures, command: str) -> str:
    """Return the HTML of the page."""
    scripts = [*map(_shared_script, _SHARED), *map(_own_script, _SCRIPTS)]
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
            "counts": text(counts(result)),
            "notes": "".join(
                f"<p>{text(each)}</p>" for each in (*caveats(result), *_left_out(result))
            ),
            "front": _front(result) + _held_out(result),
            "pictures": section("Pictures", "\n".join(map(titled, pictures.made)), "pictures"),
            "tables": tables_html(result),
            "beside": section("Published values beside ours", beside_html(result), "published"),
            "claims": section("Claims", claims_html(result), "claims"),
            "proved": section("What was proved without a run", _proved(result), "proved"),
            "failed": section("What failed", _failed(result), "failed-points"),
            "again": section("How to run it again", _again(result, command), "again"),
            "data": script_data(page_data(result)),
            "script": "".join(scripts),
        },
    )


def _shared_script(name: str) -> str:
    return part(f"script/{name}.js")


def _own_script(name: str) -> str:
    return own_part(f"script/{name}.js")


def _left_out(result: StudyResult) -> list[str]:
    here, every = len(points_on_page(result)), len(result.outcomes)
    if here == every:
        return []
    return [
        f"This page has {here:,} of {counted(every, 'point')}, the front among them; "
        "points.parquet and points.csv have all."
    ]


def _front(result: StudyResult) -> str:
    best = best_table(result)
    if not best.rows:
        return ""
    rest = len(best.rows) - _ROWS
    more = f'<p class="quiet">and {rest:,} more</p>' if rest > 0 else ""
    columns, rows = list(best.columns), [list(row) for row in best.rows[:_ROWS]]
    for title, cells in strips(result, best.indices[:_ROWS]):
        columns.append(title)
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    return section(best.title, table(columns, rows) + more, "front")


def _held_out(result: StudyResult) -> str:
    held_out = held_out_table(result)
    if not held_out.rows:
        return ""
    return section(held_out.title, table(held_out.columns, held_out.rows), "held-out")


def _proved(result: StudyResult) -> str:
    by: Counter[int | str] = Counter()
    for each in result.outcomes:
        if each.status in ("pruned", "infeasible") and each.pruned_by is not None:
            by[each.pruned_by] += 1
    if not by:
        return ""
    settings = {each.index: each.setting for each in result.outcomes}
    names = varying(result.study.space.values)
    rows = []
    for prover, count in by.most_common():
        if isinstance(prover, str):
            rows.append((f"{prover} cannot be met", "", count))
        else:
            setting = setting_text(settings[prover], names)
            rows.append((f"dominated by point {prover}", setting, count))
    intro = (
        "<p>Lower bounds of these points' metrics were computed before any run. A run with less "
        "than a point's bounds in every metric dominates the point.</p>"
    )
    if result.study.has_inputs:
        spared = sum(each.pruned_by is not None for each in result.runs)
        intro = (
            "<p>Lower bounds of these points' metrics were computed from their finished runs and "
            "the bounds of their other runs. A design with less than a point's bounds in every "
            f"metric dominates the point. That spared {counted(spared, 'run')}.</p>"
        )
    return intro + table(("proof", "setting", "points"), rows)


def _failed(result: StudyResult) -> str:
    sentences = failures(result)
    items = "".join(f"<li>{text(each)}</li>" for each in sentences[:_REASONS])
    rest = len(sentences) - _REASONS
    further = counted(rest, "more reason")
    more = f'<p class="quiet">and {further}</p>' if rest > 0 else ""
    return f"<ul>{items}</ul>{more}" if sentences else ""


def _option_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return str(value)


def _again(result: StudyResult, command: str) -> str:
    study = result.study
    typed = f"<pre>{text(command)}</pre>" if command else ""
    rows = [("program", str(study.program))]
    rows += [("hardware", str(study.hardware))] if study.hardware is not None else []
    rows += [
        (name, _option_text(value))
        for name, value in vars(Options.of(study)).items()
        if value != getattr(Options, name)
    ]
    rows += [("minimize", ", ".join(study.minimize))] if study.minimize else []
    rows += [("where", " and ".join(map(str, study.conditions)))] if study.where else []
    rows += [(name, scalar_text(value)) for name, value in study.fixed.items()]
    rows += [
        (name, ", ".join(map(scalar_text, values))) for name, values in study.space.values.items()
    ]
    rows += [
        (f"{name}, an input", ", ".join(map(scalar_text, values)))
        for name, values in study.over.values.items()
    ]
    apart = [study.input_name(place) for place in sorted(study.held_out)]
    rows += [("held out", "; ".join(apart))] if apart else []
    return typed + table(("what", "value"), rows)


def tables_html(result: StudyResult) -> str:
    """Return a section for each table."""
    return "\n".join(map(_section, result.filled_tables))


def _section(filled: Filled) -> str:
    caption = f"<p>{text(filled.table.caption)}</p>" if filled.table.caption else ""
    body = f"<p>not computed: {text(filled.trouble)}</p>"
    if not filled.trouble:
        body = table(filled.table.columns, filled.rows)
    return section(filled.table.title, caption + body)


POINTS: Final = 5000
"""Maximum number of points on a page."""


def points_on_page(result: StudyResult) -> list[Outcome]:
    """Return the points of the page: all, or the front and the first completed points."""
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

    ``axes``: ``name``, ``texts`` of its values, ``numbers`` if all values are numbers, ``at``:
    place of each point's value (-1 if missing). ``metrics``: ``name``, ``unit``, ``whole``,
    ``values`` of the points (null if missing), ``bounds`` of pruned points. ``about``: number of
    the study's own metrics, which come first. ``index``, ``status``, ``why`` of the points;
    ``front``: places of the front's points.
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
    shown = metrics_shown(result)
    extra = dict.fromkeys(name for each in outcomes for name in each.numbers)
    differing = [
        name
        for name in dict.fromkeys([*METRICS, *extra])
        if name not in shown and len({metric(each, name) for each in outcomes} - {None}) > 1
    ]
    return [*shown, *differing]


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
    at = [
        places[type(each.setting[name]), each.setting[name]] if name in each.setting else -1
        for each in outcomes
    ]
    return {
        "name": visible(name),
        "texts": axis_values(values),
        "whole": [scalar_text(each) for each in values],
        "numbers": list(values) if plain_numbers else None,
        "at": at,
    }


def _why(outcome: Outcome) -> str:
    if outcome.status == "pruned":
        return f"dominated by point {outcome.pruned_by}"
    if outcome.status == "infeasible":
        return f"cannot keep {outcome.pruned_by}"
    return visible(outcome.reason or "")


_WIDTH: Final = 160


_HEIGHT: Final = 18


_MARGIN: Final = 4


def strips(result: StudyResult, designs: Sequence[int]) -> list[tuple[str, list[Markup]]]:
    """Return columns of small pictures, each with its title and a cell for each design.

    There is a column for each minimised metric that differs between inputs. A long line is an
    input, a short line a held-out input, and the dot is the median. Cells of a column share a
    scale.
    """
    if not result.study.has_inputs:
        return []
    names = dict.fromkeys(split_metric(each)[1] for each in result.study.objectives)
    by_design: dict[int, list[Outcome]] = {}
    for run in result.runs:
        by_design.setdefault(result.study.design_of(run.index), []).append(run)
    columns = []
    for name in names:
        rows = [_values(by_design.get(each, []), name) for each in designs]
        values = [value for row in rows for _, value in row]
        if any(len({value for _, value in row}) > 1 for row in rows):
            least, most = min(values), max(values)
            scale = f"{number_text(least)} to {number_text(most)}"
            title = f"{label(name)} with each input, {scale}"
            if least > 0:
                title += " by their logarithms"
            cells = [_strip(result, row, least, most) for row in rows]
            columns.append((title, cells))
    return columns


def _values(runs: Sequence[Outcome], name: str) -> list[tuple[int, float]]:
    values = ((each.index, metric(each, name)) for each in runs)
    return [(index, value) for index, value in values if value is not None]


def _strip(
    result: StudyResult,
    row: Sequence[tuple[int, float]],
    least: float,
    most: float,
) -> Markup:
    study = result.study

    def place(value: float) -> str:
        share = (
            math.log(value / least) / math.log(most / least)
            if least > 0
            else (value - least) / (most - least)
        )
        return f"{_MARGIN + share * (_WIDTH - 2 * _MARGIN):.1f}"

    lines = []
    for index, value in row:
        apart = study.is_held_out(index)
        top, bottom = (_HEIGHT - 6, _HEIGHT) if apart else (2, _HEIGHT - 7)
        colour = "var(--other)" if apart else "var(--front)"
        held_out = ", held out" if apart else ""
        lines.append(
            f'<path d="M{place(value)} {top}V{bottom}" style="stroke:{colour};stroke-width:1.5">'
            f"<title>{text(study.input_name(index))}{held_out}: {number_text(value)}</title></path>"
        )
    chosen = [value for index, value in row if not study.is_held_out(index)]
    summary = ""
    if chosen:
        middle = median(chosen)
        summary = (
            f"{number_text(min(chosen))} to {number_text(max(chosen))}, "
            f"median {number_text(middle)}"
        )
        lines.append(
            f'<circle cx="{place(middle)}" cy="{(_HEIGHT - 5) / 2}" r="2.5" '
            f'style="fill:var(--front)"><title>median {number_text(middle)}</title></circle>'
        )
    return Markup(
        f'<svg class="inputs" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{text(summary)}">{"".join(lines)}</svg>'
    )


def beside_html(result: StudyResult) -> str:
    """Return a table of published values beside ours; empty without published values."""
    rows = [
        (
            row.setting,
            row.metric,
            row.published,
            row.why if row.ours is None else row.ours,
            ratio_text(row),
            row.source,
        )
        for row in beside(result)
    ]
    columns = ("point", "metric", "published", "ours", "ours/published", "source")
    return table(columns, rows) if rows else ""


def claims_html(result: StudyResult) -> str:
    """Return the claims with the published value, ours and the verdict."""
    rows = result.judged_claims
    return "\n".join([f"<p>{text(verdicts_text(rows))}</p>", *map(_claim, rows)]) if rows else ""


def _claim(row: Judged) -> str:
    mark = "bad" if row.judgement is None else _MARKS[row.judgement.verdict]
    found = row.trouble if row.judgement is None else row.judgement.found
    note = row.judgement.note if row.judgement else ""
    claim = row.claim
    return (
        f'<div class="claim"><span class="mark {mark}">{text(verdict_text(row))}</span>'
        f"<blockquote>{text(claim.text)} "
        f'<span class="quiet">({text(claim.location)})</span></blockquote>'
        f"<dl><dt>published</dt><dd>{text(claim.published)}</dd>"
        + (f"<dt>found</dt><dd>{text(found)}</dd>" if found else "")
        + "</dl>"
        + (f"<p>{text(note)}</p>" if note else "")
        + "</div>"
    )

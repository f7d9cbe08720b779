"""The sheet of a study's result: answer, front, own tables, published values and claims."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from fabric.display.html import text
from fabric.display.parts import Fold, Markup, Rows, Sheet, Style, Title, line
from fabric.explore.study.outcome import Outcome, metric, split_metric
from fabric.explore.study.study import Verdict
from fabric.explore.study.written.again import again_sheet
from fabric.explore.study.written.answer import (
    Table,
    answer,
    beside_rows,
    best_table,
    caveats,
    counts_table,
    held_out_table,
    rows_sheet,
    verdict_text,
    verdicts_text,
)
from fabric.explore.study.written.words import (
    label,
    number_text,
    scalar_text,
    setting_text,
    varying,
)
from fabric.messages.text import counted, visible
from fabric.runs.options import Options

if TYPE_CHECKING:
    from fabric.explore.study.result import Filled, Judged, StudyResult

_ROWS: Final = 20
_REASONS: Final = 10

_STYLES: Final[dict[Verdict, Style]] = {
    Verdict.REPRODUCED: "green",
    Verdict.UNEQUAL: "yellow",
    Verdict.RECOMPUTED: "",
    Verdict.INCONSISTENT: "yellow",
    Verdict.UNPUBLISHED: "",
    Verdict.CONTRADICTED: "red",
}


def study_sheet(result: StudyResult) -> Sheet:
    study = result.study
    question = f"  {visible(study.question)}" if study.question else ""
    yield line((visible(study.name), "bold"), question)
    yield from head_sheet(result)
    yield from front_sheet(result)
    yield from again_sheet(result, _ROWS)
    yield from findings_sheet(result)


def head_sheet(result: StudyResult) -> Sheet:
    """Yield the answer, its caveats, and the points by outcome and reason."""
    yield line(answer(result))
    for sentence in caveats(result):
        yield line(sentence)
    yield from counts_sheet(result)


def counts_sheet(result: StudyResult, shown: int = _REASONS) -> Sheet:
    """Yield the number of points by outcome and reason; at most ``shown`` rows."""
    table = counts_table(result)
    yield Title(table.title)
    if table.rows:
        yield Rows(table.columns, [list(row) for row in table.rows], shown)


def front_sheet(result: StudyResult, shown: int = _ROWS) -> Sheet:
    """Yield the front, and its designs on held-out inputs; at most ``shown`` rows of each."""
    best = best_table(result)
    if best.rows:
        yield Title(best.title)
        yield from _rows(best, shown, strips(result, best.indices))
    held_out = held_out_table(result)
    if held_out.rows:
        yield Title(held_out.title)
        yield from _rows(held_out, shown)


def findings_sheet(result: StudyResult) -> Sheet:
    """Yield own tables, published values, claims, and how points were pruned and run."""
    for each in result.filled_tables:
        yield from _own_table(each)
    yield from beside_sheet(result)
    yield from claims_sheet(result)
    by = Counter(
        each.pruned_by
        for each in result.outcomes
        if each.status in ("pruned", "infeasible") and each.pruned_by is not None
    )
    if by:
        yield Fold("What was proved without a run", _proved(result, by))
    yield Fold("How it was run", [Rows(("what", "value"), _study_values(result))])


def _cell(value: object) -> object:
    return number_text(value) if isinstance(value, float) else value


def _rows(table: Table, shown: int, drawn: Sequence[tuple[str, Sequence[Markup]]] = ()) -> Sheet:
    rows = [
        [*map(_cell, row), *(cells[n] for _, cells in drawn)] for n, row in enumerate(table.rows)
    ]
    return rows_sheet((*table.columns, *(title for title, _ in drawn)), rows, shown)


def _own_table(filled: Filled) -> Sheet:
    yield Title(visible(filled.table.title))
    if filled.trouble:
        yield line((visible(f"not computed: {filled.trouble}"), "red"))
        return
    columns = list(map(visible, filled.table.columns))
    rows = [[visible(x) if isinstance(x, str) else _cell(x) for x in r] for r in filled.rows]
    yield from rows_sheet(columns, rows)
    if filled.table.caption:
        yield line((visible(filled.table.caption), "dim"))


def beside_sheet(result: StudyResult) -> Sheet:
    rows = beside_rows(result)
    if rows:
        yield Title("Published values beside ours")
        columns = ("point", "metric", "published", "ours", "ours/published", "source")
        yield Rows(columns, rows, _ROWS)


def claims_sheet(result: StudyResult) -> Sheet:
    claims = result.judged_claims
    if claims:
        yield Title("Claims", f"  {verdicts_text(claims)}")
    for row in claims:
        yield from _claim(row)


def _claim(row: Judged) -> Sheet:
    verdict = verdict_text(row)
    style: Style = "red" if row.judgement is None else _STYLES[row.judgement.verdict]
    claim = row.claim
    where = f" ({visible(claim.location)})"
    yield line((f"{verdict}: ", style), visible(claim.text), where)
    parts = [f"published {claim.published}"]
    if row.judgement is None:
        parts.append(row.trouble)
    else:
        parts += [f"found {row.judgement.found}"] if row.judgement.found else []
        parts += [row.judgement.note] if row.judgement.note else []
    yield line((visible(f"  {'; '.join(parts)}"), "dim"), indent=4)


def _proved(result: StudyResult, by: Counter[int | str]) -> Sheet:
    settings = {each.index: each.setting for each in result.outcomes}
    names = varying(result.study.space.values)
    rows: list[tuple[str, str, int]] = []
    for prover, count in by.most_common():
        if isinstance(prover, str):
            rows.append((f"{prover} cannot be met", "", count))
        else:
            setting = setting_text(settings[prover], names)
            rows.append((f"dominated by point {prover}", setting, count))
    source, noun, spared = "before any run", "run", ""
    if result.study.has_inputs:
        source = "from the finished runs of its design and the bounds of the other runs"
        noun = "design"
        runs = sum(each.pruned_by is not None for each in result.runs)
        spared = f" That spared {counted(runs, 'run')}."
    yield line(
        f"Lower bounds of a point's metrics were computed {source}. A {noun} dominates the point "
        f"if each metric of the {noun} is at most the point's bound, and one is less.{spared}"
    )
    yield Rows(("proof", "setting", "points"), rows)


def _option_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return str(value)


def _study_values(result: StudyResult) -> list[tuple[str, str]]:
    study = result.study
    rows = [] if study.program is None else [("program", str(study.program))]
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
    held_out = [study.input_name(place) for place in sorted(study.held_out)]
    rows += [("held out", "; ".join(held_out))] if held_out else []
    return rows


_WIDTH: Final = 160
_HEIGHT: Final = 18
_MARGIN: Final = 4


def strips(result: StudyResult, designs: Sequence[int]) -> list[tuple[str, list[Markup]]]:
    """Return columns of small pictures, each with a title and a cell for each design.

    Each minimised metric that differs between inputs has a column. In a cell, a long line is an
    input, a short line a held-out input, and the dot the median. Cells of a column share a scale.
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
        held_out = study.is_held_out(index)
        top, bottom = (_HEIGHT - 6, _HEIGHT) if held_out else (2, _HEIGHT - 7)
        colour = "var(--other)" if held_out else "var(--front)"
        note = ", held out" if held_out else ""
        lines.append(
            f'<path d="M{place(value)} {top}V{bottom}" style="stroke:{colour};stroke-width:1.5">'
            f"<title>{text(study.input_name(index))}{note}: {number_text(value)}</title></path>"
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

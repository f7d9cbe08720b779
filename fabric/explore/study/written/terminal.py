"""What a study found, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fabric.explore.study.known import Verdict
from fabric.explore.study.written.answer import (
    answer,
    beside,
    best_table,
    caveats,
    counts,
    failures,
    held_out_table,
    ratio_text,
    verdict_text,
    verdicts_text,
)
from fabric.explore.study.written.words import number_text
from fabric.messages.telling.sheet import Rows, Sheet, Style, Title, line
from fabric.messages.telling.wording import counted, visible

if TYPE_CHECKING:
    from fabric.explore.study.result import Filled, Judged, StudyResult

__all__ = ["study_sheet"]

_ROWS: Final = 20
_FAILURES: Final = 5
_STYLES: Final[dict[Verdict, Style]] = {
    Verdict.REPRODUCED: "green",
    Verdict.UNEQUAL: "yellow",
    Verdict.RECOMPUTED: "",
    Verdict.INCONSISTENT: "yellow",
    Verdict.UNPUBLISHED: "",
    Verdict.CONTRADICTED: "red",
}


def study_sheet(result: StudyResult) -> Sheet:
    """Yield what a study found.

    What depends on the host, its time and its folders, is left out: the same points, one text.
    """
    study = result.study
    question = f"  {visible(study.question)}" if study.question else ""
    yield line((visible(study.name), "bold"), question)
    yield line(answer(result))
    for sentence in caveats(result):
        yield line(sentence)
    yield line(counts(result))
    yield from _failures(result)
    table = best_table(result)
    if table.rows:
        yield Title(table.title)
        yield _table(table.columns, table.rows, _ROWS)
    apart = held_out_table(result)
    if apart.rows:
        yield Title(apart.title)
        yield _table(apart.columns, apart.rows, _ROWS)
    for each in result.filled_tables:
        yield from _own_table(each)
    yield from _beside(result)
    claims = result.judged_claims
    if claims:
        yield Title("Claims", f"  {verdicts_text(claims)}")
    for row in claims:
        yield from _claim(row)


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], shown: int | None = None
) -> Rows:
    """Return a table whose fractions have as many digits as there is reason for."""
    cells = [[number_text(each) if isinstance(each, float) else each for each in r] for r in rows]
    return Rows(columns, cells, shown)


def _own_table(filled: Filled) -> Sheet:
    yield Title(visible(filled.table.title))
    if filled.trouble:
        yield line((visible(f"not computed: {filled.trouble}"), "red"))
        return
    columns = list(map(visible, filled.table.columns))
    rows = [[visible(x) if isinstance(x, str) else x for x in row] for row in filled.rows]
    yield _table(columns, rows)
    if filled.table.caption:
        yield line((visible(filled.table.caption), "dim"))


def _failures(result: StudyResult) -> Sheet:
    told = failures(result)
    for sentence in told[:_FAILURES]:
        yield line(f"  {sentence}", indent=4)
    if len(told) > _FAILURES:
        yield line((f"  and {counted(len(told) - _FAILURES, 'more reason')}", "dim"))


def _beside(result: StudyResult) -> Sheet:
    found = beside(result)
    if not found:
        return
    yield Title("Published values beside ours")
    rows = [
        (
            row.setting,
            row.metric,
            number_text(row.published),
            row.why if row.ours is None else number_text(row.ours),
            ratio_text(row),
            row.source,
        )
        for row in found
    ]
    columns = ("point", "metric", "published", "ours", "ours/published", "source")
    yield _table(columns, rows, _ROWS)


def _claim(row: Judged) -> Sheet:
    verdict = verdict_text(row)
    style: Style = "red" if row.judgement is None else _STYLES[row.judgement.verdict]
    claim = row.claim
    where = f" ({visible(claim.location)})"
    yield line((f"{verdict}: ", style), visible(claim.text), where)
    said = [f"published {claim.published}"]
    if row.judgement is None:
        said.append(row.trouble)
    else:
        said += [f"found {row.judgement.found}"] if row.judgement.found else []
        said += [row.judgement.note] if row.judgement.note else []
    yield line((visible(f"  {'; '.join(said)}"), "dim"), indent=4)

"""What a study found, on a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from fabric.study.known import Verdict
from fabric.study.written.rows import (
    beside,
    best_table,
    held_out_table,
    ratio_text,
    verdict_text,
    verdicts_text,
)
from fabric.study.written.sentences import answer, caveats, counts, failures
from fabric.study.written.words import number_text
from fabric.telling.wording import counted, visible
from fabric.terminal.output import print_line
from fabric.terminal.tables import print_table, print_title

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.study.computed import Filled, Judged
    from fabric.study.result import StudyResult

__all__ = ["render"]

_ROWS: Final = 20
_FAILURES: Final = 5
_STYLES: Final = {
    Verdict.REPRODUCED: "green",
    Verdict.UNEQUAL: "yellow",
    Verdict.RECOMPUTED: "",
    Verdict.INCONSISTENT: "yellow",
    Verdict.UNPUBLISHED: "",
    Verdict.CONTRADICTED: "red",
}


def render(result: StudyResult, console: Console) -> None:
    """Print what a study found.

    What depends on the host, its time and its folders, is left out: the same points, one text.
    """
    study = result.study
    question = f"  {visible(study.question)}" if study.question else ""
    print_line(console, Text.assemble((visible(study.name), "bold"), question))
    print_line(console, Text(answer(result)))
    for sentence in caveats(result):
        print_line(console, Text(sentence))
    print_line(console, Text(counts(result)))
    _failures(result, console)
    table = best_table(result)
    if table.rows:
        print_title(console, table.title)
        _table(console, table.columns, table.rows, _ROWS, "point ")
    apart = held_out_table(result)
    if apart.rows:
        print_title(console, apart.title)
        _table(console, apart.columns, apart.rows, _ROWS, "point ")
    for each in result.filled_tables:
        _own_table(each, console)
    _beside(result, console)
    claims = result.judged_claims
    if claims:
        print_title(console, "Claims", f"  {verdicts_text(claims)}")
    for row in claims:
        _claim(row, console)


def _table(
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    shown: int,
    called: str = "",
) -> None:
    """Print rows side by side, or one below the other where the console is too narrow.

    Args:
        console: where to.
        columns: their titles.
        rows: a cell for each column.
        shown: rows at most.
        called: what stands before the first cell where rows are below each other.
    """
    cells = [[number_text(each) if isinstance(each, float) else each for each in r] for r in rows]
    titles = list(columns)
    if _width(titles, cells) > console.width:
        titles = [re.sub(r"(?<=[ ._/])", "\n", title) for title in titles]
    if _width(titles, cells) <= console.width:
        print_table(console, titles, cells, shown)
        return
    for row in cells[:shown]:
        pairs = zip(columns[1:], row[1:], strict=True)
        told = ", ".join(
            f"{title}: {_cell(each)}" for title, each in pairs if each not in (None, "")
        )
        print_line(console, Text(f"{called}{row[0]}  {told}"))
    if len(rows) > shown:
        console.print(f"and {len(rows) - shown:,} more", style="dim")


def _own_table(filled: Filled, console: Console) -> None:
    print_title(console, visible(filled.table.title))
    if filled.trouble:
        print_line(console, Text(visible(f"not computed: {filled.trouble}"), style="red"))
        return
    columns = list(map(visible, filled.table.columns))
    rows = [[visible(x) if isinstance(x, str) else x for x in row] for row in filled.rows]
    _table(console, columns, rows, len(rows))
    if filled.table.caption:
        print_line(console, Text(visible(filled.table.caption), style="dim"))


def _width(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> int:
    """Return how wide a table is, with gaps of two."""
    heads = [max(map(len, title.split("\n"))) for title in titles]
    cells = [max(len(_cell(row[n])) for row in rows) for n in range(len(titles))]
    return sum(max(pair) + 2 for pair in zip(heads, cells, strict=True)) - 2


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _failures(result: StudyResult, console: Console) -> None:
    told = failures(result)
    for sentence in told[:_FAILURES]:
        print_line(console, Text(f"  {sentence}"), indent=4)
    if len(told) > _FAILURES:
        console.print(f"  and {counted(len(told) - _FAILURES, 'more reason')}", style="dim")


def _beside(result: StudyResult, console: Console) -> None:
    found = beside(result)
    if not found:
        return
    print_title(console, "Published values beside ours")
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
    _table(console, columns, rows, _ROWS)


def _claim(row: Judged, console: Console) -> None:
    verdict = verdict_text(row)
    style = "red" if row.judgement is None else _STYLES[row.judgement.verdict]
    claim = row.claim
    where = f" ({visible(claim.location)})"
    print_line(console, Text.assemble((f"{verdict}: ", style), visible(claim.text), where))
    said = [f"published {claim.published}"]
    if row.judgement is None:
        said.append(row.trouble)
    else:
        said += [f"found {row.judgement.found}"] if row.judgement.found else []
        said += [row.judgement.note] if row.judgement.note else []
    print_line(console, Text(visible(f"  {'; '.join(said)}"), style="dim"), indent=4)

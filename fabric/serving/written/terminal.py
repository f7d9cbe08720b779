"""What a question of serving came to, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.serving.written.rows import LEGEND, answer, notes, table_of_runs
from fabric.telling.sheet import Rows, Sheet, Title, line
from fabric.telling.wording import visible

if TYPE_CHECKING:
    from fabric.serving.result import ServingResult

__all__ = ["serving_sheet"]


def serving_sheet(result: ServingResult) -> Sheet:
    """Yield it; the same runs, one text."""
    serving = result.serving
    question = f"  {visible(serving.question)}" if serving.question else ""
    yield line((visible(serving.name), "bold"), question)
    yield line(visible(answer(result)))
    for each in notes(result):
        yield line(visible(each))
    found = table_of_runs(result)
    if found.rows:
        yield Title("Runs")
        rows = [[visible(x) if isinstance(x, str) else x for x in row] for row in found.rows]
        yield Rows(found.columns, rows)
        yield line((LEGEND, "dim"))

"""What a question of serving came to, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from fabric.serving.written.rows import LEGEND, answer, notes, table_of_runs
from fabric.telling.wording import visible
from fabric.terminal.output import print_line
from fabric.terminal.tables import print_table, print_title

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.serving.result import ServingResult

__all__ = ["render"]

_SPARE: Final = ("J/token", "kept/s", "done", "tokens/s")
"""Columns that a narrow terminal does without, the first one first."""


def render(result: ServingResult, console: Console) -> None:
    """Print it; the same runs, one text."""
    serving = result.serving
    question = f"  {visible(serving.question)}" if serving.question else ""
    print_line(console, Text.assemble((visible(serving.name), "bold"), question))
    print_line(console, Text(visible(answer(result))))
    for each in notes(result):
        print_line(console, Text(visible(each)))
    found = table_of_runs(result)
    if found.rows:
        print_title(console, "Runs")
        rows = [[visible(x) if isinstance(x, str) else x for x in row] for row in found.rows]
        spare = [each for each in _SPARE if each in found.columns]
        print_table(console, found.columns, rows, len(rows), spare=spare)
        print_line(console, Text(LEGEND, style="dim"))

"""``trace query``: the rows of a query."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fabric.terminal.output import PIPED_COLUMNS
from fabric.terminal.tables import print_table

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.reading.tables import Table

__all__ = ["print_answer"]


def print_answer(answer: Table, console: Console) -> None:
    """Print all rows of ``answer``."""
    rows = answer.rows()
    if not sys.stdout.isatty():
        console.width = PIPED_COLUMNS
    print_table(console, answer.columns, rows, len(rows))

"""``trace query``: the rows of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.telling.sheet import Rows, Sheet

if TYPE_CHECKING:
    from fabric.trace.reading.tables import Table

__all__ = ["answer_sheet"]


def answer_sheet(answer: Table) -> Sheet:
    """Yield all rows of ``answer``."""
    yield Rows(answer.columns, answer.rows())

"""The tables that a study adds to those of every study, as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.study.written.markup import section, table, text

if TYPE_CHECKING:
    from fabric.study.computed import Filled
    from fabric.study.result import StudyResult

__all__ = ["tables_html"]


def tables_html(result: StudyResult) -> str:
    """Return a section for each table."""
    return "\n".join(map(_section, result.filled_tables))


def _section(filled: Filled) -> str:
    caption = f"<p>{text(filled.table.caption)}</p>" if filled.table.caption else ""
    body = f"<p>not computed: {text(filled.trouble)}</p>"
    if not filled.trouble:
        body = table(filled.table.columns, filled.rows)
    return section(filled.table.title, caption + body)

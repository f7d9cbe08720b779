"""The tables that a study adds to those of every study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.study.out.markup import section, table, text
from fabric.telling.errors import ConfigurationError, FabricError, said
from fabric.telling.place import raising_place

if TYPE_CHECKING:
    from fabric.study.result import StudyResult
    from fabric.study.study import StudyTable

__all__ = ["Filled", "filled_tables", "tables_html"]


@dataclass(frozen=True)
class Filled:
    """A table with its rows.

    Attributes:
        table: which.
        rows: none where they could not be computed.
        trouble: why.
    """

    table: StudyTable
    rows: tuple[tuple[object, ...], ...]
    trouble: str = ""


def filled_tables(result: StudyResult) -> list[Filled]:
    """Compute a study's own tables; one whose points are missing, or that raises, says so."""
    found = []
    for each in result.study.tables:
        try:
            found.append(Filled(each, _rows(each, result)))
        except FabricError as error:
            found.append(Filled(each, (), str(error)))
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            place = raising_place(error)
            found.append(Filled(each, (), f"{place}: {said(error)}" if place else said(error)))
    return found


def tables_html(result: StudyResult) -> str:
    """Return a section for each table."""
    return "\n".join(map(_section, filled_tables(result)))


def _rows(wanted: StudyTable, result: StudyResult) -> tuple[tuple[object, ...], ...]:
    rows = tuple(map(tuple, wanted.rows(result)))
    for row in rows:
        if len(row) != len(wanted.columns):
            raise ConfigurationError(
                f"a row has {len(row)} cells: expected {len(wanted.columns)}, one for each column"
            )
    return rows


def _section(filled: Filled) -> str:
    caption = f"<p>{text(filled.table.caption)}</p>" if filled.table.caption else ""
    body = f"<p>not computed: {text(filled.trouble)}</p>"
    if not filled.trouble:
        body = table(filled.table.columns, filled.rows)
    return section(filled.table.title, caption + body)

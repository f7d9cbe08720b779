"""What a study's own functions compute of its points: rows of tables, verdicts on claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from fabric.study.known import Judgement
from fabric.telling.errors import ConfigurationError, FabricError, said
from fabric.telling.place import raising_place
from fabric.telling.users_code import pass_signals
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from fabric.study.findings import Findings
    from fabric.study.known import Claim
    from fabric.study.study import StudyTable

__all__ = ["Filled", "Judged", "filled", "judged"]

_Found = TypeVar("_Found")


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


@dataclass(frozen=True)
class Judged:
    """A claim, and what came of computing it again.

    Attributes:
        claim: which.
        judgement: None where it could not be computed.
        trouble: why.
    """

    claim: Claim
    judgement: Judgement | None
    trouble: str = ""


def filled(table: StudyTable, findings: Findings) -> Filled:
    """Compute a table; one whose points are missing, or that raises, says so."""
    rows, trouble = _computed(lambda: _rows(table, findings))
    return Filled(table, rows or (), trouble)


def judged(claim: Claim, findings: Findings) -> Judged:
    """Compute a claim again; one whose points are missing, or that raises, says so."""
    return Judged(claim, *_computed(lambda: claim.judge(findings)))


def _computed(compute: Callable[[], _Found]) -> tuple[_Found | None, str]:
    """Return what is computed; None, and why, where that was not possible."""
    try:
        return compute(), ""
    except FabricError as error:
        return None, str(error)
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        pass_signals(error)
        place = raising_place(error)
        return None, f"{place}: {said(error)}" if place else said(error)


def _rows(wanted: StudyTable, findings: Findings) -> tuple[tuple[object, ...], ...]:
    rows = tuple(map(tuple, wanted.rows(findings)))
    for row in rows:
        if len(row) != len(wanted.columns):
            raise ConfigurationError(
                f"a row has {counted(len(row), 'cell')}: expected {len(wanted.columns)}, one "
                f"for each column"
            )
    return rows

"""What analyses show, by their kind: the sheets that the commands print."""

from __future__ import annotations

from functools import singledispatch
from typing import Final

from fabric.deadlock.document import DeadlockReport
from fabric.deadlock.text import deadlock_sheet
from fabric.notebook.costs import bounds_sheet, cost_sheet, measures_sheet
from fabric.placing.printing import floor_plan_sheet
from fabric.placing.result import FloorPlan
from fabric.runs.cost import Cost
from fabric.runs.printing import report_sheet
from fabric.runs.report import Report
from fabric.serving.measures import Measures
from fabric.serving.result import ServingResult
from fabric.serving.written.terminal import serving_sheet
from fabric.sizing.printing import sizing_sheet
from fabric.sizing.result import Sizing
from fabric.study.result import StudyResult
from fabric.study.written.terminal import study_sheet
from fabric.symbolic.bounds import KnownBefore
from fabric.telling.sheet import Rows, Sheet, line
from fabric.telling.wording import counted
from fabric.trace.analysis.diff import TraceDiff
from fabric.trace.analysis.moment import Moment
from fabric.trace.analysis.path import CriticalPath
from fabric.trace.analysis.stalled import Stalls
from fabric.trace.analysis.summary import TraceSummary
from fabric.trace.analysis.what_if import WhatIf
from fabric.trace.printing.diff import diff_sheet
from fabric.trace.printing.moment import moment_sheet
from fabric.trace.printing.stalls import path_sheet, stalls_sheet
from fabric.trace.printing.summary import summary_sheet
from fabric.trace.printing.what_if import what_if_sheet
from fabric.trace.reading.tables import Table

__all__ = ["sheet_of"]

_FIRST_ROWS: Final = 20
"""Of a table, which may have a million."""


@singledispatch
def sheet_of(thing: object) -> Sheet:
    """Return what ``thing`` shows."""
    raise TypeError(f"a {type(thing).__name__} has no tables")


@sheet_of.register
def _table(table: Table) -> Sheet:
    first = table.rows(_FIRST_ROWS)
    yield Rows(table.columns, first)
    known = len(first) if len(first) < _FIRST_ROWS else len(table)
    if known > len(first):
        yield line((f"{len(first)} of {counted(known, 'row')}", "dim"))


sheet_of.register(Stalls, stalls_sheet)
sheet_of.register(CriticalPath, path_sheet)
sheet_of.register(Moment, moment_sheet)
sheet_of.register(TraceSummary, summary_sheet)
sheet_of.register(TraceDiff, diff_sheet)
sheet_of.register(WhatIf, what_if_sheet)
sheet_of.register(DeadlockReport, deadlock_sheet)
sheet_of.register(Report, report_sheet)
sheet_of.register(Sizing, sizing_sheet)
sheet_of.register(FloorPlan, floor_plan_sheet)
sheet_of.register(StudyResult, study_sheet)
sheet_of.register(ServingResult, serving_sheet)
sheet_of.register(Measures, measures_sheet)
sheet_of.register(Cost, cost_sheet)
sheet_of.register(KnownBefore, bounds_sheet)

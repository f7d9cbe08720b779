"""The sheet of each kind of result."""

from __future__ import annotations

from functools import singledispatch
from typing import Final

from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.deadlock.text import deadlock_sheet
from fabric.analysis.placing.result import FloorPlan, floor_plan_sheet
from fabric.analysis.symbolic.bounds import KnownBefore
from fabric.analysis.trace.analysis.critical import CriticalPath
from fabric.analysis.trace.analysis.diff import TraceDiff
from fabric.analysis.trace.analysis.moment import Moment
from fabric.analysis.trace.analysis.stalled import Stalls
from fabric.analysis.trace.analysis.summary import TraceSummary
from fabric.analysis.trace.analysis.what_if import WhatIf
from fabric.analysis.trace.printing import (
    diff_sheet,
    moment_sheet,
    path_sheet,
    stalls_sheet,
    summary_sheet,
    what_if_sheet,
)
from fabric.analysis.trace.reading.table import Table
from fabric.display.parts import Rows, Sheet, Title, line
from fabric.explore.serving.result import ServingResult, serving_sheet
from fabric.explore.serving.served import Measures
from fabric.explore.sizing.result import Sizing, sizing_sheet
from fabric.explore.study.result import StudyResult
from fabric.explore.study.written.terminal import study_sheet
from fabric.messages.text import counted
from fabric.runs.cost import Cost
from fabric.runs.printing import figure, report_sheet
from fabric.runs.report import Report


def bounds_sheet(known: KnownBefore) -> Sheet:
    """Yield metrics before a run: exact values and lower bounds."""
    yield Title("Known before a run")
    rows: list[tuple[str, str, float]] = [
        (_words(name), "exactly", value) for name, value in known.exact.items()
    ]
    least = {**known.at_least, **known.sized}
    rows += [(_words(name), "at least", value) for name, value in least.items()]
    yield Rows(("", "", "value"), rows)
    if known.cycles:
        yield Title("Lower bounds of the cycles")
        needs = [(kind, each.cycles, each.what) for kind, each in known.cycles.items()]
        yield Rows(("kind", "cycles at least", "for"), needs)


def cost_sheet(cost: Cost) -> Sheet:
    """Yield the sums, then the runs."""
    yield Title("Cost", ", of runs one after the other")
    sums = [row for name in _SUMS for row in figure(cost, name)]
    if cost.tokens is not None:
        sums.append(("tokens", f"{cost.tokens:,}", cost.token_phase or ""))
    yield Rows(("", "", ""), sums, right=frozenset({1}))
    yield Title("Runs", ", each with what one of it takes")
    parts = [
        (part.name, part.runs, part.cycles, _short(part.seconds), _short(part.joules))
        for part in cost.parts
    ]
    yield Rows(("run", "times", "cycles", "seconds", "joules"), parts, right=frozenset({3, 4}))


_SUMS: Final = (
    "cycles", "off_chip_traffic_bytes", "hbm_bytes_moved", "flops", "seconds", "joules",
    "tokens_per_second", "tokens_per_joule", "time_to_first_token_seconds",
)  # fmt: skip


def measures_sheet(measures: Measures) -> Sheet:
    """Yield the latencies and the throughput of a server."""
    yield Title("Requests", ", times in seconds")
    spreads = (
        ("to the first token", measures.time_to_first_token),
        ("a token", measures.time_per_token),
        ("all of a request", measures.latency),
    )
    times = [(name, *map(_short, vars(spread).values())) for name, spread in spreads]
    names = tuple(vars(measures.latency))
    yield Rows(("", *names), times, right=frozenset(range(1, 1 + len(names))))
    rows = (
        ("requests", measures.requests),
        ("completed", measures.completed),
        ("offered per second", _short(measures.offered_per_second)),
        ("duration, s", _short(measures.duration_seconds)),
        ("output tokens per second", _short(measures.output_tokens_per_second)),
        ("prompt tokens per second", _short(measures.prompt_tokens_per_second)),
        ("requests per second", _short(measures.requests_per_second)),
        ("goodput per second", _short(measures.goodput_per_second)),
        ("joules per token", _short(measures.joules_per_token)),
        ("preemptions", measures.preemptions),
        ("steps", measures.steps),
        ("running requests, mean", _short(measures.mean_running)),
        ("allocated cache blocks, maximum", measures.most_blocks),
        ("cache blocks of a replica", measures.num_blocks or "no limit"),
    )
    yield Title("In all", ", interrupted" if measures.interrupted else "")
    yield Rows(("", ""), [row for row in rows if row[1] is not None], right=frozenset({1}))


def _words(field: str) -> str:
    return field.replace("_", " ")


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:,.4g}"


_FIRST_ROWS: Final = 20


@singledispatch
def sheet_of(thing: object) -> Sheet:
    """Return the sheet of a result."""
    raise TypeError(f"a {type(thing).__name__} has no tables")


@sheet_of.register
def _table(table: Table) -> Sheet:
    first = table.rows(_FIRST_ROWS)
    yield Rows(table.columns, first)
    total = len(first) if len(first) < _FIRST_ROWS else len(table)
    if total > len(first):
        yield line((f"{len(first)} of {counted(total, 'row')}", "dim"))


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

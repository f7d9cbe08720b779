"""Programs, streams, reports and traces as a notebook shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import singledispatch
from html import escape
from typing import Final

from fabric.deadlock.picture import svg as deadlock_svg
from fabric.deadlock.text import report_lines
from fabric.drawing.picture import picture_of
from fabric.drawing.svg import svg
from fabric.notebook.parts import (
    bar,
    document,
    folded,
    legend,
    paragraph,
    preformatted,
    table,
)
from fabric.runs.counters import UnitCounters
from fabric.runs.report import Report
from fabric.runs.totals import areas, spent, totals
from fabric.telling.causes import SHOWN, Cause
from fabric.telling.errors import ProgramError
from fabric.telling.place import Place
from fabric.telling.wording import counted, outcome
from fabric.trace.opened import Trace
from fabric.trace.reading.tables import Table
from fabric.wiring.elaborate import Plan, elaborate
from fabric.wiring.operator import Node
from fabric.wiring.program import Program
from fabric.wiring.stream import Stream

__all__ = ["html", "picture"]

_FIRST_ROWS: Final = 20
"""Of a table, which may have a million."""


@singledispatch
def html(thing: object) -> str:
    """Return the HTML of ``thing``."""
    raise TypeError(f"a notebook does not show a {type(thing).__name__}")


def picture(thing: object) -> str | None:
    """Return the picture of a program as SVG; None while it is not complete."""
    if not isinstance(thing, Program):
        return None
    try:
        return svg(picture_of(elaborate(thing)))
    except ProgramError:
        return None


@html.register
def _program(program: Program) -> str:
    try:
        plan = elaborate(program)
    except ProgramError as error:
        count = f"{counted(len(program.nodes), 'operator')} so far; {error.message}"
        return document(_head(program.name, count), folded("Operators", _operators(program.nodes)))
    wired = counted(len(plan.nodes), "operator"), counted(len(plan.edges), "channel")
    count = f"{', '.join(wired)}, {program.mode} mode"
    return document(
        _head(program.name, count),
        f'<div class="scroll">{svg(picture_of(plan))}</div>',
        folded("Operators", _operators(plan.nodes)),
        folded("Channels", _channels(plan)),
    )


@html.register
def _stream(stream: Stream) -> str:
    # Read while the program is wired: the operator in front may be unknown yet.
    node = stream.node
    producer = "a feedback" if node is None else node.name
    if isinstance(node, Node):
        producer = f"{node.name}: {type(node.operator).__name__} at {node.place.brief}"
    shape, _, value = str(stream.type).partition(" of ")
    rows = [("stream", stream.name), ("shape", shape), ("element", value), ("from", producer)]
    return document(table(("", ""), rows))


def _priced(report: Report) -> Iterator[str]:
    """Yield what the events of a run cost, and what its program takes of a die."""
    if report.spent:
        titles = ("", "amount", "joules", "% of all")
        yield folded("What the energy was spent on", table(titles, list(spent(report))))
    if report.area:
        ranges = ("", "amount", "mm\N{SUPERSCRIPT TWO}, low to high")
        yield folded("What takes up the die", table(ranges, list(areas(report))))


@html.register
def _report(report: Report) -> str:
    right = report.status == "completed" and report.verified is not False
    ended = outcome(report.status, report.verified)
    mode = "" if report.mode is None else f" in {report.mode} mode"
    mode += ", floats in float64" if report.exact else ""
    parts = [
        _head(report.name, ""),
        paragraph(f"{ended}{mode}", "right" if right else "wrong"),
    ]
    if report.verification is not None:
        parts += (paragraph(line.strip()) for line in report.verification.lines())
    if report.failure is not None:
        parts.append(paragraph(str(report.failure.error()), "wrong"))
    if report.explained is not None:
        parts.append(f'<div class="scroll">{deadlock_svg(report.explained)}</div>')
        lines = report_lines(report.explained)
        parts.append(folded("Why, and what would help", preformatted(lines), unfolded=True))
    parts += (paragraph(f"warning: {text}") for text in report.warnings)
    known = [(name, value, unit) for name, value, unit in totals(report) if value is not None]
    if known:
        parts.append(table(("", "", ""), known))
    if report.signal_to_noise_db:
        noise = [
            (name, "no error" if ratio is None else f"{ratio:.1f}")
            for name, ratio in report.signal_to_noise_db.items()
        ]
        parts.append(table(("in the declared types", "signal to noise, dB"), noise))
    parts += _priced(report)
    if report.comparison.totals:
        rows = [
            (row.what, f"{'≤ ' if row.at_most else ''}{row.expected:,}", row.measured)
            for row in report.comparison.totals
        ]
        parts.append(folded("Expected and measured", table(("", "expected", "measured"), rows)))
    if report.cycles:
        parts.append(folded("Where the cycles went", _units(report.units, report.cycles)))
    if report.channels_counters:
        channels = [
            (each.name, each.depth, each.peak_occupancy, each.elements)
            for each in report.channels_counters
        ]
        titles = ("channel", "depth", "most used", "elements")
        parts.append(folded("Channels", table(titles, channels)))
    return document(*parts)


@html.register
def _trace(trace: Trace) -> str:
    name = str(trace.meta.get("name"))
    ended = f"{trace.outcome}; {counted(trace.cycles, 'cycle')}"
    first, last = trace.window
    units = trace.meta.get("nodes")
    kept = f"Recorded: cycles {first:,} to {last:,}, {'all units' if units is None else units}."
    parts = [
        _head(name, kept),
        paragraph(ended, "wrong" if trace.failed else "right"),
        *(paragraph(problem) for problem in trace.problems),
    ]
    stalls = trace.stalls()
    if stalls.units:
        cycles = max(1, stalls.cycles)
        rows = [
            (
                unit.name,
                bar({cause: getattr(unit, f"{cause}_cycles") / cycles for cause in SHOWN}),
                unit.stalled_cycles,
                "" if unit.mostly is None else str(unit.mostly),
                Place(unit.file, unit.line).brief,
            )
            for unit in stalls.units
        ]
        titles = ("unit", "cycles", "stalled", "mostly", "wired at")
        told = legend(SHOWN) + table(titles, rows)
        parts += paragraph(stalls.verdict), folded("Stalls", told, unfolded=True)
    return document(*parts)


@html.register
def _table(rows: Table) -> str:
    first = [["" if value is None else value for value in row] for row in rows.rows(_FIRST_ROWS)]
    known = len(first) if len(first) < _FIRST_ROWS else len(rows)
    note = (
        paragraph(f"{len(first)} of {counted(known, 'row')}", "quiet") if known > len(first) else ""
    )
    return document(table(rows.columns, first), note)


def _head(name: str, text: str) -> str:
    return f'<p><b>{escape(name)}</b> <span class="quiet">{escape(text)}</span></p>'


def _operators(nodes: Iterable[Node]) -> str:
    rows = [
        (
            node.name,
            type(node.operator).__name__,
            node.operator.kind,
            "; ".join(map(str, node.output_types)),
            node.place.brief,
        )
        for node in nodes
    ]
    return table(("name", "operator", "unit", "makes", "wired at"), rows)


def _channels(plan: Plan) -> str:
    rows = [
        (
            f"{edge.producer.name}.{edge.output} \N{RIGHTWARDS ARROW} "
            f"{edge.consumer.name}.{edge.input}",
            str(edge.consumer.inputs[edge.input].type),
        )
        for edge in plan.edges
    ]
    return table(("channel", "carries"), rows)


def _units(units: Iterable[UnitCounters], cycles: int) -> str:
    rows = []
    for unit in sorted(units, key=lambda unit: -unit.busy_cycles):
        counted = {cause: getattr(unit, cause.column) for cause in SHOWN}
        counted[Cause.FULL] += unit.credit_cycles
        shares = {cause: part / cycles for cause, part in counted.items()}
        place = Place(unit.file, unit.line).brief
        rows.append((unit.name, bar(shares), 100 * shares[Cause.BUSY], unit.elements, place))
    titles = ("unit", "cycles", "busy, %", "elements", "wired at")
    return legend(SHOWN) + table(titles, rows)

"""Programs, streams, reports and traces in notebooks, in colours of JupyterLab if possible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from functools import singledispatch
from html import escape
from typing import Final

from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.deadlock.picture import svg as deadlock_svg
from fabric.analysis.drawing.picture import picture_of
from fabric.analysis.drawing.svg import svg
from fabric.analysis.trace.analysis.stalled import StalledUnit
from fabric.analysis.trace.opened import Trace
from fabric.display.parts import (
    Block,
    Line,
    Part,
    Rows,
    Style,
    Title,
    cell_text,
    is_number,
)
from fabric.display.terminal import printed_sheet
from fabric.graph.wiring.elaborate import Edge, Plan, elaborate
from fabric.graph.wiring.operator import Node
from fabric.graph.wiring.program import Program
from fabric.graph.wiring.stream import Stream
from fabric.messages.causes import SHOWN, Cause
from fabric.messages.errors import ProgramError
from fabric.messages.place import Place
from fabric.messages.text import (
    absent_line,
    counted,
    families,
    merged_text,
    spread,
    those,
    without_numbers,
)
from fabric.notebook.sheets import sheet_of
from fabric.runs.counters import UnitCounters, unit_families
from fabric.runs.printing import ending_sheet, numbers_sheet, warnings_sheet
from fabric.runs.report import Report
from fabric.timing.state.run_state import ChannelState

_ROWS: Final = 200
"""Maximum number of rows of a table."""

_NUMBER: Final = re.compile(r"[+-]?[\d,.]+")

_BLOCK: Final = 100
"""Characters in a line of a block."""

_CLASSES: Final[Mapping[Style, str]] = {
    "": "",
    "bold": "strong",
    "bold red": "wrong",
    "dim": "quiet",
    "green": "right",
    "red": "wrong",
    "yellow": "strong",
}

_SCOPE: Final = "step-shown"

_GREY: Final = "rgba(128,128,128,.35)"

_STYLE: Final = (
    f".{_SCOPE}{{color:var(--jp-content-font-color1,inherit);max-width:100%}}"
    f".{_SCOPE} table{{border-collapse:collapse;margin:.4em 0;font-size:90%}}"
    f".{_SCOPE}.{_SCOPE} :is(th,td){{padding:.15em .7em;border:0;"
    f"border-bottom:1px solid var(--jp-border-color2,{_GREY});text-align:left;"
    "background:transparent;color:inherit}"
    f".{_SCOPE}.{_SCOPE} .number{{text-align:right;font-variant-numeric:tabular-nums}}"
    f".{_SCOPE} summary{{cursor:pointer;margin:.3em 0}}"
    f".{_SCOPE} .scroll{{overflow:auto;max-height:56em}}"
    f".{_SCOPE} .quiet{{color:var(--jp-content-font-color2,inherit)}}"
    f".{_SCOPE} .strong{{font-weight:600}}"
    f".{_SCOPE} .wrong{{color:var(--jp-error-color1,#c62828);font-weight:600}}"
    f".{_SCOPE} .right{{color:var(--jp-success-color1,#2e7d32);font-weight:600}}"
    f".{_SCOPE} pre{{color:inherit;background:transparent;white-space:pre;overflow:auto;"
    "font-family:var(--jp-code-font-family,monospace);font-size:90%;line-height:1.3}"
    f".{_SCOPE} i{{display:inline-block;height:.7em;border-radius:1px}}"
)
"""Rules for elements of this class only, since the notebook has its own tables."""


def document(*content: str) -> str:
    """Return ``content`` with its style sheet."""
    return f'<div class="{_SCOPE}"><style>{_STYLE}</style>{"".join(content)}</div>'


def paragraph(text: str, kind: str = "") -> str:
    """Return ``text`` as a paragraph; ``kind`` is quiet, wrong, right or nothing."""
    attribute = f' class="{kind}"' if kind else ""
    return f"<p{attribute}>{escape(text)}</p>"


def preformatted(lines: Iterable[str]) -> str:
    """Return ``lines`` in a fixed-width font."""
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def folded(title: str, content: str, *, unfolded: bool = False) -> str:
    """Return ``content`` under a title that unfolds it."""
    state = " open" if unfolded else ""
    return (
        f'<details{state}><summary>{escape(title)}</summary><div class="scroll">{content}</div>'
        "</details>"
    )


def sheet(parts: Iterable[Part]) -> str:
    """Return the HTML of a sheet."""
    return "".join(map(_part, parts))


def _part(part: Part) -> str:
    match part:
        case Title(title, note):
            return f'<p><b>{escape(title)}</b><span class="quiet">{escape(note)}</span></p>'
        case Line(pieces):
            content = "".join(
                f'<span class="{_CLASSES[style]}">{escape(text)}</span>' for text, style in pieces
            )
            return f"<p>{content}</p>" if pieces else ""
        case Block(lines):
            return preformatted(lines(_BLOCK))
        case Rows():
            rows = [list(map(cell_text, row)) for row in part.rows[: part.shown]]
            columns = range(len(part.columns))
            right = {n for n in columns if all(is_number(row[n]) for row in part.rows)}
            more = len(part.rows) - len(rows)
            rest = paragraph(f"and {more:,} more", "quiet") if more else ""
            whole = table(part.columns, rows, part.right | right)
            return f'<div class="scroll">{whole}</div>{rest}'


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[object]],
    right: frozenset[int] = frozenset(),
) -> str:
    """Return a table with right-aligned numbers; cells are escaped, except bars."""
    head = "".join(
        f'<th class="number">{escape(title)}</th>' if n in right else f"<th>{escape(title)}</th>"
        for n, title in enumerate(titles)
    )
    body = "".join(
        f"<tr>{''.join(_cell(each, n in right) for n, each in enumerate(row))}</tr>"
        for row in rows[:_ROWS]
    )
    more = ""
    if len(rows) > _ROWS:
        more = paragraph(f"{_ROWS} of {counted(len(rows), 'row')}", "quiet")
    start = f"<thead><tr>{head}</tr></thead>" if any(titles) else ""
    return f"<table>{start}<tbody>{body}</tbody></table>{more}"


class Bar(str):
    """HTML of a bar."""

    __slots__ = ()


def bar(shares: Mapping[Cause, float]) -> Bar:
    """Return the shares of a unit's cycles as a bar in the colours of the causes."""
    parts = "".join(
        f'<i style="width:{120 * share:.1f}px;background:{cause.colour}" '
        f'title="{cause.label} {100 * share:.1f} %"></i>'
        for cause, share in shares.items()
        if share > 0
    )
    return Bar(f'<span style="white-space:nowrap">{parts}</span>')


def legend(causes: Iterable[Cause]) -> str:
    """Return the legend of the colours of bars."""
    parts = (
        f'<i style="width:.7em;background:{cause.colour}"></i> {cause.label} &nbsp; '
        for cause in causes
    )
    return f'<p class="quiet">{"".join(parts)}</p>'


def _cell(value: object, right: bool) -> str:
    if isinstance(value, Bar):
        return f"<td>{value}</td>"
    if isinstance(value, float):
        return f'<td class="number">{value:,.1f}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        value = f"{value:,}"
    if right or _NUMBER.fullmatch(str(value)):
        return f'<td class="number">{escape(str(value))}</td>'
    return f"<td>{escape(str(value))}</td>"


@singledispatch
def html(thing: object) -> str:
    """Return the HTML of ``thing``, by default its tables."""
    return document(sheet(sheet_of(thing)))


def text(thing: object) -> str:
    """Return the text of ``thing`` without colours and without a final newline."""
    return printed_sheet(sheet_of(thing), plain=True).removesuffix("\n")


def picture(thing: object) -> str | None:
    """Return the picture of a program as SVG; None if the program is incomplete."""
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
    # While the program is wired, the producer of a feedback is unknown.
    node = stream.node
    producer = "a feedback" if node is None else node.name
    if isinstance(node, Node):
        producer = f"{node.name}: {type(node.operator).__name__} at {node.place.brief}"
    shape, _, value = str(stream.type).partition(" of ")
    rows = [("stream", stream.name), ("shape", shape), ("element", value), ("from", producer)]
    return document(table(("", ""), rows))


@html.register
def _report(report: Report) -> str:
    parts = [sheet(ending_sheet(report))]
    if report.explained is not None:
        parts.append(_explained(report.explained))
    parts.append(sheet(numbers_sheet(report)))
    if report.cycles:
        parts.append(folded("Where the cycles went", _units(report.units, report.cycles)))
    if report.channels_counters:
        parts.append(folded("Channels", _used(report.channels_counters)))
    return document(*parts, sheet(warnings_sheet(report)))


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

        def row(unit: StalledUnit) -> tuple[object, ...]:
            shares = {cause: getattr(unit, cause.column) / cycles for cause in SHOWN}
            place = Place(unit.file, unit.line).brief
            return bar(shares), unit.stalled_cycles, str(unit.mostly or ""), place

        rows = []
        for family in stalls.folded.families:
            least, median, most = family.spread
            cells, *_, place = row(median)
            ends = _ends(family.units, f"{least.stalled_cycles:,}", f"{most.stalled_cycles:,}")
            size = len(family.units)
            rows.append(
                (family.name, size, cells, median.stalled_cycles, ends, family.mostly, place)
            )
        titles = ("unit", "units", "cycles", "stalled", "least to most", "mostly", "wired at")
        content = legend(SHOWN) + table(titles, rows)
        if stalls.folded.absent:
            content += paragraph(absent_line(stalls.folded.absent), "quiet")
        every = [(unit.name, *row(unit)) for unit in stalls.units]
        content += folded("Each unit", table(("unit", *titles[2:4], *titles[5:]), every))
        parts += paragraph(stalls.verdict), folded("Stalls", content, unfolded=True)
    return document(*parts)


@html.register
def _deadlock(report: DeadlockReport) -> str:
    return document(_explained(report))


def _explained(report: DeadlockReport) -> str:
    picture = f'<div class="scroll">{deadlock_svg(report)}</div>'
    return picture + sheet(sheet_of(report))


def _head(name: str, text: str) -> str:
    return f'<p><b>{escape(name)}</b> <span class="quiet">{escape(text)}</span></p>'


def _operators(nodes: Iterable[Node]) -> str:
    by_family = families(
        nodes,
        lambda node: node.name,
        lambda node: (type(node.operator).__name__, node.place, without_numbers(_made(node))),
    )
    rows = [
        (
            title,
            len(members),
            type(members[0].operator).__name__,
            members[0].operator.kind,
            merged_text([_made(node) for node in members]),
            members[0].place.brief,
        )
        for title, members in by_family
    ]
    return table(("name", "operators", "operator", "unit", "makes", "wired at"), rows)


def _made(node: Node) -> str:
    return "; ".join(map(str, node.output_types))


def _channels(plan: Plan) -> str:
    def carries(edge: Edge) -> str:
        return str(edge.consumer.inputs[edge.input].type)

    by_family = families(
        plan.edges,
        lambda edge: (
            f"{edge.producer.name}.{edge.output} \N{RIGHTWARDS ARROW} "
            f"{edge.consumer.name}.{edge.input}"
        ),
        lambda edge: (edge.producer.place, edge.consumer.place, without_numbers(carries(edge))),
    )
    rows = [
        (title, len(members), merged_text([carries(edge) for edge in members]))
        for title, members in by_family
    ]
    return table(("channel", "channels", "carries"), rows)


def _used(channels: Iterable[ChannelState]) -> str:
    rows = []
    for title, members in families(channels, lambda each: each.name, lambda each: each.depth):
        most = max(each.peak_occupancy for each in members)
        elements = spread(members, lambda each: each.taken)
        ends = _ends(members, f"{elements.least.taken:,}", f"{elements.most.taken:,}")
        rows.append((title, len(members), members[0].depth, most, elements.median.taken, ends))
    return table(("channel", "channels", "depth", "most used", "elements", "least to most"), rows)


def _units(units: Sequence[UnitCounters], cycles: int) -> str:
    def row(unit: UnitCounters) -> tuple[object, ...]:
        counted = {cause: getattr(unit, cause.column) for cause in SHOWN}
        counted[Cause.FULL] += unit.credit_cycles
        shares = {cause: part / cycles for cause, part in counted.items()}
        place = Place(unit.file, unit.line).brief
        return bar(shares), 100 * shares[Cause.BUSY], unit.elements, place

    by_family = unit_families(units)
    ranked = [
        (title, len(members), spread(members, _busy))
        for title, members in those(by_family, lambda unit: unit.took_part)
    ]
    ranked.sort(key=lambda each: -each[2].most.busy_cycles)
    rows = []
    for title, size, (least, median, most) in ranked:
        cells, busy, elements, place = row(median)
        ends = (f"{100 * each.busy_cycles / cycles:.1f}" for each in (least, most))
        rows.append((title, size, cells, busy, _ends(range(size), *ends), elements, place))
    titles = ("unit", "units", "cycles", "busy, %", "least to most", "elements", "wired at")
    content = legend(SHOWN) + table(titles, rows)
    absent = those(by_family, lambda unit: not unit.took_part)
    if absent:
        content += paragraph(absent_line(absent), "quiet")
    every = [(unit.name, *row(unit)) for unit in sorted(units, key=_busy, reverse=True)]
    return content + folded("Each unit", table(("unit", *titles[2:4], *titles[5:]), every))


def _busy(unit: UnitCounters) -> int:
    return unit.busy_cycles


def _ends(members: Sized, least: str, most: str) -> str:
    return f"{least} to {most}" if len(members) > 1 else ""

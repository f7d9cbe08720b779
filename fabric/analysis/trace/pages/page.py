"""``trace report``: one page with all results, in a file that loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Final

import numpy as np

from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.deadlock.picture import deadlock_picture
from fabric.analysis.deadlock.text import report_lines
from fabric.analysis.drawing.svg import svg
from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.analysis.trace.analysis.moment import deadlock_of
from fabric.analysis.trace.pages.figures import (
    AT_CHANNELS,
    Detail,
    buses,
    detail_of,
    edges,
    figures,
    memory,
    most_held,
    states,
    steps,
)
from fabric.analysis.trace.pages.graph import graphs
from fabric.analysis.trace.pages.links import links_section
from fabric.analysis.trace.pages.parts import filled, head, packed, part
from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.display.html import fragment, section
from fabric.display.parts import Rows
from fabric.messages.files import output_file
from fabric.messages.text import counted, visible

_SCRIPTS: Final = (
    "common", "watching", "view", "data", "unit", "strip", "lanes", "bands", "charts", "buses",
    "graph", "details", "table", "tables", "main",
)  # fmt: skip
_UPLOT_VERSION: Final = "1.6.32"
_CHARACTERS: Final = 1_900_000
"""Maximum page size in characters, without the fixed parts."""

_OCCUPANCY: Final = 12

_PRICED: Final = {"totals": ("what", "value", "unit"), "spent": ("energy", "amount", "joules", "%")}

_COLUMNS: Final = (120, 48)


def write_page(trace: RecordedRun, output: Path) -> None:
    """Write the report of ``trace`` into ``output``."""
    with output_file(output, encoding="utf-8") as file:
        file.write(_page(trace))


def _page(trace: RecordedRun) -> str:
    accounts = Accounts(trace)
    report = deadlock_of(trace)
    frame = part("page.html")
    parts = {
        "head": head(
            escape(visible(trace.head.name)),
            part("vendor/uPlot.min.css") + part("style.css"),
            "script-src 'unsafe-inline'; style-src 'unsafe-inline'",
        ),
        "deadlock": _deadlock(report) if report else "",
        "priced": _priced(trace.end.priced),
        "mesh": links_section(trace.end.links, trace.head.hardware.network),
        "uplot_version": _UPLOT_VERSION,
        "uplot": part("vendor/uPlot.iife.min.js"),
        "script": "".join(part(f"script/{name}.js") for name in _SCRIPTS),
    }
    room = _CHARACTERS - len(frame) - sum(map(len, parts.values()))
    parts["data"] = _data(trace, accounts, report, room)
    return filled(frame, parts)


def _data(trace: RecordedRun, accounts: Accounts, report: DeadlockReport | None, room: int) -> str:
    names = accounts.names
    in_loop = {unit.unit for loop in report.loops for unit in loop.units} if report else set()
    stuck = {unit for unit, name in enumerate(names.units) if name in in_loop}
    content = figures(trace, accounts)
    channels = content["channels"]
    at = edges(*trace.window, len(names.units))
    mostly, shares = states(trace, accounts.timelines, at)
    for_elements, for_slots = (channels[cause] for cause in AT_CHANNELS)
    by_waits = sorted(
        range(len(names.channels)), key=lambda number: (-for_slots[number], -for_elements[number])
    )
    waited = [number for number in by_waits if for_slots[number] or for_elements[number]]
    path = steps(accounts)
    content |= {
        "graphs": graphs(trace, accounts, stuck),
        "edges": at.tolist(),
        "shares": np.round(shares, 2).tolist(),
        "memory": memory(trace, accounts.cycles),
        "held": most_held(trace, waited[:_OCCUPANCY], at),
    }
    used = buses(trace, accounts)
    if used is not None:
        content["buses"] = used
    columns = {"states": mostly.reshape(-1), **path}
    rest = room - len(packed(content, columns))
    ranked = content["units"]["ranked"]
    units = [*ranked, *sorted({*range(len(names.units))} - {*ranked})]
    detail = detail_of(trace, units, by_waits, rest)
    parts = {"origin": detail.origin, "waits": detail.waits, "transfers": detail.transfers}
    left_out = list(_left_out(detail, path, int(at[1] - at[0])))
    content |= {"detail": parts, "left_out": left_out}
    return packed(content, {**columns, **detail.columns})


def _left_out(detail: Detail, path: dict[str, np.ndarray], stretch: int) -> Iterator[str]:
    held = f"in stretches of {counted(stretch, 'cycle')}"
    for what, owners, counts, every, which, others in (
        (
            "waits", "units", detail.waits, detail.all_waits,
            "the critical path's and the most stalled", f"their longest states {held}",
        ),
        (
            "transfers", "channels", detail.transfers, detail.all_transfers,
            "where units wait longest", f"sums, and for some the held elements {held}",
        ),
    ):  # fmt: skip
        kept = sum(count or 0 for count in counts)
        if kept < every:
            complete = sum(count is not None for count in counts)
            yield (
                f"This page has {kept:,} of {every:,} single {what}, from {complete:,} of "
                f"{len(counts):,} {owners}: {which}. For other {owners} it has {others}; "
                "`trace query` has all."
            )
    if not len(path["step.cycles"]) and detail.all_waits:
        yield "The single steps of the critical path are too many for this page."


def _priced(tables: Mapping[str, list[list[str]]]) -> str:
    right = frozenset({1, 2, 3})
    stated = [(heads, tables[name]) for name, heads in _PRICED.items() if tables.get(name)]
    content = fragment(Rows(heads, rows, right=right) for heads, rows in stated)
    return section("Time and energy", f'<div class="columns">{content}</div>' if content else "")


def _deadlock(report: DeadlockReport) -> str:
    wide, narrow = (escape("\n".join(report_lines(report, columns))) for columns in _COLUMNS)
    return (
        "<section><h2>Why the run did not complete</h2>"
        f'<pre class="wide">{wide}</pre><pre class="narrow">{narrow}</pre>'
        f'<div class="deadlock">{svg(deadlock_picture(report))}</div></section>'
    )

"""The report a person reads: totals, then the busiest and the most stalled units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import nlargest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fabric.runs.counters import UnitCounters
from fabric.runs.report import Report
from fabric.runs.totals import areas, spent, totals
from fabric.state.bandwidth import bus_shares, row_outcomes, uneven_channels
from fabric.telling.causes import COUNTED, Cause
from fabric.telling.wording import outcome, visible
from fabric.terminal.output import print_line

if TYPE_CHECKING:
    from fabric.deadlock.document import DeadlockReport
    from fabric.engine.memory_counters import MemoryCounters

__all__ = ["render"]

_UNITS_SHOWN: Final = 8
_WIDE: Final = 100
_STALLS: Final = attrgetter(*[cause.column for cause in COUNTED if cause is not Cause.BUSY])


def render(report: Report, console: Console) -> None:
    """Print ``report`` on ``console``.

    What depends on the host, its time and its folders, is left out: one program, one text.
    """
    _header(report, console)
    if report.explained is not None:
        _deadlock(report.explained, console)
    else:
        console.print(_totals(report))
        if report.hbm is not None:
            _hbm(report.hbm, console)
        if report.signal_to_noise_db:
            _noise(report.signal_to_noise_db, console)
        if report.spent:
            _energy(report, console)
        if report.area:
            _area(report, console)
        if report.comparison.totals:
            _comparison(report, console)
        if report.cycles:
            _units(report, console, "Busiest", lambda unit: unit.busy_cycles)
            _units(report, console, "Most stalled", _stalled)
    for warning in report.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)


def _header(report: Report, console: Console) -> None:
    right = report.status == "completed" and report.verified is not False
    mode = "" if report.mode is None else f" in {report.mode} mode"
    mode += ", floats in float64" if report.exact else ""
    ended = outcome(report.status, report.verified)
    found = report.verification
    if report.status == "completed" and found is not None and found.not_verified:
        mode = f", not verified: {found.not_verified}"
    console.print(Text.assemble((report.name, "bold"), f"  {visible(report.program)}"))
    console.print(Text.assemble((ended, "green" if right else "red"), mode))
    if found is not None:
        for line in found.lines():
            console.print(Text(line, style="" if line.startswith(" ") else "red"), soft_wrap=True)
    if report.failure is not None:
        error = str(report.failure.error())
        console.print(Text.assemble(("error: ", "bold red"), error), soft_wrap=True)
    console.print()


def _totals(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for name, value, unit in totals(report):
        if value is not None:
            table.add_row(name, value, unit)
    return table


def _hbm(counters: MemoryCounters, console: Console) -> None:
    """Print what became of the bandwidth of the HBM."""
    if not counters.requests:
        return
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
    table.add_column("cycles of HBM buses")
    table.add_column("%", justify="right")
    for use, share in bus_shares(counters.bus):
        table.add_row(use.label, f"{share:.1f}")
    console.print()
    console.print(table)
    for line in (row_outcomes(counters), uneven_channels(counters)):
        if line is not None:
            print_line(console, Text(line))


def _noise(known: Mapping[str, float | None], console: Console) -> None:
    """Print what the types that the program declares cost each output."""
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
    table.add_column("in the declared types")
    table.add_column("signal to noise, dB", justify="right")
    for name, ratio in known.items():
        table.add_row(name, "no error" if ratio is None else f"{ratio:.1f}")
    console.print()
    console.print(table)


def _energy(report: Report, console: Console) -> None:
    """Print what the energy was spent on."""
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
    for name in ("energy", "amount", "joules", "%"):
        table.add_column(name, justify="left" if name == "energy" else "right")
    for row in spent(report):
        table.add_row(*row)
    console.print()
    console.print(table)


def _area(report: Report, console: Console) -> None:
    """Print what takes up a die, and how far its sources differ."""
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
    for name in ("area, low to high", "amount", "mm\N{SUPERSCRIPT TWO}"):
        table.add_column(name, justify="left" if name.startswith("area") else "right")
    for row in areas(report):
        table.add_row(*row)
    console.print()
    console.print(table)


def _comparison(report: Report, console: Console) -> None:
    """Print what was known before the run beside what it measured."""
    comparison = report.comparison
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
    for name in ("", "expected", "measured"):
        table.add_column(name, justify="right" if name else "left")
    for row in comparison.totals:
        at_most = "\N{LESS-THAN OR EQUAL TO} " if row.at_most else ""
        style = "" if row.agrees else "red"
        table.add_row(row.what, f"{at_most}{row.expected:,}", f"{row.measured:,}", style=style)
    as_expected = sum(
        channel.elements == elements
        for channel, elements in zip(
            report.channels_counters, comparison.channel_elements, strict=True
        )
    )
    channels = f"{len(comparison.channel_elements):,}"
    table.add_row("channels with these elements", channels, f"{as_expected:,}")
    console.print()
    console.print(table)


def _stalled(unit: UnitCounters) -> int:
    if not (unit.elements or unit.busy_cycles or unit.hbm_cycles):
        return 0  # it had nothing to do, such as an expert without tokens
    return sum(_STALLS(unit))


def _units(
    report: Report, console: Console, title: str, measure: Callable[[UnitCounters], int]
) -> None:
    """Print the units with the largest ``measure``, leaving out columns of nothing but zeros."""
    measures = [measure(unit) for unit in report.units]
    largest = nlargest(_UNITS_SHOWN, range(len(measures)), key=measures.__getitem__)
    shown = [report.units[at] for at in largest if measures[at]]
    if not shown or not report.cycles:
        return
    shares = [cause for cause in Cause if any(getattr(unit, cause.column) for unit in shown)]
    wide = console.width >= _WIDE
    console.print()
    count = f"{len(shown)} of {len(report.units)}"
    console.print(Text.assemble((title, "bold"), f" units, {count}; % of all cycles"))
    table = Table(box=None, pad_edge=False, collapse_padding=not wide, header_style="dim")
    table.add_column("unit", overflow="fold")
    for name in (*(cause.label for cause in shares), *(("elements",) if wide else ())):
        table.add_column(name, justify="right", no_wrap=True)
    if wide:
        table.add_column("wired at", overflow="fold")
    for unit in shown:
        cells = [f"{100 * getattr(unit, cause.column) / report.cycles:.1f}" for cause in shares]
        if wide:
            cells += [f"{unit.elements:,}", f"{Path(unit.file).name}:{unit.line}"]
        table.add_row(Text(unit.name), *cells)
    console.print(table)


def _deadlock(explained: DeadlockReport, console: Console) -> None:
    # Most reports are of runs that end.
    from fabric.deadlock.text import report_lines

    verdict, *lines = report_lines(explained)
    code, _, rest = verdict.partition(": ")
    console.print(Text.assemble((code, "bold red"), f": {rest}"), soft_wrap=True)
    for line in lines:
        console.print(Text(line), soft_wrap=True)

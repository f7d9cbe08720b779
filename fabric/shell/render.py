"""The report a person reads: totals, then the busiest and the most stalled units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fabric.runs.counters import UnitCounters, unit_families
from fabric.runs.report import Report
from fabric.runs.totals import areas, spent, totals
from fabric.state.bandwidth import bus_shares, row_outcomes, uneven_channels
from fabric.telling.causes import Cause
from fabric.telling.families import Family, Spread, absent_line, spread, those
from fabric.telling.place import Place
from fabric.telling.wording import counted, outcome, visible
from fabric.terminal.output import print_line, terminal_columns

if TYPE_CHECKING:
    from fabric.deadlock.document import DeadlockReport
    from fabric.engine.memory_counters import MemoryCounters
    from fabric.state.network_use import NetworkUse

__all__ = ["render"]

_SHOWN: Final = 8
_LINKS_SHOWN: Final = 4
_WIDE: Final = 100


def render(report: Report, console: Console, *, unfold: bool = False) -> None:
    """Print ``report`` on ``console``; a row is a family of units, with ``unfold`` a unit.

    What depends on the host, its time and its folders, is left out: one program, one text.
    """
    _header(report, console)
    if report.explained is not None:
        _deadlock(report.explained, console)
    else:
        console.print(_totals(report))
        _lists(report, console)
        _parts(report, console)
        if report.cycles:
            _families(report, console, unfold=unfold)
    for warning in report.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)


def _lists(report: Report, console: Console) -> None:
    """Print the program's own fields that have several lines."""
    for name, value in (report.extra or {}).items():
        if isinstance(value, list) and value:
            console.print(Text(name))
            for line in value:
                console.print(Text(f"  {line}"), soft_wrap=True)


def _parts(report: Report, console: Console) -> None:
    """Print what there is to tell of memory, network, rounding, prices and sizes."""
    if report.hbm is not None:
        _hbm(report.hbm, console)
    if report.network is not None:
        _network(report.network, report.cycles or 0, console)
    if report.signal_to_noise_db:
        _noise(report.signal_to_noise_db, console)
    if report.spent:
        _energy(report, console)
    if report.area:
        _area(report, console)
    if report.comparison.totals:
        _comparison(report, console)


def _families(report: Report, console: Console, *, unfold: bool) -> None:
    """Print where the cycles of the busiest and of the most stalled units went."""
    busy, stalled = attrgetter("busy_cycles"), attrgetter("stalled_cycles")
    found = unit_families(report.units)
    shown = those(found, attrgetter("took_part"))
    if unfold:
        shown = [Family(each.name, (each,)) for _, units in shown for each in units]
    _units(report, console, "Busiest", busy, shown)
    _units(report, console, "Most stalled", stalled, shown)
    _absent(those(found, lambda unit: not unit.took_part), console)


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


def _network(used: NetworkUse, cycles: int, console: Console) -> None:
    """Print how units are placed, which links are worst, and which channels wait for them."""
    console.print()
    where = "row by row" if used.placement is None else f"as {visible(used.placement)} says"
    sites = f"{counted(used.sites, 'site')} with at most {counted(used.most_units, 'unit')} each"
    print_line(console, Text(f"Units are placed {where}, on {sites}."))
    shares = [(link, link.share(cycles)) for link in used.links]
    limited = [(link, share) for link, share in shares if share is not None]
    worst = sorted(limited, key=lambda each: -each[1])[:_LINKS_SHOWN]
    if worst:
        table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
        table.add_column("busiest links")
        for name in ("bytes", "% of what it can carry", "channels"):
            table.add_column(name, justify="right")
        for link, share in worst:
            row = (f"{link.bytes:,}", f"{100 * share:.1f}", f"{len(link.channels):,}")
            table.add_row(link.name, *row)
        console.print(table)
    held_up = [each for each in used.routes if each.links_cycles]
    if held_up:
        console.print()
        table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="dim")
        table.add_column("channels whose readers wait for links", overflow="fold")
        for name in ("cycles waited", "hop", "bytes"):
            table.add_column(name, justify="right")
        for each in sorted(held_up, key=lambda each: -each.links_cycles)[:_LINKS_SHOWN]:
            row = (f"{each.links_cycles:,}", f"{each.hop_cycles:,}", f"{each.bytes:,}")
            table.add_row(Text(each.channel), *row)
        console.print(table)


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


def _units(
    report: Report,
    console: Console,
    title: str,
    measure: Callable[[UnitCounters], int],
    found: Sequence[Family[UnitCounters]],
) -> None:
    """Print those ``found`` with the largest ``measure``, each as its median unit by that.

    Columns of nothing but zeros are left out.
    """
    spreads = [spread(family.members, measure) for family in found]
    largest = nlargest(_SHOWN, range(len(found)), key=lambda at: measure(spreads[at].most))
    shown = [at for at in largest if measure(spreads[at].most)]
    cycles = report.cycles
    if not shown or not cycles:
        return
    causes = [cause for cause in Cause if any(_of(spreads[at].median, cause) for at in shown)]
    many = any(len(found[at].members) > 1 for at in shown)
    wide = console.width >= _WIDE
    console.print()
    console.print(Text.assemble((title, "bold"), _note(len(shown), len(found), report, many=many)))
    table = Table(box=None, pad_edge=False, collapse_padding=not wide, header_style="dim")
    table.add_column("unit", overflow="fold")
    counts = ("units", "least", "most") if many else ()
    elements = ("elements",) if wide else ()
    for name in (*counts, *(cause.label for cause in causes), *elements):
        table.add_column(name, justify="right", no_wrap=True)
    if wide:
        table.add_column("wired at", overflow="fold")

    def row(family: Family[UnitCounters], of: Spread[UnitCounters]) -> Iterator[str]:
        if many:
            yield f"{len(family.members):,}"
            several = len(family.members) > 1
            for end in (of.least, of.most):
                yield _percent(measure(end), cycles) if several else ""
        yield from (_percent(_of(of.median, cause), cycles) for cause in causes)
        if wide:
            yield f"{of.median.elements:,}"
            yield Place(of.median.file, of.median.line).brief

    for at in shown:
        table.add_row(Text(found[at].title), *row(found[at], spreads[at]))
    console.print(table)


def _note(shown: int, found: int, report: Report, *, many: bool) -> str:
    if not many:
        return f" units, {shown} of {len(report.units)}; % of all cycles"
    units = counted(len(report.units), "unit")
    return f" families, {shown} of {found}, of {units}; % of all cycles, of the median unit"


def _absent(absent: Sequence[Family[UnitCounters]], console: Console) -> None:
    """Print in one line who never got an element."""
    if absent:
        console.print()
        print_line(console, Text(absent_line(absent)))


def _of(unit: UnitCounters, cause: Cause) -> int:
    cycles: int = getattr(unit, cause.column)
    return cycles


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}"


def _deadlock(explained: DeadlockReport, console: Console) -> None:
    # Most reports are of runs that end.
    from fabric.deadlock.text import report_lines

    verdict, *lines = report_lines(explained, terminal_columns(console))
    code, _, rest = verdict.partition(": ")
    print_line(console, Text.assemble((code, "bold red"), f": {rest}"))
    for line in lines:
        console.print(Text(line), soft_wrap=True)

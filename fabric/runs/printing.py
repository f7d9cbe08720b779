"""The report a person reads: totals, then the busiest and the most stalled units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from fabric.deadlock.text import deadlock_sheet
from fabric.runs.counters import UnitCounters, unit_families
from fabric.runs.report import Report
from fabric.runs.totals import areas, spent, totals
from fabric.state.bandwidth import bus_shares, row_outcomes, uneven_channels
from fabric.telling.causes import Cause
from fabric.telling.families import Family, Spread, absent_line, spread, those
from fabric.telling.place import Place
from fabric.telling.sheet import Rows, Sheet, Title, line
from fabric.telling.wording import counted, outcome, visible

if TYPE_CHECKING:
    from fabric.engine.off_chip import MemoryCounters
    from fabric.state.network_use import NetworkUse

__all__ = ["report_sheet"]

_SHOWN: Final = 8
_LINKS_SHOWN: Final = 4


def report_sheet(report: Report, *, unfold: bool = False) -> Sheet:
    """Yield what ``report`` says; a row is a family of units, with ``unfold`` a unit.

    What depends on the host, its time and its folders, is left out: one program, one text.
    """
    yield from _header(report)
    if report.explained is not None:
        yield from deadlock_sheet(report.explained)
    else:
        known = [(name, value, unit) for name, value, unit in totals(report) if value is not None]
        yield Rows(("", "", ""), known, right=frozenset({1}))
        yield from _lists(report)
        yield from _parts(report)
        if report.cycles:
            yield from _families(report, unfold=unfold)
    for warning in report.warnings:
        yield line(("warning: ", "yellow"), warning)


def _lists(report: Report) -> Sheet:
    """Yield the program's own fields that have several lines."""
    for name, value in (report.extra or {}).items():
        if isinstance(value, list) and value:
            yield line(name)
            yield from (line(f"  {each}") for each in value)


def _parts(report: Report) -> Sheet:
    """Yield what there is to tell of memory, network, rounding, prices and sizes."""
    if report.hbm is not None:
        yield from _hbm(report.hbm)
    if report.network is not None:
        yield from _network(report.network, report.cycles or 0)
    if report.signal_to_noise_db:
        yield line()
        yield _noise(report.signal_to_noise_db)
    if report.spent:
        yield line()
        titles = ("energy", "amount", "joules", "%")
        yield Rows(titles, list(spent(report)), right=frozenset({1, 2, 3}))
    if report.area:
        yield line()
        ranges = ("area, low to high", "amount", "mm\N{SUPERSCRIPT TWO}")
        yield Rows(ranges, list(areas(report)), right=frozenset({1, 2}))
    if report.comparison.totals:
        yield line()
        yield _comparison(report)


def _families(report: Report, *, unfold: bool) -> Sheet:
    """Yield where the cycles of the busiest and of the most stalled units went."""
    busy, stalled = attrgetter("busy_cycles"), attrgetter("stalled_cycles")
    found = unit_families(report.units)
    shown = those(found, attrgetter("took_part"))
    if unfold:
        shown = [Family(each.name, (each,)) for _, units in shown for each in units]
    yield from _units(report, "Busiest", busy, shown)
    yield from _units(report, "Most stalled", stalled, shown)
    absent = those(found, lambda unit: not unit.took_part)
    if absent:
        yield line()
        yield line(absent_line(absent))


def _header(report: Report) -> Sheet:
    right = report.status == "completed" and report.verified is not False
    mode = "" if report.mode is None else f" in {report.mode} mode"
    mode += ", floats in float64" if report.exact else ""
    ended = outcome(report.status, report.verified)
    found = report.verification
    if report.status == "completed" and found is not None and found.not_verified:
        mode = f", not verified: {found.not_verified}"
    yield line((report.name, "bold"), f"  {visible(report.program)}")
    yield line((ended, "green" if right else "red"), mode)
    if found is not None:
        for each in found.lines():
            yield line((each, "" if each.startswith(" ") else "red"))
    if report.failure is not None:
        yield line(("error: ", "bold red"), str(report.failure.error()))
    yield line()


def _hbm(counters: MemoryCounters) -> Sheet:
    """Yield what became of the bandwidth of the HBM."""
    if not counters.requests:
        return
    rows = [(use.label, f"{share:.1f}") for use, share in bus_shares(counters.bus)]
    yield line()
    yield Rows(("cycles of HBM buses", "%"), rows)
    for each in (row_outcomes(counters), uneven_channels(counters)):
        if each is not None:
            yield line(each)


def _network(used: NetworkUse, cycles: int) -> Sheet:
    """Yield how units are placed, which links are worst, and which channels wait for them."""
    where = "row by row" if used.placement is None else f"as {visible(used.placement)} says"
    sites = f"{counted(used.sites, 'site')} with at most {counted(used.most_units, 'unit')} each"
    yield line()
    yield line(f"Units are placed {where}, on {sites}.")
    shares = [(link, link.share(cycles)) for link in used.links]
    limited = [(link, share) for link, share in shares if share is not None]
    worst = [
        (link.name, link.bytes, f"{100 * share:.1f}", len(link.channels))
        for link, share in sorted(limited, key=lambda each: -each[1])[:_LINKS_SHOWN]
    ]
    if worst:
        yield Rows(("busiest links", "bytes", "% of what it can carry", "channels"), worst)
    held_up = sorted(
        (each for each in used.routes if each.links_cycles), key=lambda each: -each.links_cycles
    )
    if held_up:
        rows = [(each.channel, each.links_cycles, each.hop_cycles, each.bytes) for each in held_up]
        titles = ("channels whose readers wait for links", "cycles waited", "hop", "bytes")
        yield line()
        yield Rows(titles, rows[:_LINKS_SHOWN])


def _noise(known: Mapping[str, float | None]) -> Rows:
    """Return what the types that the program declares cost each output."""
    rows = [
        (name, "no error" if ratio is None else f"{ratio:.1f}") for name, ratio in known.items()
    ]
    return Rows(("in the declared types", "signal to noise, dB"), rows, right=frozenset({1}))


def _comparison(report: Report) -> Rows:
    """Return what was known before the run beside what it measured."""
    comparison = report.comparison
    rows: list[tuple[str, str, int, str]] = [
        (
            row.what,
            ("\N{LESS-THAN OR EQUAL TO} " if row.at_most else "") + f"{row.expected:,}",
            row.measured,
            "" if row.agrees else "differs",
        )
        for row in comparison.totals
    ]
    as_expected = sum(
        channel.elements == elements
        for channel, elements in zip(
            report.channels_counters, comparison.channel_elements, strict=True
        )
    )
    channels = f"{len(comparison.channel_elements):,}"
    rows.append(("channels with these elements", channels, as_expected, ""))
    return Rows(("", "expected", "measured", ""), rows, right=frozenset({1}))


def _units(
    report: Report,
    title: str,
    measure: Callable[[UnitCounters], int],
    found: Sequence[Family[UnitCounters]],
) -> Sheet:
    """Yield those ``found`` with the largest ``measure``, each as its median unit by that.

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

    def row(family: Family[UnitCounters], of: Spread[UnitCounters]) -> Iterator[object]:
        yield family.title
        if many:
            yield len(family.members)
            several = len(family.members) > 1
            for end in (of.least, of.most):
                yield _percent(measure(end), cycles) if several else None
        yield from (_percent(_of(of.median, cause), cycles) for cause in causes)
        yield of.median.elements
        yield Place(of.median.file, of.median.line).brief

    yield Title(title, _note(len(shown), len(found), report, many=many))
    counts = ("units", "least", "most") if many else ()
    titles = ("unit", *counts, *(cause.label for cause in causes), "elements", "wired at")
    yield Rows(titles, [(*row(found[at], spreads[at]),) for at in shown])


def _note(shown: int, found: int, report: Report, *, many: bool) -> str:
    if not many:
        return f" units, {shown} of {len(report.units)}; % of all cycles"
    units = counted(len(report.units), "unit")
    return f" families, {shown} of {found}, of {units}; % of all cycles, of the median unit"


def _of(unit: UnitCounters, cause: Cause) -> int:
    cycles: int = getattr(unit, cause.column)
    return cycles


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}"

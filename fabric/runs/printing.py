"""The report as text: totals, then the busiest and the most stalled units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import nlargest
from math import floor, log10
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final

from fabric.analysis.trace.reading.names import percent
from fabric.display.parts import Bar, Fold, Rows, Sheet, Title, line
from fabric.messages.causes import SHOWN, Cause
from fabric.messages.place import Place
from fabric.messages.text import (
    Family,
    JsonObject,
    absent_line,
    counted,
    families,
    families_with,
    outcome,
    spread,
    visible,
)
from fabric.runs.counters import UnitCounters, unit_families
from fabric.runs.report import FIGURES, SQUARE_MM, Report
from fabric.timing.state.resource_use import bus_shares, row_outcomes, uneven_channels

if TYPE_CHECKING:
    from fabric.timing.engine.off_chip import MemoryCounters
    from fabric.timing.state.resource_use import LinkUse, NetworkUse

_SHOWN: Final = 8
_VALUE: Final = 24
"""Characters of the longest value in the table of totals. Longer values follow below it."""

_LINKS_SHOWN: Final = 4


def report_sheet(report: Report, *, unfold: bool = False) -> Sheet:
    """Yield the report without times and folders of the host; with ``unfold``, a row per unit."""
    yield from _ending(report)
    if report.explained is None:
        yield from _numbers(report, unfold=unfold)
    else:
        yield from report.explained.sheet()
        yield Fold("The run until then", _numbers(report, unfold=unfold))
    for warning in report.warnings:
        yield line(("warning: ", "yellow"), warning)


def _numbers(report: Report, *, unfold: bool) -> Sheet:
    totals = list(_totals(report))
    short = [row for row in totals if len(row[1]) <= _VALUE]
    yield Rows(("", "", ""), short, right=frozenset({1}))
    for name, text, unit in totals:
        if len(text) > _VALUE:
            yield line(name)
            yield line(f"  {text} {unit}".rstrip())
    for name, value in report.extra.items():
        if isinstance(value, list) and value:
            yield line(name)
            yield from (line(f"  {item}") for item in value)
    yield from _tables(report)
    if report.cycles:
        yield from _families(report, unfold=unfold)
    if report.channels_counters:
        yield Fold("Channels", [_channels(report)])


def _tables(report: Report) -> Sheet:
    if report.hbm is not None and report.hbm.requests:
        yield from _hbm(report.hbm)
    if report.network is not None:
        yield from _network(report, report.network)
    noise = [
        (name, "no error" if ratio is None else f"{ratio:.1f}")
        for name, ratio in report.signal_to_noise_db.items()
    ]
    spent = ("energy", "amount", "joules", "%")
    area = ("area, low to high", "amount", SQUARE_MM)
    for table in (
        Rows(("in the declared types", "signal to noise, dB"), noise, right=frozenset({1})),
        Rows(spent, list(_spent(report)), right=frozenset({1, 2, 3})),
        Rows(area, list(areas(report)), right=frozenset({1, 2})),
        *([_comparison(report)] if report.comparison.totals else []),
    ):
        if table.rows:
            yield line()
            yield table


def _families(report: Report, *, unfold: bool) -> Sheet:
    busy, stalled = attrgetter("busy_cycles"), attrgetter("stalled_cycles")
    all_families = unit_families(report.units)
    senders = {report.units[c.producer] for c in report.channels_counters if c.sent}
    shown = families_with(all_families, lambda unit: unit.took_part or unit in senders)
    if unfold:
        shown = [Family(unit.name, (unit,)) for _, units in shown for unit in units]
    yield from _units(report, "Busiest", busy, shown)
    yield from _units(report, "Most stalled", stalled, shown)
    absent = families_with(all_families, lambda unit: not unit.took_part and unit not in senders)
    if absent:
        yield line()
        yield line(absent_line(absent))
    every = [Family(unit.name, (unit,)) for unit in report.units]
    # Units without busy cycles get a row because 1 is added.
    units = _units(report, "Units", lambda unit: 1 + unit.busy_cycles, every, len(every))
    yield Fold("Each unit", units)


def _channels(report: Report) -> Rows:
    rows = []
    for title, members in families(
        report.channels_counters, lambda channel: channel.name, lambda channel: channel.depth
    ):
        taken = (channel.taken for channel in spread(members, attrgetter("taken")))
        most = max(channel.peak_occupancy for channel in members)
        rows.append((title, len(members), members[0].depth, most, *taken))
    titles = ("channel", "channels", "depth", "most used", "least elements", "median", "most")
    return Rows(titles, rows)


def _ending(report: Report) -> Sheet:
    right = report.status == "completed" and report.verified is not False
    mode = "" if report.mode is None else f" in {report.mode} mode"
    mode += ", floats in float64" if report.exact else ""
    ended = outcome(report.status, report.verified)
    verification = report.verification
    if report.status == "completed" and verification is not None and verification.not_verified:
        mode = f", not verified: {verification.not_verified}"
    elif verification is not None and verification.closeness:
        mode += f", {verification.closeness}"
    mode += f"; {counted(len(report.warnings), 'warning')}" if report.warnings else ""
    yield line((report.name, "bold"), f"  {visible(report.program)}")
    yield line((ended, "green" if right else "red"), mode)
    if verification is not None:
        for text in verification.lines():
            yield line((text, "" if text.startswith(" ") else "red"))
    if report.failure is not None:
        yield line(("error: ", "bold red"), str(report.failure.error()))
    yield line()


def _hbm(counters: MemoryCounters) -> Sheet:
    rows = [(use.label, f"{share:.1f}") for use, share in bus_shares(counters.bus)]
    yield line()
    yield Rows(("cycles of HBM buses", "%"), rows)
    for text in (row_outcomes(counters), uneven_channels(counters)):
        if text is not None:
            yield line(text)


def _network(report: Report, used: NetworkUse) -> Sheet:
    where = "row by row" if used.placement is None else f"as {visible(used.placement)} says"
    sites = f"{counted(used.sites, 'site')} with at most {counted(used.most_units, 'unit')} each"
    yield line()
    yield line(f"Units are placed {where}, on {sites}.")
    worst = [
        (link.name, link.bytes, f"{100 * share:.1f}", len(link.channels))
        for link, share in nlargest(_LINKS_SHOWN, _limited_links(report), key=itemgetter(1))
    ]
    if worst:
        yield Rows(("busiest links", "bytes", "% of capacity", "channels"), worst)
    waits = [
        (route.channel, route.links_cycles, route.hop_cycles, route.bytes)
        for route in nlargest(_LINKS_SHOWN, used.routes, key=attrgetter("links_cycles"))
        if route.links_cycles
    ]
    if waits:
        yield line()
        yield Rows(("channels delayed by links", "cycles waited", "hop", "bytes"), waits)


def _comparison(report: Report) -> Rows:
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
    elements = zip(report.channels_counters, comparison.channel_elements, strict=True)
    as_expected = sum(channel.taken == count for channel, count in elements)
    channels = f"{len(comparison.channel_elements):,}"
    rows.append(("channels with these elements", channels, as_expected, ""))
    return Rows(("", "expected", "measured", ""), rows, right=frozenset({1}))


def _units(
    report: Report,
    title: str,
    measure: Callable[[UnitCounters], int],
    all_families: Sequence[Family[UnitCounters]],
    most_rows: int = _SHOWN,
) -> Sheet:
    """Yield the families with the largest ``measure``; cells have the counters of median units."""
    spreads = [(family, spread(family.members, measure)) for family in all_families]
    largest = nlargest(most_rows, spreads, key=lambda item: measure(item[1].most))
    shown = [(family, of) for family, of in largest if measure(of.most)]
    if not shown:
        return
    whole = report.cycles or 1
    causes = [cause for cause in Cause if any(getattr(of.median, cause.column) for _, of in shown)]
    many = any(len(family.members) > 1 for family, _ in shown)
    rows: list[tuple[object, ...]] = []
    for (name, members), (least, median, most) in shown:
        ends = (
            percent(measure(unit), whole) if len(members) > 1 else None for unit in (least, most)
        )
        shares = (percent(getattr(median, cause.column), whole) for cause in causes)
        bar = {cause: getattr(median, cause.column) / whole for cause in SHOWN}
        bar[Cause.FULL] += median.credit_cycles / whole
        counts = (len(members), *ends) if many else ()
        place = Place(median.file, median.line).brief
        rows.append((name, *counts, Bar(bar), *shares, median.elements, place))
    note = f" units, {len(shown)} of {len(report.units)}; % of all cycles"
    if many:
        units = counted(len(report.units), "unit")
        note = f" families, {len(shown)} of {len(all_families)}, of {units}; % of all cycles"
        note += ", of the median unit"
    yield Title(title, note)
    counts = ("units", "least", "most") if many else ()
    titles = ("unit", *counts, "", *(cause.label for cause in causes), "elements", "wired at")
    yield Rows(titles, rows)


_PREFIXES: Final = {
    9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "\N{GREEK SMALL LETTER MU}", -9: "n", -12: "p",
}  # fmt: skip
_AREAS: Final = {
    "small_memory": "small memory units",
    "memory": "larger memory units",
    "slot": "slots of channels",
    "link": "links of the network",
}
_CAUSES: Final = {
    "hbm": "moved by the HBM",
    "memory_write": "written to memory units",
    "memory_read": "read from memory units",
    "fifo": "in and out of channels",
    "hop": "on the way in channels",
    "static": "static",
}

_FIGURES: Final = (
    "cycles", "off_chip_traffic_bytes", "hbm_bytes_moved", "on_chip_requirement_bytes",
    "on_chip_peak_bytes", "on_chip_peak_pages", "on_chip_map_bytes", "on_chip_peak_empty_bytes",
    "on_chip_wait_cycles", "spilled_bytes", "fetched_bytes", "flops", "allocated_flops_per_cycle",
    "compute_utilization",
)  # fmt: skip


def _totals(report: Report) -> Iterator[tuple[str, str, str]]:
    for name in _FIGURES:
        if name != "on_chip_peak_bytes" or report.on_chip_peak_pages is not None:
            yield from figure(report, name)
    if (used := report.off_chip_bandwidth_utilization) is not None:
        peak = f"{report.off_chip_peak_bytes_per_cycle:,.1f}".removesuffix(".0")
        yield "off-chip bandwidth used", f"{100 * used:.1f}", f"% of {peak} B/cycle"
    for name in ("operators", "channels", "elements"):
        yield from figure(report, name)
    if area := _range(report.area_low_mm2, report.area_high_mm2):
        yield "area", area, SQUARE_MM
    yield from _in_units(report)
    for name, value in report.extra.items():
        if value is not None and not isinstance(value, list):  # lists have lines below the table
            yield name, *_value(value, "")


def _in_units(report: Report) -> Iterator[tuple[str, str, str]]:
    runs = report.stands_for_runs or 1
    yield from figure(report, "seconds")
    yield from figure(report, "joules")
    if runs > 1:
        yield "stands for", f"{runs:,}", "equal runs"
        for name, value, unit in ("time", report.seconds, "s"), ("energy", report.joules, "J"):
            if value is not None:
                yield f"{name} of all runs", *_value(value * runs, unit)
    if report.tokens is not None:
        yield "tokens", *_value(report.tokens, report.token_phase or "")
    for name in ("tokens_per_second", "tokens_per_joule", "time_to_first_token_seconds"):
        yield from figure(report, name)


def figure(report: object, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the label, value and unit of a number; nothing if it is unknown."""
    (text, unit), value = FIGURES[name], getattr(report, name)
    if value is not None:
        yield text, *_value(value, unit)


def _value(value: object, unit: str) -> tuple[str, str]:
    if not isinstance(value, int | float):
        return str(value), unit
    match unit:
        case "fraction":
            return f"{100 * value:.1f}", "%"
        case "s" | "J":
            return _scaled(value, unit)
        case "1/s" | "1/J":
            return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}", ""
        case _:
            return f"{value:,}", unit


def results_of(report: Report) -> JsonObject:
    """Return the parts of ``report`` that a trace keeps: status, prices and limited links."""
    priced = report.seconds is not None or report.spent
    return {
        "status": report.status,
        "verified": report.verified,
        "closeness": report.verification.closeness if report.verification else "",
        "priced": {"totals": [*_in_units(report)], "spent": [*_spent(report)]} if priced else {},
        "links": [
            {
                "name": link.name, "source": link.source, "target": link.target, "share": share,
                "bytes": link.bytes, "channels": link.channels[:2], "users": len(link.channels),
            }
            for link, share in _limited_links(report)
        ],
    }  # fmt: skip


def _limited_links(report: Report) -> Iterator[tuple[LinkUse, float]]:
    for link in () if report.network is None else report.network.links:
        share = link.share(report.cycles or 0)
        if share is not None:
            yield link, share


def _spent(report: Report) -> Iterator[tuple[str, str, str, str]]:
    for spending in report.spent:
        if spending.amount == 0:
            continue
        dtype = spending.cause.removesuffix("_flop")
        name = _CAUSES.get(spending.cause) or f"operations on {dtype}"
        amount = _quantity(spending.amount, "s", "no clock")
        if spending.unit != "seconds":
            amount = f"{spending.amount:,.0f} {spending.unit}"
        joules = _quantity(spending.joules, "J", "no price")
        share = f"{100 * (spending.joules or 0) / report.joules:.1f}" if report.joules else ""
        yield name, amount, joules, share


def areas(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield the cause, the amount and the square millimetres of each part of the area."""
    for part in report.area:
        if part.amount is None or part.amount:
            name = _AREAS.get(part.cause) or f"operations on {part.cause.removesuffix('_flop')}"
            area = _range(part.low_mm2, part.high_mm2) or "not stated"
            amount = "no limit" if part.amount is None else f"{part.amount:,} {part.unit}"
            yield name, amount, area


def _range(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:,.3g} to {high:,.3g}"


def _quantity(value: float | None, unit: str, missing: str) -> str:
    return missing if value is None else " ".join(_scaled(value, unit))


def _scaled(value: float, unit: str) -> tuple[str, str]:
    if not value:
        return "0", unit
    power = min(9, max(-12, 3 * floor(log10(abs(value)) / 3)))
    return f"{value / 10**power:,.4g}", f"{_PREFIXES[power]}{unit}"

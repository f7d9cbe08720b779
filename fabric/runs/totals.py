"""What a run counted, in words: for the terminal and for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, log10
from typing import Final

from fabric.runs.report import Report
from fabric.telling.plain import JsonObject

__all__ = ["areas", "spent", "told_of_links", "told_of_prices", "totals"]

_PREFIXES: Final = {
    9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "\N{GREEK SMALL LETTER MU}", -9: "n", -12: "p",
}  # fmt: skip
_AREAS: Final = {
    "small_memory": "small memory units",
    "memory": "larger memory units",
    "slot": "slots of channels",
    "link": "links of the network",
}
_CHANNELS: Final = 2
"""Of a link, that are named."""

_CAUSES: Final = {
    "hbm": "moved by the HBM",
    "memory_write": "written to memory units",
    "memory_read": "read from memory units",
    "fifo": "in and out of channels",
    "hop": "on the way in channels",
    "static": "static",
}


def totals(report: Report) -> Iterator[tuple[str, str | None, str]]:
    """Yield what was counted: its name, its value as text and its unit; None for no value."""
    yield "cycles", _number(report.cycles), ""
    yield "off-chip traffic", _number(report.off_chip_traffic_bytes), "bytes"
    yield "moved by the HBM", _number(report.hbm_bytes_moved), "bytes"
    yield "on-chip requirement", _number(report.on_chip_requirement_bytes), "bytes"
    if report.on_chip_peak_pages is not None:
        yield "on chip at the peak", _number(report.on_chip_peak_bytes), "bytes"
        yield "pages at the peak", _number(report.on_chip_peak_pages), "pages"
        yield "map of these pages", _number(report.on_chip_map_bytes), "bytes"
        yield "empty in pages at the peak", _number(report.on_chip_peak_empty_bytes), "bytes"
        yield "waited for pages, all units", _number(report.on_chip_wait_cycles), "cycles"
    if report.spilled_bytes is not None:
        yield "spilled", _number(report.spilled_bytes), "bytes"
        yield "read back", _number(report.fetched_bytes), "bytes"
    yield "FLOPs", _number(report.flops), ""
    yield "allocated compute", _number(report.allocated_flops_per_cycle), "FLOPs/cycle"
    yield "compute utilisation", _percent(report.compute_utilization), "%"
    yield "off-chip bandwidth used", _percent(report.off_chip_bandwidth_utilization), "%"
    yield "operators", _number(report.operators), ""
    yield "channels", _number(report.channels), ""
    yield "elements", _number(report.elements), ""
    yield "area", _range(report.area_low_mm2, report.area_high_mm2), "mm\N{SUPERSCRIPT TWO}"
    yield from _in_units(report)
    for name, value in (report.extra or {}).items():
        if not isinstance(value, list):  # lines of text, which stand below
            yield name, _number(value), ""


def _in_units(report: Report) -> Iterator[tuple[str, str | None, str]]:
    """Yield, as ``totals`` does, what is known in seconds, joules and tokens."""
    runs = report.stands_for_runs or 1
    yield "time", *_scaled(report.seconds, "s")
    yield "energy", *_scaled(report.joules, "J")
    if runs > 1:
        yield "stands for", _number(runs), "such runs"
        yield "their time, multiplied", *_scaled(_times(report.seconds, runs), "s")
        yield "their energy, multiplied", *_scaled(_times(report.joules, runs), "J")
    yield "tokens", _number(report.tokens), report.token_phase or ""
    yield "tokens per second", _rate(report.tokens_per_second), ""
    yield "tokens per joule", _rate(report.tokens_per_joule), ""
    yield "time to first token", *_scaled(report.time_to_first_token_seconds, "s")


def told_of_prices(report: Report) -> JsonObject:
    """Return both as rows of text, for who shows the run later; nothing where it has no clock."""
    rows = [list(row) for row in _in_units(report) if row[1] is not None]
    if report.seconds is None and not report.spent:
        return {}
    return {"totals": rows, "spent": [list(row) for row in spent(report)]}


def told_of_links(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """Yield the links that have a limit, for who shows the run later.

    Of each its name, its bytes, percent of what it can carry, and the first of its channels.
    """
    if report.network is None:
        return
    for link in report.network.links:
        share = link.share(report.cycles or 0)
        if share is None:
            continue
        more = len(link.channels) - _CHANNELS
        users = ", ".join(link.channels[:_CHANNELS]) + (f", {more:,} more" if more > 0 else "")
        yield link.name, f"{link.bytes:,}", f"{100 * share:.1f}", users


def spent(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """Yield the causes of energy that the run had: cause, amount, joules, and percent of all."""
    for each in report.spent:
        if each.amount == 0:
            continue
        dtype = each.cause.removesuffix("_flop")
        name = _CAUSES.get(each.cause) or f"operations on {dtype}"
        amount = _quantity(each.amount, "s", "no clock")
        if each.unit != "seconds":
            amount = f"{each.amount:,.0f} {each.unit}"
        joules = _quantity(each.joules, "J", "no price")
        share = "" if not report.joules else f"{100 * (each.joules or 0) / report.joules:.1f}"
        yield name, amount, joules, share


def areas(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield what the program has of what takes area: cause, amount, and square millimetres."""
    for each in report.area:
        if each.amount is None or each.amount:
            name = _AREAS.get(each.cause) or f"operations on {each.cause.removesuffix('_flop')}"
            area = _range(each.low_mm2, each.high_mm2) or "not stated"
            amount = "no limit" if each.amount is None else f"{each.amount:,} {each.unit}"
            yield name, amount, area


def _range(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:,.3g} to {high:,.3g}"


def _times(value: float | None, runs: int) -> float | None:
    return None if value is None else value * runs


def _rate(value: float | None) -> str | None:
    return None if value is None else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _quantity(value: float | None, unit: str, missing: str) -> str:
    number, scaled_unit = _scaled(value, unit)
    return missing if number is None else f"{number} {scaled_unit}"


def _scaled(value: float | None, unit: str) -> tuple[str | None, str]:
    """Return a quantity with four digits and the prefix of its unit that suits them."""
    if value is None:
        return None, ""
    if not value:
        return "0", unit
    power = min(9, max(-12, 3 * floor(log10(abs(value)) / 3)))
    return f"{value / 10**power:,.4g}", f"{_PREFIXES[power]}{unit}"


def _number(value: object) -> str | None:
    if value is None:
        return None
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _percent(fraction: float | None) -> str | None:
    return None if fraction is None else f"{100 * fraction:.1f}"

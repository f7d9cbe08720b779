"""What a run counted, in words: for the terminal and for notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from fabric.runs.report import Report

__all__ = ["totals"]


def totals(report: Report) -> Iterator[tuple[str, str | None, str]]:
    """Yield what was counted: its name, its value as text and its unit; None for no value."""
    yield "cycles", _number(report.cycles), ""
    yield "off-chip traffic", _number(report.off_chip_traffic_bytes), "bytes"
    yield "moved by the HBM", _number(report.hbm_bytes_moved), "bytes"
    yield "on-chip requirement", _number(report.on_chip_requirement_bytes), "bytes"
    yield "FLOPs", _number(report.flops), ""
    yield "allocated compute", _number(report.allocated_flops_per_cycle), "FLOPs/cycle"
    yield "compute utilisation", _percent(report.compute_utilization), "%"
    yield "off-chip bandwidth used", _percent(report.off_chip_bandwidth_utilization), "%"
    yield "operators", _number(report.operators), ""
    yield "channels", _number(report.channels), ""
    yield "elements", _number(report.elements), ""
    for name, value in (report.extra or {}).items():
        yield name, _number(value), ""


def _number(value: object) -> str | None:
    if value is None:
        return None
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _percent(fraction: float | None) -> str | None:
    return None if fraction is None else f"{100 * fraction:.1f}"

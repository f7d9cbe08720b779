"""``trace summary``: what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from fabric.telling.wording import counted, visible
from fabric.terminal.tables import print_table, print_title

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.trace.analysis.summary import TraceSummary

__all__ = ["print_summary"]

_WAITS_SHOWN: Final = 20


def print_summary(summary: TraceSummary, console: Console) -> None:
    """Print how the run ended, how much was recorded, and who still waits."""
    given = ", ".join(f"{name}={value}" for name, value in summary.parameters.items())
    console.print(Text.assemble((summary.name, "bold"), f"  {visible(summary.program)}"))
    if given:
        console.print(Text(visible(given)), soft_wrap=True)
    console.print(f"{summary.outcome} in {summary.mode} mode, {counted(summary.cycles, 'cycle')}")
    if summary.window is not None:
        first, last = summary.window
        console.print(f"only cycles {first:,} to {last:,} were traced")
    if summary.nodes is not None:
        console.print(f"only channels of units {summary.nodes} were traced")
    counts = (
        ("units", summary.units),
        ("channels", summary.channels),
        ("transfers", summary.transfers),
        ("elements still held", summary.held_elements),
        ("bursts", summary.bursts),
        ("bytes of the HBM", summary.hbm_bytes),
        ("waits", summary.waits),
    )
    print_title(console, "Recorded")
    print_table(console, ("what", "count"), counts, len(counts))
    rows = [
        (
            unit.name,
            unit.waits_for and unit.waits_for.awaits,
            channel,
            unit.since_cycle,
            f"{unit.file}:{unit.line}",
        )
        for unit in summary.not_ended
        for channel in unit.channels or (None,)
    ]
    if rows:
        print_title(console, "Not ended")
        columns = ("unit", "waits for", "channel", "since", "wired at")
        print_table(console, columns, rows, _WAITS_SHOWN)

"""``trace deadlock``: why a recorded run does not move, or that nothing keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from fabric.deadlock.text import report_lines
from fabric.telling.wording import counted
from fabric.terminal.output import print_line, terminal_columns

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.deadlock.document import DeadlockReport
    from fabric.trace.analysis.summary import TraceSummary

__all__ = ["print_deadlock"]


def print_deadlock(report: DeadlockReport | None, summary: TraceSummary, console: Console) -> None:
    """Print the loops of ``report``, or that there are none, as ``summary`` has it."""
    if report is not None:
        verdict, *lines = report_lines(report, terminal_columns(console))
        print_line(console, Text(verdict, style="bold red"))
        for line in lines:
            console.print(line, soft_wrap=True, markup=False)
        return
    if not summary.has_state:
        console.print("The trace does not say what units waited for.")
        return
    finished = summary.units - len(summary.not_ended)
    waiting = sum(unit.waits_for is not None for unit in summary.not_ended)
    console.print(f"No unit waits for ever: {summary.status} at cycle {summary.cycles:,}.")
    console.print(
        f"{finished:,} of {counted(summary.units, 'unit')} had ended, {waiting:,} waited for "
        f"others."
    )

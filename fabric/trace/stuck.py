"""``trace deadlock``: why a recorded run does not move, from its trace alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.deadlock.describe import describe_deadlock
from fabric.deadlock.text import report_lines
from fabric.trace.rebuilt import rebuilt

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.deadlock.document import DeadlockReport
    from fabric.trace.reader import Trace

__all__ = ["analysed", "print_deadlock"]

_WHY_NO_REMEDY: Final = "a trace cannot be run with other depths: `run` tries them"


def analysed(trace: Trace) -> DeadlockReport | None:
    """Return the report of the loops at the last recorded state; None where all can go on."""
    machine, tokens = rebuilt(trace)
    return describe_deadlock(machine, tokens, _WHY_NO_REMEDY)


def print_deadlock(trace: Trace, console: Console) -> None:
    """Print the loops, or that there are none."""
    report = analysed(trace)
    if report is not None:
        verdict, *lines = report_lines(report)
        console.print(verdict, style="bold red", soft_wrap=True, markup=False)
        for line in lines:
            console.print(line, soft_wrap=True, markup=False)
        return
    ((waiting, finished, units),) = trace.rows(
        "SELECT count(waits_for), count(*) FILTER (finished), count(*) FROM states"
    )
    console.print(f"No unit waits for ever: {trace.status} at cycle {trace.cycles:,}.")
    console.print(f"{finished:,} of {units:,} units had ended, {waiting:,} waited for others.")

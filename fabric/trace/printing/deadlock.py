"""``trace deadlock``: why a recorded run does not move, or that nothing keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.deadlock.text import deadlock_sheet
from fabric.telling.sheet import Sheet, line
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from fabric.deadlock.document import DeadlockReport
    from fabric.trace.analysis.summary import TraceSummary

__all__ = ["stuck_sheet"]


def stuck_sheet(report: DeadlockReport | None, summary: TraceSummary) -> Sheet:
    """Yield the loops of ``report``, or that there are none, as ``summary`` has it."""
    if report is not None:
        yield from deadlock_sheet(report)
        return
    if not summary.has_state:
        yield line("The trace does not say what units waited for.")
        return
    finished = summary.units - len(summary.not_ended)
    waiting = sum(unit.waits_for is not None for unit in summary.not_ended)
    yield line(f"No unit waits for ever: {summary.status} at cycle {summary.cycles:,}.")
    yield line(
        f"{finished:,} of {counted(summary.units, 'unit')} had ended, {waiting:,} waited for "
        f"others."
    )

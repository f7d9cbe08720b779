"""Why a recorded run does not move, from its trace alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from fabric.analysis.deadlock.cause import find_stuck
from fabric.analysis.deadlock.describe import describe_deadlock
from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.deadlock.text import one_line
from fabric.analysis.trace.analysis.moment import expected_in, state_in

if TYPE_CHECKING:
    from fabric.analysis.trace.reading.reader import RecordedRun

__all__ = ["analysed"]

_WHY_NO_REMEDY: Final = "a trace cannot be run with other depths: `run` tries them"


def analysed(trace: RecordedRun) -> DeadlockReport | None:
    """Return the report of the loops at the last recorded state; None where it has none.

    A trace cannot be run with other depths, and of a livelock it has but a piece: the remedy of a
    deadlock and the report of a livelock are those that the run wrote beside its trace. So is the
    whole report where the trace has no state.
    """
    written = _written(trace)
    known = trace.has_state and trace.status != "livelock"
    if written is not None and not known and trace.status != "completed":
        return written
    if not trace.has_state:
        return None
    state = state_in(trace)
    stuck = find_stuck(state)
    if not stuck.cores:
        return None
    found = describe_deadlock(state, stuck, expected_in(trace), _WHY_NO_REMEDY)
    if written is None or _units(written) != _units(found):
        return found
    return one_line(replace(found, remedy=written.remedy))


def _written(trace: RecordedRun) -> DeadlockReport | None:
    """Return what the run itself wrote about its end, where it came to that."""
    try:
        return msgspec.json.decode(trace.explained or b"", type=DeadlockReport)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _units(report: DeadlockReport) -> list[list[str]]:
    return [[unit.unit for unit in loop.units] for loop in report.loops]

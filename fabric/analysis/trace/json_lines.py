"""The event trace as events of structlog, told as those of the run log are.

Sorted by (cycle, event, channel or unit, element); names of fields are
those of ``fabric.messages.telling.vocabulary``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.messages.telling.causes import Step
from fabric.messages.telling.events import Log, line_logger, logger_of, tell_event, tell_user
from fabric.messages.telling.vocabulary import EVENTS
from fabric.messages.telling.whole_file import output_file
from fabric.timing.log.log_rows import END, IDLE, RESERVE

if TYPE_CHECKING:
    from fabric.analysis.trace.reading.reader import RecordedRun

__all__ = ["tell_trace", "write_json_lines"]

_CHUNK: Final = 10_000

_SELECTS: Final[dict[str, str]] = {
    "transfer": (
        "SELECT taken_cycle, c.name, element, stop, bare, reserved_cycle, sent_cycle, "
        "visible_cycle, seen_cycle, send_wait_cycles, receive_wait_cycles "
        "FROM transfers JOIN channels c USING (channel) WHERE taken_cycle IS NOT NULL "
        "ORDER BY taken_cycle, c.name, element"
    ),
    "burst": (
        "SELECT end_cycle, name, submitted_cycle, requests, bytes "
        "FROM bursts JOIN units USING (unit) WHERE NOT open ORDER BY end_cycle, name"
    ),
    "held": (
        "SELECT sent_cycle, c.name, element, stop, bare, reserved_cycle, visible_cycle, "
        "seen_cycle, send_wait_cycles, receive_wait_cycles "
        "FROM transfers JOIN channels c USING (channel) WHERE taken_cycle IS NULL "
        "ORDER BY sent_cycle, c.name, element"
    ),
    "open_wait": (
        "SELECT w.end_cycle, u.name, cause, c.name, start_cycle, w.cycles, coalesce(bytes, 0) "
        "FROM waits w JOIN units u USING (unit) LEFT JOIN channels c USING (channel) "
        "LEFT JOIN bursts b ON b.open AND b.unit = w.unit WHERE w.open ORDER BY w.end_cycle, u.name"
    ),
    "allocate": (
        "SELECT cycle, name, wait_cycles, amount FROM recorded_operations "
        "JOIN units USING (unit) WHERE operation = 1 ORDER BY cycle, name"
    ),
    **{
        event: (
            "SELECT cycle, u.name, c.name, wait_cycles FROM recorded_operations "
            f"JOIN units u USING (unit) JOIN channels c USING (channel) WHERE operation = {code} "
            "ORDER BY cycle, u.name, c.name"
        )
        for event, code in ((Step.END, END), (Step.RESERVE, RESERVE), (Step.IDLE, IDLE))
    },
}


def write_json_lines(trace: RecordedRun, output: Path) -> int:
    """Write one line an event and return how many there are."""
    with output_file(output, encoding="utf-8") as file:
        logger = line_logger(file).bind(run=_name(trace))
        return _tell_all(trace, partial(tell_event, logger))


def tell_trace(trace: RecordedRun, log: Log) -> int:
    """Tell a user's ``log`` of every event and return how many there are.

    Raises:
        ConfigurationError: it is no logger, and no processors.
        ProgramError: it raised.
    """
    return _tell_all(trace, partial(tell_user, logger_of(log, "tell", _name(trace))))


def _name(trace: RecordedRun) -> str:
    return str(trace.meta.get("name"))


def _tell_all(trace: RecordedRun, tell: Callable[[str, dict[str, object]], None]) -> int:
    count = 0
    streams = [_events(trace, event) for event in sorted(_SELECTS)]
    for (_, event), fields in heapq.merge(*streams, key=lambda each: each[0]):
        tell(event, fields)
        count += 1
    return count


def _events(trace: RecordedRun, event: str) -> Iterator[tuple[tuple[int, str], dict[str, object]]]:
    names = EVENTS[event]
    cursor = trace.cursor().execute(_SELECTS[event])
    while rows := cursor.fetchmany(_CHUNK):
        for row in rows:
            yield (row[0], event), dict(zip(names, row, strict=True))

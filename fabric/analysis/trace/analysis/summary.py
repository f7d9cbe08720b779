"""The recorded amounts and the end of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.display.parts import ShownAsTables
from fabric.messages.causes import Operation
from fabric.messages.text import JsonObject

if TYPE_CHECKING:
    from fabric.analysis.trace.reading.reader import RecordedRun

_LEFT = """
SELECT u.name, u.file, u.line, s.waits_for, s.since_cycle, list(c.name ORDER BY channel)
FROM states s JOIN units u USING (unit) LEFT JOIN waiting w USING (unit)
LEFT JOIN channels c USING (channel) WHERE NOT s.finished GROUP BY ALL ORDER BY any_value(u.unit)
"""


@dataclass(frozen=True)
class UnitLeft:
    """A unit with an operator that had not ended, and its wait, if any."""

    name: str
    file: str
    line: int
    waits_for: Operation | None
    since_cycle: int | None
    channels: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class TraceSummary(ShownAsTables):
    """The end of a run, and the recorded amounts.

    Attributes:
        program: the program's file.
        status: the end of the run; ``killed`` if none was recorded.
        outcome: the status, and whether the outputs are right.
        cycles: of the run; the last recorded cycle of a killed run.
        window: the first and the last traced cycle; None for all.
        nodes: the pattern of traced units; None for all.
        transfers: dequeued elements and bare stops.
        held_elements: sent and not dequeued.
        waits: longer than 0 cycles, or open.
        has_state: the last state of units is recorded.
        not_ended: units, in node order.
    """

    name: str
    program: str
    parameters: JsonObject
    mode: str
    status: str
    outcome: str
    cycles: int
    window: tuple[int, int] | None
    nodes: str | None
    units: int
    channels: int
    transfers: int
    held_elements: int
    bursts: int
    hbm_bytes: int
    waits: int
    has_state: bool
    not_ended: tuple[UnitLeft, ...]


def summary_of(trace: RecordedRun) -> TraceSummary:
    """Return the recorded amounts and the end of ``trace``."""
    meta = trace.meta
    window = meta.get("window")
    ((units, channels, transfers, held, bursts, hbm_bytes, waits),) = trace.rows(
        "SELECT (SELECT count(*) FROM units), (SELECT count(*) FROM channels), "
        "(SELECT count(taken_cycle) FROM transfers), "
        "(SELECT count(*) - count(taken_cycle) FROM transfers), "
        "(SELECT count(*) FROM bursts), (SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts), "
        "(SELECT count(*) FROM waits)"
    )
    return TraceSummary(
        name=str(meta.get("name")),
        program=str(meta.get("program")),
        parameters=meta.get("parameters", {}),
        mode=str(meta.get("mode")),
        status=trace.status,
        outcome=trace.outcome,
        cycles=trace.cycles,
        window=None if window is None else (window[0], window[1]),
        nodes=meta.get("nodes"),
        units=units,
        channels=channels,
        transfers=transfers,
        held_elements=held,
        bursts=bursts,
        hbm_bytes=hbm_bytes,
        waits=waits,
        has_state=trace.has_state,
        not_ended=tuple(_left(*row) for row in trace.rows(_LEFT)),
    )


def _left(
    name: str,
    file: str,
    line: int,
    waits_for: str | None,
    since_cycle: int | None,
    channels: list[str | None],
) -> UnitLeft:
    operation = None if waits_for is None else Operation(waits_for)
    named = tuple(channel for channel in channels if channel is not None)
    return UnitLeft(name, file, line, operation, since_cycle, named)

"""The recorded amounts and the end of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.display.parts import Rows, Sheet, Title, line
from fabric.display.result import Result
from fabric.messages.causes import Operation
from fabric.messages.text import JsonObject, counted, families, visible

_SHOWN: Final = 20

_COUNTS = """
SELECT (SELECT count(*) FROM units) AS units, (SELECT count(*) FROM channels) AS channels,
    count(taken_cycle) AS transfers, count(*) - count(taken_cycle) AS held_elements,
    (SELECT count(*) FROM bursts) AS bursts,
    (SELECT coalesce(sum(bytes), 0)::BIGINT FROM bursts) AS hbm_bytes,
    (SELECT count(*) FROM waits) AS waits
FROM transfers
"""

_LEFT = """
SELECT u.name, u.file, u.line, s.waits_for, s.since_cycle,
    coalesce(list(c.name ORDER BY channel) FILTER (c.name IS NOT NULL), [])
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
class TraceSummary(Result):
    """The end of a run, and the recorded amounts."""

    name: str
    program: str
    parameters: JsonObject
    mode: str
    status: str  # the end of the run; ``killed`` if none was recorded
    outcome: str  # the status, and whether the outputs are right
    cycles: int  # of the run; the last recorded cycle of a killed run
    window: tuple[int, int] | None  # the first and the last traced cycle; None for all
    nodes: str | None  # the pattern of traced units; None for all
    units: int
    channels: int
    transfers: int  # dequeued elements and bare stops
    held_elements: int  # sent and not dequeued
    bursts: int
    hbm_bytes: int
    waits: int  # longer than 0 cycles, or open
    has_state: bool  # the last waits of units are recorded
    not_ended: tuple[UnitLeft, ...]

    def sheet(self, *, unfold: bool = False) -> Sheet:
        """Yield the end of the run, the recorded amounts, and the units that still wait.

        Units of a family that wait for channels of one family share a row, except with ``unfold``.
        """
        parameters = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        yield line((self.name, "bold"), f"  {visible(self.program)}")
        if parameters:
            yield line(visible(parameters))
        yield line(f"{self.outcome} in {self.mode} mode, {counted(self.cycles, 'cycle')}")
        if self.window is not None:
            first, last = self.window
            yield line(f"only cycles {first:,} to {last:,} were traced")
        if self.nodes is not None:
            yield line(f"only channels of units {self.nodes} were traced")
        counts = (
            ("units", self.units),
            ("channels", self.channels),
            ("transfers", self.transfers),
            ("elements still held", self.held_elements),
            ("bursts", self.bursts),
            ("bytes of the HBM", self.hbm_bytes),
            ("waits", self.waits),
        )
        yield Title("Recorded")
        yield Rows(("what", "count"), counts)
        waits = []
        for unit in self.not_ended:
            awaits, place = unit.waits_for and unit.waits_for.awaits, f"{unit.file}:{unit.line}"
            waits += [
                (unit.name, awaits, channel, unit.since_cycle, place)
                for channel in unit.channels or ("",)
            ]
        if not waits:
            return
        yield Title("Not ended")
        if unfold:
            yield Rows(("unit", "waits for", "channel", "since", "wired at"), waits, _SHOWN)
            return
        rows = []
        for title, members in families(waits, lambda w: f"{w[0]} {w[2]}", lambda w: (w[1], w[4])):
            name, _, channel = title.partition(" ")
            _, awaits, _, _, wired = members[0]
            cycles = [since for *_, since, _ in members if since is not None]
            since = (min(cycles), max(cycles)) if cycles else (None, None)
            rows.append((name, len(members), awaits, channel, *since, wired))
        columns = ("unit", "units", "waits for", "channel", "since", "last since", "wired at")
        yield Rows(columns, rows, _SHOWN)

    def waiting_sheet(self) -> Sheet:
        """Yield the number of units that waited at the end of a run without a deadlock."""
        if not self.has_state:
            yield line("The trace has no record of the last waits.")
            return
        finished = self.units - len(self.not_ended)
        waiting = sum(unit.waits_for is not None for unit in self.not_ended)
        yield line(f"No unit waits for ever: {self.status} at cycle {self.cycles:,}.")
        ended = f"{finished:,} of {counted(self.units, 'unit')} had ended"
        yield line(f"{ended}, {waiting:,} waited for others.")


def summary_of(trace: RecordedRun) -> TraceSummary:
    meta = trace.meta
    return TraceSummary(
        name=trace.head.name,
        program=str(meta.get("program")),
        parameters=trace.head.parameters,
        mode=str(meta.get("mode")),
        status=trace.status,
        outcome=trace.outcome,
        cycles=trace.cycles,
        window=trace.head.window,
        nodes=trace.head.nodes,
        **{name: int(count) for name, (count,) in trace.numpy(_COUNTS).items()},
        has_state=trace.has_state,
        not_ended=tuple(
            UnitLeft(name, file, line, waits_for and Operation(waits_for), since, tuple(channels))
            for name, file, line, waits_for, since, channels in trace.rows(_LEFT)
        ),
    )

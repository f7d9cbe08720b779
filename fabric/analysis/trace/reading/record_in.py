"""Makes records from the tables of a trace; a record can be timed again with other depths."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from msgspec import structs

from fabric.analysis.trace.reading.query_tables import CHANNELS
from fabric.analysis.trace.reading.reader import RecordedRun, refused
from fabric.graph.hardware.description import RegisterDescription
from fabric.messages.causes import Operation
from fabric.messages.errors import ConfigurationError
from fabric.timing.engine import log
from fabric.timing.retiming.record import NO_EVENTS, Record, RecordedChannel, RecordedLinks
from fabric.timing.retiming.record_making import record_of
from fabric.timing.retiming.retimer import Retimer

_WAITED_FOR: Final = f"""
SELECT unit, waits_for, since_cycle, channel FROM waiting JOIN states USING (unit)
WHERE NOT any_of AND waits_for IN ('{Operation.RECEIVE}', '{Operation.SEND}')
ORDER BY unit, channel
"""


def record_in(trace: RecordedRun) -> Record:
    if trace.status != "completed":
        raise _ended_otherwise(trace, "expected a completed run")
    return _record_in(trace)


def stopped_in(trace: RecordedRun) -> tuple[Record, tuple[int, ...]]:
    """Return the record of a deadlocked run with its awaited operations, and their units.

    The awaited operation of a unit is the send or receive that it waits for. A unit that waits for
    any of several channels, or for a memory, has none.
    """
    if trace.status != "deadlock":
        raise _ended_otherwise(trace, "expected a completed or deadlocked run")
    record = _record_in(trace)
    retimer = Retimer(record)
    retimer.time(record.depths)
    events: dict[int, list[tuple[int, int]]] = {}
    sent = [channel.elements for channel in record.channels]
    for unit, operation, since, channel in trace.rows(_WAITED_FOR):
        end = int(record.first[unit + 1])
        clock = int(retimer.clocks[end - 1]) if end > record.first[unit] else 0
        kind = log.SEND if operation == Operation.SEND else log.SEE
        sent[channel] += kind == log.SEND
        worked = 0 if unit in events else max(0, since - clock)
        events.setdefault(unit, []).append((channel << log.SHIFT | kind, worked))
    rows = [(unit, *event) for unit, awaited in sorted(events.items()) for event in awaited]
    units, codes, cycles = np.array(rows, np.int64).reshape(-1, 3).T
    inserted = np.stack([codes, cycles], 1)
    counts = np.bincount(units, minlength=len(record.units))
    awaiting = replace(
        record,
        events=np.insert(record.events, record.first[units + 1], inserted, axis=0),
        first=record.first + np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        channels=tuple(
            structs.replace(channel, elements=count)
            for channel, count in zip(record.channels, sent, strict=True)
        ),
    )
    return awaiting, tuple(sorted(events))


def _ended_otherwise(trace: RecordedRun, expected: str) -> ConfigurationError:
    return refused(f"trace {trace.folder}: the run ended with {trace.status}: {expected}")


def _record_in(trace: RecordedRun) -> Record:
    who = f"trace {trace.folder}"
    for name in ("window", "nodes"):
        if getattr(trace.head, name) is not None:
            raise refused(f"{who}: only a part was traced: expected a run without --trace-{name}")
    no_shutdown = trace.end.shutdown_cycles is None and trace.status == "completed"
    if trace.damaged or no_shutdown:
        raise _damaged(who)
    try:
        record = record_of(trace.entries(), _facts(trace))
    except ValueError:
        raise _damaged(who) from None
    if not _fits(record):
        raise _damaged(who)
    retimer = Retimer(record)
    ends = [cycle for (cycle,) in trace.rows("SELECT cycle FROM states ORDER BY unit")]
    again = retimer.time(record.depths)
    if trace.status == "completed":
        clocks = retimer.clocks[record.first[1:] - 1].tolist()
        is_whole = again.cycles == trace.cycles and ends == clocks
    else:
        # Work before an endless wait is in no row of the log.
        is_whole = again.cycles is not None and again.cycles <= trace.cycles
    if not is_whole:
        raise _damaged(who)
    return record


def _fits(record: Record) -> bool:
    """Whether every filled slot was reserved, and every element that arrives was sent."""
    code, amount = record.events.T
    arrives = code & log.KIND == log.ARRIVAL
    elements = record.elements[code[arrives] >> log.SHIFT]
    unused = np.array([channel.unused for channel in record.channels], np.int64)
    return bool(
        (unused >= 0).all() and (amount[arrives] >= 0).all() and (amount[arrives] < elements).all()
    )


def _damaged(who: str) -> Exception:
    return refused(f"{who}: rows of its tables are missing: expected every row of the run")


def _facts(trace: RecordedRun) -> Record:
    head, links = trace.head, trace.head.shared_links
    flows = tuple((flow.links, flow.channels) for flow in links.flows)
    return Record(
        head.name,
        tuple(trace.unit_names()),
        tuple(RecordedChannel(*row) for row in trace.rows(CHANNELS)),
        *NO_EVENTS,
        trace.cycles,
        clients=tuple(head.off_chip.clients),
        shutdown_cycles=trace.end.shutdown_cycles or 0,
        shares_on_chip=head.hardware.on_chip.capacity_bytes is not None,
        interval_cycles=head.hardware.channel.interval_cycles,
        registers=RegisterDescription(**structs.asdict(head.hardware.registers)),
        shares_links=bool(trace.shared_channels),
        links=RecordedLinks(links.capacities, flows) if flows else None,
    )

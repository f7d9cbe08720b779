"""Makes the record of a run from the rows of its log."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from fabric.timing.engine import log
from fabric.timing.log.transfers import KeptRows
from fabric.timing.machine.machine import cycles_of, shutdown_cycles_of
from fabric.timing.retiming.record import NO_EVENTS, Record, RecordedChannel

if TYPE_CHECKING:
    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.engine.log import Entries
    from fabric.timing.engine.tables import Counters
    from fabric.timing.machine.machine import Machine


class Recording(KeptRows):
    """Keeps the rows of a run for its record."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        sizes = [edge.type.value.size_bytes for edge in plan.edges]
        self._sizes_bytes: Final = [size if isinstance(size, int) else 0 for size in sizes]

    def record(self, machine: Machine) -> Record:
        """Return the record of a completed run, and remove the rows."""
        hardware = machine.plan.program.hardware
        facts = Record(
            machine.plan.program.name,
            tuple(unit.name for unit in machine.units),
            tuple(
                RecordedChannel(**structs.asdict(channel), element_bytes=size)
                for channel, size in zip(machine.channel_facts, self._sizes_bytes, strict=True)
            ),
            *NO_EVENTS,
            cycles_of(machine),
            clients=tuple(machine.plan.clients),
            shutdown_cycles=shutdown_cycles_of(machine),
            shares_on_chip=machine.on_chip.capacity_bytes is not None,
            interval_cycles=hardware.channel.interval_cycles,
            registers=hardware.registers,
            shares_links=machine.plan.shares_links,
        )
        return record_of(self.take(), facts)


def record_of(rows: Entries, facts: Record) -> Record:
    """Return ``facts``, the record of a completed run without events, with the events of ``rows``.

    Raises:
        ValueError: a row is missing.
    """
    channels, units = len(facts.channels), len(facts.units)
    kind, on = rows["operation"], rows["channel"]

    def count(operation: int) -> Counters:
        return np.bincount(on[kind == operation], minlength=channels)

    sends = np.isin(kind, log.SENDS)
    sent, size_bytes = on[sends], rows["amount"][sends]
    elements = np.bincount(sent, minlength=channels)
    largest = np.array([channel.element_bytes for channel in facts.channels], np.int64)
    np.maximum.at(largest, sent, size_bytes)
    unused = count(log.RESERVE) - count(log.PUT)
    counts = zip(facts.channels, elements.tolist(), largest.tolist(), unused.tolist(), strict=True)
    unknown = (kind == log.AT) & (rows["stop"] == log.FROM_UNKNOWN)
    forward = np.array([channel.forward_cycles for channel in facts.channels], np.int64)
    first, events = _events_of(rows, units, forward)
    links = facts.links
    if links is not None:
        sizes_bytes = {
            channel: size_bytes[sent == channel].astype(np.int64)
            for _, channels_of_flow in links.flows
            for channel in channels_of_flow
        }
        links = links._replace(sizes_bytes=sizes_bytes)

    def names(are_rows: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(facts.units[unit] for unit in np.unique(rows["unit"][are_rows]).tolist())

    return replace(
        facts,
        channels=tuple(
            structs.replace(channel, elements=number, element_bytes=size, unused=slots)
            for channel, number, size, slots in counts
        ),
        first=first,
        events=events,
        choosers=names(kind == log.CHOICE),
        shares_off_chip=bool((kind == log.BURST).any()),
        unread=names(unknown),
        links=links,
    )


_BATCH: Final = 1 << 20
"""The least number of rows that become events at a time. Rows of one unit stay together."""


def _events_of(rows: Entries, units: int, forward: Counters) -> tuple[Counters, Counters]:
    """Return ``first`` and ``events`` of ``Record``; ``forward`` has the cycles by channel."""
    order = np.argsort(rows["unit"].astype(np.min_scalar_type(units)), kind="stable")
    ends = np.cumsum(np.bincount(rows["unit"], minlength=units))
    lasts = np.searchsorted(ends, np.arange(_BATCH, len(rows) + _BATCH, _BATCH))
    cuts = [0, *np.unique(ends[np.minimum(lasts, units - 1)]).tolist()]
    parts = [_part(rows[order[cut:end]], units, forward) for cut, end in pairwise(cuts)]
    del rows, order
    counts = sum((count for count, _ in parts), np.zeros(units, np.int64))
    events = np.empty((int(counts.sum()), 2), np.int64)
    end = len(events)
    while parts:
        _, pairs = parts.pop()
        events[end - len(pairs) : end] = pairs
        end -= len(pairs)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), events


def _part(rows: Entries, units: int, forward_cycles: Counters) -> tuple[Counters, Counters]:
    """Return the number of events by unit, and the events of some units."""
    notes = _notes_of(rows)
    late = np.flatnonzero(rows["operation"] == log.LATE)
    allocated = rows["operation"] == log.ALLOCATE
    rows["operation"][allocated], rows["amount"][allocated] = log.BURST, 0
    is_event = (rows["operation"] < log.CHOICE) & (rows["operation"] != log.NOTE)
    is_event[notes] = True
    place = np.cumsum(is_event) - 1
    since, read_cycle = place[late] - place[notes], rows["cycle"][notes]
    late = place[late]
    del place
    rows = rows[is_event]
    unit, kind, waited = rows["unit"], rows["operation"], rows["waited"]
    cycle, amount = rows["cycle"].astype(np.int64), rows["amount"].astype(np.int64)
    on = np.maximum(rows["channel"], 0, dtype=np.int64)
    amount[late] -= read_cycle
    on[late] = since
    bursts = kind == log.BURST
    on[bursts] = amount[bursts]
    work = np.diff(cycle, prepend=0)
    begins = np.flatnonzero(np.diff(unit, prepend=-1))
    work[begins] = cycle[begins]
    work -= waited
    amount[bursts] = waited[bursts]
    idle = kind == log.IDLE
    amount[idle] = cycle[idle] - amount[idle] - forward_cycles[on[idle]]
    amount[kind == log.HEAR] = 0
    own = kind <= log.LAST_WORKED
    amount[own] = work[own]
    work[own] = 0
    on <<= log.SHIFT
    on |= kind
    return _with_work(unit, on, amount, work, units)


def _notes_of(rows: Entries) -> Counters:
    """Return the row of the reading that each LATE counts from; ``rows`` are by unit.

    Raises:
        ValueError: a reading is missing.
    """
    places = np.flatnonzero((rows["operation"] == log.NOTE) | (rows["operation"] == log.LATE))
    places = places[np.lexsort((places, rows["stop"][places], rows["unit"][places]))]
    is_note = rows["operation"][places] == log.NOTE
    latest = np.maximum.accumulate(np.where(is_note, np.arange(len(places)), -1))
    late = np.flatnonzero(~is_note)
    notes = places[latest[late]]
    same = rows[["unit", "stop"]]
    if (latest[late] < 0).any() or (same[notes] != same[places[late]]).any():
        raise ValueError("the log lacks the reading that a requested cycle counts from")
    return notes[np.argsort(places[late])]


def _with_work(
    unit: Counters, code: Counters, amount: Counters, work: Counters, units: int
) -> tuple[Counters, Counters]:
    """Return the number of events by unit, and the events; ``work`` cycles become WORK events."""
    at = np.flatnonzero(work > 0)
    late = np.flatnonzero(code & log.KIND == log.LATE)
    place = np.arange(len(code)) + np.cumsum(work > 0)
    since = late - (code[late] >> log.SHIFT)
    code[late] = (place[late] - place[since]) << log.SHIFT | log.LATE
    counts = np.bincount(unit, minlength=units) + np.bincount(unit[at], minlength=units)
    pairs = np.empty((len(code) + len(at), 2), np.int64)
    pairs[:, 0] = np.insert(code, at, log.WORK)
    pairs[:, 1] = np.insert(amount, at, work[at])
    return counts, pairs

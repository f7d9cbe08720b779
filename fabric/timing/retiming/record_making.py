"""Makes the record of a run from the rows of its log."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs

from fabric.graph.hardware.description import NO_REGISTERS, RegisterDescription
from fabric.timing.engine import log
from fabric.timing.log.transfers import KeptRows
from fabric.timing.machine.machine import cycles_of, shutdown_cycles_of
from fabric.timing.retiming.record import Record, RecordedChannel, RecordedLinks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.engine.log import Entries
    from fabric.timing.engine.tables import Counters
    from fabric.timing.machine.machine import Machine


class About(NamedTuple):
    """Facts of a run, except its events; ``channels`` have no elements.

    Attributes:
        clients: units that the off-chip memory serves.
        shutdown_cycles: from the end of the last client until the memory stops.
        links: None if elements do not wait for links.
    """

    program: str
    units: tuple[str, ...]
    channels: tuple[RecordedChannel, ...]
    cycles: int
    clients: tuple[int, ...]
    shutdown_cycles: int
    shares_on_chip: bool
    interval_cycles: int = 0
    registers: RegisterDescription = NO_REGISTERS
    shares_links: bool = False
    links: RecordedLinks | None = None


class Recording(KeptRows):
    """Keeps the rows of a run for its record."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        sizes = [edge.type.value.size_bytes for edge in plan.edges]
        self._sizes_bytes: Final = [size if isinstance(size, int) else 0 for size in sizes]

    def record(self, machine: Machine) -> Record:
        """Return the record of a completed run, and remove the rows."""
        return record_of(self.take(), _about(machine, self._sizes_bytes))


def _about(machine: Machine, element_bytes: Sequence[int]) -> About:
    channels = tuple(
        RecordedChannel(**structs.asdict(facts), element_bytes=size)
        for facts, size in zip(machine.channel_facts, element_bytes, strict=True)
    )
    return About(
        machine.plan.program.name,
        tuple(unit.name for unit in machine.units),
        channels,
        cycles_of(machine),
        tuple(machine.plan.clients),
        shutdown_cycles_of(machine),
        machine.on_chip.capacity_bytes is not None,
        machine.plan.program.hardware.channel.interval_cycles,
        machine.plan.program.hardware.registers,
        machine.plan.shares_links,
    )


def record_of(rows: Entries, about: About) -> Record:
    """Return the record of a completed run."""
    channels, units = len(about.channels), len(about.units)
    kind, on = rows["operation"], rows["channel"]

    def count(operation: int) -> Counters:
        return np.bincount(on[kind == operation], minlength=channels)

    sends = np.isin(kind, log.SENDS)
    sent, size_bytes = on[sends], rows["amount"][sends]
    elements = np.bincount(sent, minlength=channels)
    largest = np.array([channel.element_bytes for channel in about.channels], np.int64)
    np.maximum.at(largest, sent, size_bytes)
    unused = count(log.RESERVE) - count(log.PUT)
    counts = zip(about.channels, elements.tolist(), largest.tolist(), unused.tolist(), strict=True)
    unknown = (kind == log.AT) & (rows["stop"] == log.FROM_UNKNOWN)
    first, events = _events_of(rows, units, [each.forward_cycles for each in about.channels])
    links = about.links
    if links is not None:
        sizes_bytes = {
            each: size_bytes[sent == each].astype(np.int64)
            for _, members in links.flows
            for each in members
        }
        links = links._replace(sizes_bytes=sizes_bytes)
    return Record(
        about.program,
        about.units,
        tuple(
            structs.replace(channel, elements=number, element_bytes=size, unused=slots)
            for channel, number, size, slots in counts
        ),
        first,
        events,
        about.cycles,
        about.clients,
        about.shutdown_cycles,
        _names(rows["unit"][kind == log.CHOICE], about),
        bool((kind == log.BURST).any()),
        about.shares_on_chip,
        _names(rows["unit"][unknown], about),
        about.interval_cycles,
        about.registers,
        about.shares_links,
        links,
    )


def _names(units: Counters, about: About) -> tuple[str, ...]:
    return tuple(about.units[unit] for unit in np.unique(units).tolist())


_BATCH: Final = 1 << 20
"""The least rows that are made into events at a time; rows of one unit stay together."""


def _events_of(
    rows: Entries, units: int, forward_cycles: Sequence[int]
) -> tuple[Counters, Counters]:
    """Return where the events of each unit begin, and the events; see ``Record``."""
    order = np.argsort(rows["unit"].astype(np.min_scalar_type(units)), kind="stable")
    ends = np.cumsum(np.bincount(rows["unit"], minlength=units))
    lasts = np.searchsorted(ends, np.arange(_BATCH, len(rows) + _BATCH, _BATCH))
    cuts = [0, *np.unique(ends[np.minimum(lasts, units - 1)]).tolist()]
    forward = np.array(forward_cycles, np.int64)
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

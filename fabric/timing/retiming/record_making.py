"""Makes the record of a run from an observer's rows, or from a trace's tables.

Rows of tasks may come in any order. Rows are freed as they are read, since they are most of the
memory of a long run.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from typing_extensions import override

from fabric.graph.values.value import size_bytes
from fabric.timing.log import log_rows as r
from fabric.timing.log.log_rows import KeptRows
from fabric.timing.log.watcher import Watcher
from fabric.timing.machine.machine import clients_of, cycles_of, shutdown_cycles_of
from fabric.timing.retiming import events as e
from fabric.timing.retiming.record import Events, Record, RecordedChannel, RecordedLinks, assembled
from fabric.timing.retiming.unrolling import Unrolled, log_of, sizes_bytes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.graph.values.value import Element
    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.engine.observer import Sent, Stamp, Taken, Transferred, Watched
    from fabric.timing.engine.tables import Counters
    from fabric.timing.engine.unit import Unit
    from fabric.timing.machine.machine import Machine

_ORDER, _CHANNEL, _AMOUNT = map(r.OPERATION_COLUMNS.index, ("order", "channel", "amount"))


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
    shares_links: bool = False
    links: RecordedLinks | None = None


class Recording(Watcher):
    """Observes a run and keeps the rows for its record in memory.

    Events of compiled units come from the journal.
    """

    needs_tasks = False

    def __init__(self, plan: Plan) -> None:
        sizes = [edge.type.value.size_bytes for edge in plan.edges]
        self._static: Final = [size if isinstance(size, int) else 0 for size in sizes]
        self._measured: Final = frozenset(
            number for number, size in enumerate(sizes) if not isinstance(size, int)
        )
        self._largest: list[int] = []
        self._kept: Final = KeptRows()
        super().__init__(self._kept.rows)

    @override
    def begin(self, units: Sequence[Unit], next_order: Callable[[], int]) -> None:
        super().begin(units, next_order)
        self._kept.take()
        self._largest = list(self._static)

    @override
    def watch(self, channel: Watched) -> Transferred | None:
        transferred = super().watch(channel)
        number, largest = channel.number, self._largest
        if number not in self._measured or transferred is None:
            return transferred

        def measured(element: Element, sent: Sent, seen: Stamp, taken: Taken | None) -> None:
            largest[number] = max(largest[number], size_bytes(element[0]))
            transferred(element, sent, seen, taken)

        return measured

    @override
    def left_over(
        self, channel: Watched, element: Element, sent: Sent, seen: Stamp | None, cycle: int
    ) -> None:
        self._measure(channel, element)
        super().left_over(channel, element, sent, seen, cycle)

    @override
    def fetched(self, channel: Watched, element: Element, sent: Sent) -> None:
        self._measure(channel, element)
        super().fetched(channel, element, sent)

    def _measure(self, channel: Watched, element: Element) -> None:
        if channel.number in self._measured:
            largest = self._largest[channel.number]
            self._largest[channel.number] = max(largest, size_bytes(element[0]))

    def record(self, machine: Machine) -> Record:
        """Return the record of a completed run, once."""
        self.finish()
        rows = Rows(*self._kept.take())
        region = machine.region
        journal = None if region is None else region.journal
        about = _about(machine, self._largest)
        if journal is None:
            return record_of(rows, about)
        number = {channel: at for at, channel in enumerate(machine.channels)}
        log = log_of(journal, number)
        sizes_bytes = sizes_bytes_of(journal, log.templates)
        unrolled = Unrolled(log, len(number), sizes_bytes, sorted(self._measured))
        return record_of(rows, about, unrolled)


def record_of(rows: Rows, about: About, unrolled: Unrolled | None = None) -> Record:
    """Return the record of a completed run.

    ``rows`` are of tasks, ``unrolled`` of compiled units.
    """
    producers = np.array([channel.producer for channel in about.channels], np.int64)
    consumers = np.array([channel.consumer for channel in about.channels], np.int64)
    forward = np.array([channel.forward_cycles for channel in about.channels], np.int64)
    counts = rows.counts(len(about.channels))
    largest = np.array([channel.element_bytes for channel in about.channels], np.int64)
    operations, units = rows.operations, len(about.units)
    kinds = operations[:, 0]
    unused = np.bincount(operations[kinds == r.RESERVE, 5], minlength=len(about.channels))
    chose = operations[kinds == r.CHOICE, 1]
    if unrolled is None:
        first, events = assembled([events_of(rows, producers, consumers, forward)], units)
    else:
        its = np.isin(operations[:, 1], unrolled.units)
        bursts = operations[its]
        waits = bursts[np.lexsort((bursts[:, 2], bursts[:, 1])), 4]
        of_tasks = events_of(
            rows._replace(operations=operations[~its]), producers, consumers, forward
        )
        first, events = assembled(chain([of_tasks], unrolled.events(waits)), units)
        counts = np.where(np.isin(producers, unrolled.units), unrolled.sent, counts)
        unused += unrolled.unused
        largest = np.maximum(largest, unrolled.largest)
        chose = np.concatenate([chose, unrolled.chose])
    found = zip(about.channels, counts.tolist(), largest.tolist(), unused.tolist(), strict=True)
    channels = tuple(
        structs.replace(channel, elements=elements, element_bytes=element_bytes, unused=slots)
        for channel, elements, element_bytes, slots in found
    )
    unknown = (kinds == r.LATE) & (operations[:, 4] == r.UNKNOWN)
    return Record(
        about.program,
        about.units,
        channels,
        first,
        events,
        about.cycles,
        about.clients,
        about.shutdown_cycles,
        _units(chose, about),
        bool((kinds == r.BURST).any()),
        about.shares_on_chip,
        _units(operations[unknown, 1], about),
        about.interval_cycles,
        about.shares_links,
        about.links and _carried(about.links, operations[kinds == r.SIZE], counts),
    )


def _carried(links: RecordedLinks, rows: Counters, counts: Counters) -> RecordedLinks:
    """Return ``links`` with the bytes of all elements; ``rows`` has the changes of size."""
    sizes_bytes = {}
    for channel in (each for _, channels in links.flows for each in channels):
        its = rows[rows[:, _CHANNEL] == channel]
        its = its[np.argsort(its[:, _ORDER])]
        count = counts[channel] if len(its) else 0
        places = np.searchsorted(its[:, _ORDER], np.arange(count), side="right") - 1
        sizes_bytes[channel] = its[places, _AMOUNT]
    return links._replace(sizes_bytes=sizes_bytes)


def _units(numbers: Counters, about: About) -> tuple[str, ...]:
    return tuple(about.units[unit] for unit in np.unique(numbers).tolist())


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
        clients_of(machine.plan),
        shutdown_cycles_of(machine),
        machine.on_chip.capacity_bytes is not None,
        machine.plan.program.hardware.channel.interval_cycles,
        machine.plan.shares_links,
    )


_UNIT_SHIFT: Final = 42
"""A key has the unit, the operation number, and the order among equal numbers."""


class Rows(NamedTuple):
    """All rows of a run.

    Attributes:
        transfers: tables of short or of long rows, in any order.
        operations: [operations, columns of operations].
    """

    transfers: list[Counters]
    operations: Counters

    def counts(self, channels: int) -> Counters:
        """Return the number of transfers by channel."""
        found = np.zeros(channels, np.int64)
        for table in self.transfers:
            found += np.bincount(table[:, 0], minlength=channels)
        return found


class _Part(NamedTuple):
    """Events in any order, one array per column.

    Attributes:
        cycle: the unit's clock after the event.
        spent: cycles since the previous event that were not work.
    """

    key: Counters
    code: Counters
    cycle: Counters
    spent: Counters


class _More(NamedTuple):
    """Amounts of some events; ``since`` is the key of a request's reading, else -1."""

    key: Counters
    amount: Counters
    since: Counters


def events_of(rows: Rows, producers: Counters, consumers: Counters, forward: Counters) -> Events:
    """Return the events of tasks, and remove the transfers of ``rows``.

    ``producers`` and ``consumers`` are units by channel, ``forward`` the latency in cycles.
    """
    parts, more = _of_operations(rows.operations, forward)
    while rows.transfers:
        parts += _of_transfers(rows.transfers.pop(), producers, consumers)
    key, code, cycle, spent = _sorted(parts)
    amount, since = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64)
    places = np.searchsorted(key, more.key)
    amount[places] = more.amount
    late = more.since >= 0
    since[places[late]] = np.searchsorted(key, more.since[late])
    # The clock at a request is the clock before the wait for a slot, which the next event has.
    asked = np.flatnonzero(np.isin(code & e.KIND, (e.LATE, e.AT)))
    cycle[asked] = cycle[asked + 1] - spent[asked + 1]
    unit = key >> _UNIT_SHIFT
    work = np.diff(cycle, prepend=0)
    begins = np.flatnonzero(np.diff(unit, prepend=-1))
    work[begins] = cycle[begins]
    work -= spent
    return Events(unit, code, work, amount, since)


def _key(unit: Counters, order: Counters, rank: int) -> Counters:
    return unit << _UNIT_SHIFT | order << 1 | rank


def _sorted(parts: list[_Part]) -> _Part:
    columns = [[part[number] for part in parts] for number in range(len(_Part._fields))]
    parts.clear()
    key = np.concatenate(columns[0])
    columns[0].clear()
    # The rows of each unit are nearly in order, and a stable sort is fast on them.
    sequence = np.argsort(key, kind="stable")
    found = [key[sequence]]
    del key
    for column in columns[1:]:
        whole = np.concatenate(column)
        column.clear()
        found.append(whole[sequence])
    return _Part(*found)


def _of_transfers(table: Counters, producers: Counters, consumers: Counters) -> list[_Part]:
    is_short = table.shape[1] == len(r.SHORT_COLUMNS)
    names = r.SHORT_COLUMNS if is_short else r.LONG_COLUMNS
    column = {name: np.ascontiguousarray(its) for name, its in zip(names, table.T, strict=True)}
    channel = column["channel"]
    sender, receiver = producers[channel], consumers[channel]

    def part(
        kind: int, which: NDArray[np.bool_], unit: Counters, what: str, wait: str = ""
    ) -> _Part:
        cycle = column[f"{what}_cycle"][which]
        return _Part(
            _key(unit[which], column[f"{what}_order"][which], 1),
            channel[which] << e.SHIFT | kind,
            cycle,
            column[wait][which] if wait else np.zeros(len(cycle), np.int64),
        )

    sent, taken = column["sent_order"] >= 0, column["taken_order"] >= 0
    if is_short:
        return [
            part(e.SEND, sent, sender, "sent", "send_wait_cycles"),
            part(e.TAKE, taken, receiver, "taken", "receive_wait_cycles"),
        ]
    at_once = column["reserved_order"] == column["sent_order"]
    takes_at_once = column["seen_order"] == column["taken_order"]
    hears = taken & takes_at_once & (column["taken_cycle"] < column["seen_cycle"])
    seen = (column["seen_order"] >= 0) & ~takes_at_once
    return [
        part(e.SEND, sent & at_once, sender, "sent", "send_wait_cycles"),
        part(e.RESERVE, sent & ~at_once, sender, "reserved", "send_wait_cycles"),
        part(e.PUT, sent & ~at_once, sender, "sent"),
        part(e.HEAR, hears, receiver, "seen"),
        part(e.TAKE, taken & takes_at_once & ~hears, receiver, "taken", "receive_wait_cycles"),
        part(e.SEE, seen, receiver, "seen", "receive_wait_cycles"),
        part(e.TAKE, taken & ~takes_at_once, receiver, "taken"),
    ]


def _of_operations(table: Counters, forward: Counters) -> tuple[list[_Part], _More]:
    column = dict(zip(r.OPERATION_COLUMNS, table.T, strict=True))
    operation, unit, order, cycle, wait, channel, amount = (
        column[name] for name in r.OPERATION_COLUMNS
    )
    parts: list[_Part] = []
    more: list[_More] = []
    nothing = np.zeros(len(table), np.int64)

    def add(
        kind: int,
        its: NDArray[np.bool_] | Counters,
        amounts: Counters,
        *,
        spent: Counters = wait,
        numbers: Counters = order,
        since: Counters | None = None,
        rank: int = 1,
    ) -> None:
        keys = _key(unit[its], numbers[its], rank)
        # Events without a channel have the number 0.
        on = np.zeros(len(keys), np.int64) if rank == 0 else np.maximum(channel[its], 0)
        code = on << e.SHIFT | kind
        parts.append(_Part(keys, code, cycle[its], spent[its]))
        counted = np.full(len(keys), -1) if since is None else since[its]
        more.append(_More(keys, amounts[its], counted))

    add(e.WAIT, operation == r.BURST, wait)
    add(e.WAIT, operation == r.ALLOCATE, wait)
    add(e.END, operation == r.END, nothing)
    add(e.RESERVE, operation == r.RESERVE, nothing)
    add(e.FINISH, operation == r.FINISH, nothing)
    add(e.ARRIVAL, operation == r.ARRIVAL, amount, spent=nothing)
    add(e.UNTIL, operation == r.UNTIL, amount)
    # The amount is when the element set out that was waited for.
    add(e.IDLE, operation == r.IDLE, cycle - amount - forward[np.maximum(channel, 0)])
    is_late = operation == r.LATE
    read = is_late & (wait >= 0)
    readings = np.where(read, _key(unit, np.maximum(wait, 0), 0), -1)
    add(e.LATE, read, amount, spent=nothing, since=readings, rank=0)
    add(e.AT, is_late & ~read, amount, spent=nothing, rank=0)
    _, once = np.unique(wait[read], return_index=True)
    add(e.NOTE, np.flatnonzero(read)[once], nothing, spent=nothing, numbers=wait, rank=0)
    return parts, _More(*map(np.concatenate, zip(*more, strict=True)))

"""Make the record of a run: from what an observer has kept of it, or from a trace's tables."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from typing_extensions import override

from fabric.log import rows as r
from fabric.log.kept import KeptRows
from fabric.log.watcher import Watcher
from fabric.machine.state_of import clients_of, cycles_of, shutdown_cycles_of
from fabric.retiming.assembling import assembled
from fabric.retiming.of_tasks import Rows, events_of
from fabric.retiming.record import Record, RecordedChannel, RecordedLinks
from fabric.retiming.unrolling import Unrolled, log_of, sizes_bytes_of
from fabric.values.sizes import size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.engine.machine_code import Counters
    from fabric.engine.observer import Sent, Stamp, Taken, Transferred, Watched
    from fabric.engine.unit import Unit
    from fabric.machine.machine import Machine
    from fabric.values.value import Element
    from fabric.wiring.elaborate import Plan

__all__ = ["About", "Recording", "record_of"]

_ORDER, _CHANNEL, _AMOUNT = map(r.OPERATION_COLUMNS.index, ("order", "channel", "amount"))


class About(NamedTuple):
    """What a record says of a run besides its events.

    Attributes:
        program: its name.
        units: their names.
        channels: with no elements as yet.
        cycles: of the run.
        clients: units that the off-chip memory serves.
        shutdown_cycles: it stops so long after the last of them.
        shares_on_chip: there is only so much room on chip.
        interval_cycles: of all channels; see ``fabric.engine.channel_rule``.
        shares_links: what is sent may wait for links that others use, too.
        links: these links, where elements of the record are to be carried by them.
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
    """Watches a run and keeps what its record needs, in memory.

    Units that have no task of their own are not told of: the record has them from the journal.
    """

    needs_tasks = False

    def __init__(self, plan: Plan) -> None:
        """Have seen nothing of a run of ``plan``."""
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
        """Return the record of a run on ``machine`` that has completed; it is asked for once.

        No operator has left the machine's region: then half of it would be told, half written.
        """
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
    """Return the record of a run that completed.

    Args:
        rows: of all units that were tasks.
        about: the run.
        unrolled: what the others did.
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
    columns = list(zip(*about.channels, strict=True))[:-3]
    found = (*columns, counts.tolist(), largest.tolist(), unused.tolist())
    channels = tuple(map(RecordedChannel._make, zip(*found, strict=True)))
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
    """Return ``links`` with the bytes of all elements, of which ``rows`` say where they change."""
    sizes_bytes = {}
    for channel in (each for _, channels in links.flows for each in channels):
        its = rows[rows[:, _CHANNEL] == channel]
        its = its[np.argsort(its[:, _ORDER])]
        count = counts[channel] if len(its) else 0
        places = np.searchsorted(its[:, _ORDER], np.arange(count), side="right") - 1
        sizes_bytes[channel] = its[places, _AMOUNT]
    return links._replace(sizes_bytes=sizes_bytes)


def _units(numbers: Counters, about: About) -> tuple[str, ...]:
    """Return the names of some units, in node order."""
    return tuple(about.units[unit] for unit in np.unique(numbers).tolist())


def _about(machine: Machine, element_bytes: Sequence[int]) -> About:
    fixed = machine.fixed
    channels = tuple(
        RecordedChannel(
            its.option,
            its.name,
            its.producer,
            its.consumer,
            channel.depth,
            channel.forward_cycles,
            channel.backward_cycles,
            0,
            element_bytes[its.number],
        )
        for its, channel in zip(fixed.channels, machine.channels, strict=True)
    )
    return About(
        machine.plan.program.name,
        tuple(unit.name for unit in fixed.units),
        channels,
        cycles_of(machine),
        clients_of(machine.plan),
        shutdown_cycles_of(machine),
        machine.on_chip.capacity_bytes is not None,
        machine.plan.program.hardware.channel.interval_cycles,
        machine.plan.shares_links,
    )

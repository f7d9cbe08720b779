"""Make the record of a run: from what an observer has kept of it, or from a trace's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from typing_extensions import override

from fabric.machine.state_of import cycles_of
from fabric.retiming import rows as r
from fabric.retiming.assembling import Rows, assembled
from fabric.retiming.record import Record, RecordedChannel
from fabric.retiming.watcher import Watcher
from fabric.values.value import BufferReference, Empty, Selector, Tile, items_of

if TYPE_CHECKING:
    from fabric.engine.machine_code import Counters
    from fabric.engine.observer import Sent, Stamp, Taken, Transferred, Watched
    from fabric.machine.machine import Machine
    from fabric.retiming.rows import Packed
    from fabric.values.value import Element, Value
    from fabric.wiring.elaborate import Plan

__all__ = ["About", "Recording", "record_of"]


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
    """

    program: str
    units: tuple[str, ...]
    channels: tuple[RecordedChannel, ...]
    cycles: int
    clients: tuple[int, ...]
    shutdown_cycles: int
    shares_on_chip: bool


class Recording(Watcher):
    """Watches a run and keeps what its record needs, in memory."""

    def __init__(self, plan: Plan) -> None:
        """Have seen nothing of a run of ``plan``."""
        self._plan: Final = plan
        self._largest: Final[dict[int, int]] = {}
        self._short: Final[list[Counters]] = []
        self._long: Final[list[Counters]] = []
        self._operations: Final[list[Counters]] = []
        self._kept: Final = r.Rows(self._empty)
        super().__init__(self._kept)

    @override
    def watch(self, channel: Watched) -> Transferred | None:
        transferred = super().watch(channel)
        number, largest = channel.number, self._largest
        size_bytes = self._plan.edges[number].type.value.size_bytes
        largest[number] = size_bytes if isinstance(size_bytes, int) else 0
        if isinstance(size_bytes, int) or transferred is None:
            return transferred

        def measured(element: Element, sent: Sent, seen: Stamp, taken: Taken | None) -> None:
            largest[number] = max(largest[number], _size_bytes(element[0]))
            transferred(element, sent, seen, taken)

        return measured

    def record(self, machine: Machine) -> Record:
        """Return the record of a run on ``machine`` that has completed; it is asked for once."""
        self.finish()
        self._empty()
        short = np.concatenate(self._short)
        at_once = short[:, [6, 7, 3, 4]]
        whole = np.column_stack([short, np.full(len(short), -1), at_once])
        transfers = np.concatenate([*self._long, whole])
        rows = Rows(transfers, np.concatenate(self._operations))
        return record_of(rows, _about(machine, self._largest))

    def _empty(self) -> None:
        kept = self._kept
        for packed, tables in ((kept.short, self._short), (kept.long, self._long)):
            tables.append(_table(packed))
            packed.offset = 0
        operations = np.array(kept.operations, np.int64)
        self._operations.append(operations.reshape(-1, len(r.OPERATION_COLUMNS)))
        kept.operations.clear()


def record_of(rows: Rows, about: About) -> Record:
    """Return the record of a run that completed; ``rows`` are all of it."""
    size = len(about.channels)
    counts = np.bincount(rows.transfers[:, 0], minlength=size)
    left = rows.operations[rows.operations[:, 0] == r.RESERVE]
    unused = np.bincount(left[:, 5], minlength=size)
    channels = tuple(
        channel._replace(elements=count, unused=never)
        for channel, count, never in zip(
            about.channels, counts.tolist(), unused.tolist(), strict=True
        )
    )
    operations, kinds = rows.operations, rows.operations[:, 0]
    first, events = assembled(
        rows,
        [channel.producer for channel in channels],
        [channel.consumer for channel in channels],
        [channel.forward_cycles for channel in channels],
        len(about.units),
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
        _units(operations[kinds == r.CHOICE], about),
        bool((kinds == r.BURST).any()),
        about.shares_on_chip,
        _units(operations[unknown], about),
    )


def _units(operations: Counters, about: About) -> tuple[str, ...]:
    """Return the names of the units of some operations, in node order."""
    return tuple(about.units[unit] for unit in np.unique(operations[:, 1]).tolist())


def _table(packed: Packed) -> Counters:
    table = np.frombuffer(packed.buffer[: packed.offset], np.int64)
    return table.reshape(-1, len(packed.columns)).copy()


def _size_bytes(value: Value) -> int:
    if isinstance(value, Tile | Selector):
        return value.size_bytes
    if isinstance(value, BufferReference):
        return sum(_size_bytes(element[0]) for element in value.elements)
    if isinstance(value, bool | Empty):
        return int(isinstance(value, bool))
    return sum(map(_size_bytes, items_of(value)))


def _about(machine: Machine, element_bytes: Mapping[int, int]) -> About:
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
    clients = tuple(node.index for node in machine.plan.nodes if node.operator.off_chip is not None)
    off_chip, shutdown_cycles = machine.off_chip, 0
    if off_chip is not None and off_chip.final_cycle is not None:
        last = max(machine.units[client].now for client in clients)
        shutdown_cycles = off_chip.final_cycle - last
    return About(
        machine.plan.program.name,
        tuple(unit.name for unit in fixed.units),
        channels,
        cycles_of(machine),
        clients,
        shutdown_cycles,
        machine.on_chip.capacity_bytes is not None,
    )

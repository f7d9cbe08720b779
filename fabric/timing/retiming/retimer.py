"""Times a record under other depths, and counts the waits for its channels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fabric.timing.engine import log as e
from fabric.timing.engine.tables import Table, cells_of
from fabric.timing.network.links import NO_LINKS, Links
from fabric.timing.retiming import timing_loop as loop
from fabric.timing.retiming.timing_loop import TimedChannel

if TYPE_CHECKING:
    from fabric.timing.engine.machine_code import Loop
    from fabric.timing.engine.tables import Counters
    from fabric.timing.network.fair_share import LinkWorld
    from fabric.timing.retiming.record import Record, RecordedLinks

NO_LIMIT: Final = 1 << 61
"""Later than any cycle of a run."""


class Blocked(NamedTuple):
    """A unit that can never continue.

    Attributes:
        full: whether it waits for a slot; else for an element or the end.
    """

    unit: int
    channel: int
    full: bool


class Retimed(NamedTuple):
    """Timing of a record under some depths.

    Attributes:
        cycles: None if units block each other, or if a clock passed the limit.
        passed: the event that passed the limit, if any.
    """

    cycles: int | None
    blocked: tuple[Blocked, ...] = ()
    passed: int | None = None


class Retimer:
    """Times one record under depths, and keeps the stamps of the last timing.

    Attributes:
        base: by channel, its first slot. The last entry is the number of slots.
        issued: by slot, when it was reserved or its element was sent.
        visible: by slot, when its element was visible.
        usable: by slot, when its credit was usable again; NO_LIMIT if it never had an element.
        clocks: the unit's clock after each event.
    """

    def __init__(self, record: Record) -> None:
        self.record: Final = record
        channels = record.channels
        self.base: Final = record.base
        size = max(1, int(self.base[-1]))
        self.issued: Final = np.zeros(size, np.int64)
        self.visible: Final = np.zeros(size, np.int64)
        self.usable: Final = np.full(size, NO_LIMIT)
        self.clocks: Final = np.zeros(max(1, len(record.events)), np.int64)
        units = Table.zeros(loop.TimedUnit, len(record.units))
        units.rows["awaits"] = units.rows["arrived"] = units.rows["requested"] = e.NONE
        units.rows["pc"], units.rows["last"] = record.first[:-1], record.first[1:]
        timed = Table.zeros(TimedChannel, len(channels))
        timed.rows["closed"] = timed.rows["drained"] = timed.rows["flow"] = e.NONE
        timed.rows["forward"] = [channel.forward_cycles for channel in channels]
        timed.rows["backward"] = [channel.backward_cycles for channel in channels]
        timed.rows["interval"] = record.interval_cycles
        timed.rows["wait"] = record.registers.wait_cycles
        timed.rows["end"] = record.registers.end_cycles
        timed.rows["base"] = self.base[:-1]
        timed.rows["producer"] = [channel.producer for channel in channels]
        timed.rows["consumer"] = [channel.consumer for channel in channels]
        nothing = np.zeros(0, np.int64)
        sizes, ends, links = nothing, nothing, NO_LINKS
        if record.links is not None:
            sizes, ends, links = _shared(record, record.links, timed)
        outputs, first_output = _grouped(timed.rows["producer"], len(record.units))
        inputs, first_input = _grouped(timed.rows["consumer"], len(record.units))
        self._world: Final = loop.Timing(
            events=Table(loop.Event, record.events), units=units, channels=timed,
            outputs=outputs, first_output=first_output, inputs=inputs, first_input=first_input,
            issued=self.issued, visible=self.visible, usable=self.usable, clocks=self.clocks,
            ready=np.zeros(len(record.units) + 1, np.int64), sizes=sizes, ends=ends, links=links,
        )  # fmt: skip
        self._initial: Final = [(cells, cells.copy()) for cells in cells_of((units, timed, links))]
        self._retime: Final = loop.retime.over(self._world)

    def time(self, depths: Counters | Sequence[int], limit: int = NO_LIMIT) -> Retimed:
        """Time the record under ``depths``, at least 1 each, in edge order, up to ``limit``."""
        for cells, initial in self._initial:
            np.copyto(cells, initial)
        self._world.channels.rows["depth"] = depths
        count = len(self.record.units)
        # The first unit is on top of the stack.
        self._world.ready[:count] = np.arange(count - 1, -1, -1)
        live, passed = self._retime(count, limit)
        if passed >= 0:
            return Retimed(None, passed=passed)
        if live:
            return Retimed(None, blocked=tuple(self._blocked()))
        cycles = int(self._ends().max())
        return Retimed(cycles if cycles <= limit else None)

    def blamed(self, retimed: Retimed) -> frozenset[int]:
        """Return channels, of which at least one has to be deeper to change the last outcome.

        If units block each other, these are the full channels of a loop. Otherwise they are the
        channels with slots that the critical path waited for, up to the limit or the last cycle.
        Without such channels, no depths change the outcome. The record must have no shared links.
        """
        assert self.record.links is None
        if retimed.blocked:
            return frozenset(wait.channel for wait in self.loop_of(retimed.blocked) if wait.full)
        record = self.record
        pc = retimed.passed
        if pc is None:
            pc = int(record.first[int(self._ends().argmax()) + 1]) - 1
        self._timed_record.blamed[:] = 0
        self._blame(pc, int(record.unit_of[pc]))
        return frozenset(np.flatnonzero(self._timed_record.blamed).tolist())

    def loop_of(self, blocked: Iterable[Blocked]) -> tuple[Blocked, ...]:
        """Return the units of a loop, in which each waits for the next."""
        awaits = {wait.unit: wait for wait in blocked}
        visited: set[int] = set()
        for start in awaits:
            path: list[int] = []
            unit = start
            while unit in awaits and unit not in visited:
                visited.add(unit)
                path.append(unit)
                wait = awaits[unit]
                channel = self.record.channels[wait.channel]
                unit = channel.consumer if wait.full else channel.producer
            if unit in path:
                return tuple(awaits[number] for number in path[path.index(unit) :])
        return ()

    def _ends(self) -> Counters:
        """Return the last clock of each unit; clients of the memory add the shutdown cycles."""
        ends: Counters = self._world.units.rows["now"].copy()
        ends[[*self.record.clients]] += self.record.shutdown_cycles
        return ends

    @cached_property
    def _timed_record(self) -> loop.TimedRecord:
        record = self.record
        finishes = np.flatnonzero((record.events[:, 0] & e.KIND) == e.FINISH)
        finish = np.full(len(record.units), e.NONE)
        finish[record.unit_of[finishes]] = finishes
        return loop.TimedRecord(
            timing=self._world, first=record.first, element=record.element_of,
            put=record.places(e.SEND, e.PUT), taken=record.places(e.TAKE, e.HEAR),
            finish=finish, blamed=np.zeros(len(record.channels), np.int64),
        )  # fmt: skip

    @cached_property
    def _blame(self) -> Loop:
        return loop.blame.over(self._timed_record)

    def _blocked(self) -> list[Blocked]:
        blocked = []
        for number in np.flatnonzero(self._world.units.rows["awaits"] >= 0).tolist():
            unit = self._world.units[number]
            kind = self._world.events[unit.pc].code & e.KIND
            blocked.append(Blocked(number, unit.awaits, kind in (e.SEND, e.RESERVE)))
        return blocked


def _shared(
    record: Record, shared: RecordedLinks, timed: Table[TimedChannel]
) -> tuple[Counters, Counters, LinkWorld]:
    """Connect channels to flows; return bytes by slot, the channels of flows, and idle links."""
    sizes = np.zeros(max(1, int(record.base[-1])), np.int64)
    for channel, sizes_bytes in shared.sizes_bytes.items():
        begin, end = record.base[channel], record.base[channel + 1]
        count = min(len(sizes_bytes), int(end - begin))
        sizes[begin : begin + count] = sizes_bytes[:count]
        # Elements that were not sent before the run stopped count as large as the last one.
        sizes[begin + count : end] = sizes_bytes[-1] if len(sizes_bytes) else 0
    links = Links(shared.capacities, [links for links, _ in shared.flows])
    most = []
    for flow, (_, channels) in enumerate(shared.flows):
        timed.rows["flow"][list(channels)] = flow
        links.world.flows[flow].ends = len(channels)
        slots = max(int(np.diff(record.base)[list(channels)].max()), 1)
        most.append(1 << (slots - 1).bit_length())
    links.reserve(np.array(most))
    starts = np.cumsum([len(shared.flows) + 1, *(len(channels) for _, channels in shared.flows)])
    numbers = [channel for _, channels in shared.flows for channel in channels]
    return sizes, np.array([*starts.tolist(), *numbers], np.int64), links.world


def _grouped(unit_of: Counters, units: int) -> tuple[Counters, Counters]:
    """Return the channels grouped by unit, and the first place of each unit."""
    ordered = np.argsort(unit_of, kind="stable")
    first = np.searchsorted(unit_of[ordered], np.arange(units + 1))
    return ordered.astype(np.int64), first.astype(np.int64)


class Waits(NamedTuple):
    """Waits of a completed record.

    Attributes:
        ends: by unit, its final clock.
        empty: by channel, cycles its consumer waited for an element or the end.
        full: by channel, cycles its producer waited for a slot.
    """

    ends: Counters
    empty: Counters
    full: Counters


def waits_of(retimer: Retimer) -> Waits:
    """Return the waits of the last timing, which must have completed."""
    record, clocks = retimer.record, retimer.clocks
    code, amount = record.events.T
    before = np.append(0, clocks[:-1])[: len(code)]
    # Every unit has an event: its end.
    before[record.first[:-1]] = 0
    kind, channel = code & e.KIND, code >> e.SHIFT
    worked = np.where(kind == e.IDLE, 0, amount)
    waited = clocks[: len(code)] - before - worked

    def of(*kinds: int) -> Counters:
        matching = np.isin(kind, kinds)
        cycles = np.bincount(channel[matching], waited[matching], len(record.channels))
        return cycles.astype(np.int64)

    ends: Counters = clocks[record.first[1:] - 1].copy()
    return Waits(ends, of(e.SEE, e.TAKE, e.HEAR, e.END, e.IDLE), of(e.SEND, e.RESERVE))

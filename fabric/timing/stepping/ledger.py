"""The log of a held run, and its state at the held cycle.

Units run ahead in their own time; stamps decide which events belong to a cycle. As in the state of
a recorded run (``fabric.timing.log.tally``), all events with stamps up to the cycle have happened.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from typing_extensions import override

from fabric.messages.causes import WAITS, Cause, Operation
from fabric.timing.engine import log
from fabric.timing.engine.channel_rule import visible_from
from fabric.timing.engine.observer import Observer, Watched
from fabric.timing.log.tally import Tally, UnitEnd, wait_state, waits_of
from fabric.timing.log.transfers import KeptRows, Transfers
from fabric.timing.state.run_state import OnChipState, RunState, WaitState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.graph.values.value import Element
    from fabric.timing.engine.observer import Sent, Stamp, Transferred
    from fabric.timing.engine.unit import Unit, Wait
    from fabric.timing.machine.machine import Machine


class Held(NamedTuple):
    """An element that was sent and not dequeued.

    Attributes:
        number: in its stream, from 0, bare stops included.
        value: ``Empty`` for a bare stop.
        stop: level of its stop; 0 for none.
        visible_cycle: None while it is on shared links, which may still be delayed.
    """

    number: int
    value: object
    stop: int
    sent_cycle: int
    visible_cycle: int | None


class Ledger(Observer, KeptRows):
    """Keeps the rows and the dequeued elements of a run until they are counted.

    Attributes:
        cycle: events up to this cycle are counted; it only increases.
    """

    machine: Machine

    def __init__(self) -> None:
        super().__init__()
        self.cycle = 0

    @override
    def begin(self, units: Sequence[Unit], next_order: Callable[[], int]) -> None:
        self.requests = 0
        self._dequeued: list[deque[tuple[Element, Sent]]] = []

    @override
    def watch(self, channel: Watched) -> Transferred:
        dequeued: deque[tuple[Element, Sent]] = deque()
        self._dequeued.append(dequeued)
        return lambda element, sent, *_: dequeued.append((element, sent))

    @override
    def left_over(
        self, channel: Watched, element: Element, sent: Sent, seen: Stamp | None, cycle: int
    ) -> None:
        self._dequeued[channel.number].append((element, sent))

    def open(self, machine: Machine) -> None:
        self.machine = machine
        self._number: dict[object, int] = {
            channel: number for number, channel in enumerate(machine.channels)
        }
        shared = {self._number[channel] for channel in machine.channels if channel.way is not None}
        self._tally = Tally(machine.unit_facts, machine.channel_facts, shared)
        # For a channel with n slots: the last n counted elements, and all later ones.
        self._transfers = Transfers(len(machine.channels))
        self._entries = self.take()

    def go_to(self, cycle: int) -> None:
        """Count all events up to ``cycle``, before which nothing more can happen."""
        self.cycle = cycle
        self.count(cycle)

    def count(self, cycle: int) -> None:
        """Count all events up to ``cycle``, which may be later than ``self.cycle``."""
        self._take()
        rows, entries = self._transfers.rows, self._entries
        before = self._tally.counts.rows["next"].copy()
        taken = (rows["taken_cycle"] >= 0) & (rows["taken_cycle"] <= cycle)
        ended = entries["cycle"] <= cycle
        self._tally.count(rows[taken], waits_of(entries[ended]), cycle)
        bursts = ended & (entries["operation"] == log.BURST)
        self.requests += int(entries["amount"][bursts].sum())
        self._entries = entries[~ended]
        after = self._tally.counts.rows["next"]
        counted = after - before
        for number in np.flatnonzero(counted).tolist():
            dequeued = self._dequeued[number]
            for _ in range(counted[number]):
                dequeued.popleft()
        slots = np.array([channel.depth for channel in self.machine.channels], np.int64)
        self._transfers.rows = rows[rows["element"] >= (after - slots)[rows["channel"]]]

    def _counted(self, more: list[tuple[int, ...]]) -> tuple[Tally, dict[int, np.void]]:
        """Return the totals at the cycle, and the open waits.

        ``more`` are waits that no row reports, each a ``WaitRow``.
        """
        self._take()
        tally, waits = self._tally.copy(), waits_of(self._entries)
        waits = np.concatenate([waits, np.array(more, waits.dtype)])
        return tally, tally.count(self._transfers.rows, waits, self.cycle)

    def held(self, number: int) -> list[Held]:
        """Return the elements that channel ``number`` held at the cycle, oldest first."""
        channel = self.machine.channels[number]
        assert isinstance(channel.log, Watched)
        sent = [*self._dequeued[number], *(element[:2] for element in channel.log.held)]
        first = self._tally.counts[number].next
        held = []
        for place, ((value, stop), stamps) in enumerate(sent):
            if stamps[1] > self.cycle:
                break
            requested_cycle = stamps[3] if len(stamps) > 3 else -1
            visible = visible_from(stamps[1], channel.forward_cycles, requested_cycle)
            arrived = place < len(sent) - channel.under_way
            held.append(Held(first + place, value, stop, stamps[1], visible if arrived else None))
        return held

    def sent_cycle(self, channel: int, values: int) -> int | None:
        """Return when value number ``values``, from 1, was sent, if it was."""
        later = values - self._tally.counts[channel].taken_values
        return self._cycle_of("sent_cycle", channel, later)

    def taken_cycle(self, channel: int, values: int) -> int | None:
        """Return when value number ``values``, from 1, was dequeued by the operator, if it was."""
        counts = self._tally.counts[channel]
        later = values - (counts.taken_values - counts.left_over)
        return self._cycle_of("taken_cycle", channel, later)

    def _cycle_of(self, column: str, channel: int, value: int) -> int | None:
        """Return the cycle of the value ``value`` places after the counted ones."""
        self._take()
        rows = self._transfers.rows
        rows = rows[(rows["channel"] == channel) & (rows["stop"] >= 0)]
        rows = rows[rows["element"] >= self._tally.counts[channel].next]
        if column == "taken_cycle":
            rows = rows[(rows[column] >= 0) & (rows["dropped"] == 0)]
        return int(rows[column][value - 1]) if 0 < value <= len(rows) else None

    def next_cycle(self) -> int | None:
        """Return the next known cycle of a send, a dequeue or an answer of off-chip memory."""
        self._take()
        rows, entries = self._transfers.rows, self._entries
        bursts = entries["cycle"][entries["operation"] == log.BURST]
        cycles = np.concatenate([rows["sent_cycle"], rows["taken_cycle"], bursts])
        later = cycles[cycles > self.cycle]
        return int(later.min()) if later.size else None

    def _take(self) -> None:
        entries = self.take()
        self._transfers.add(entries)
        self._entries = np.concatenate([self._entries, entries])

    def state_in_flight(self) -> RunState:
        """Return the state at the cycle; units may have run ahead of the cycle.

        A working unit's clock is the cycle; a waiting unit's clock is the start of its wait, which
        counts once it is over. A unit that merges streams waits for all open ones. Before the end,
        holders of on-chip room, FLOPs of units and HBM counters are unknown.
        """
        machine, cycle = self.machine, self.cycle
        waits: dict[int, WaitState] = {}
        seen: list[tuple[int, ...]] = []
        parked = [unit for unit in machine.units if unit.wait is not None and unit.now <= cycle]
        for unit in parked:
            if unit.drains:
                self._drain(unit, waits, seen)
        tally, under_way = self._counted(seen)
        for unit in parked:
            if unit.wait is not None and not unit.drains:
                waits[unit.index] = self._wait(unit, unit.wait, tally)
        for number, row in under_way.items():
            wait = wait_state(row)
            if row["chose"]:
                channels = self._open_inputs(number, tally)
                wait = wait._replace(channels=channels, any_of=len(channels) > 1)
            waits[number] = wait
        on_chip = machine.on_chip
        return RunState(
            program=machine.plan.program.name,
            cycles=cycle,
            units=tally.units(waits, self._ends(waits), cycle),
            channels=tally.channels(self._closed(), {}),
            on_chip=OnChipState(
                on_chip.capacity_bytes,
                tuple((unit.index, size) for unit, size in on_chip.requests if unit.now <= cycle),
                () if on_chip.capacity_bytes is None else None,
                on_chip.pages,
            ),
            hbm_bytes_moved=self.requests * machine.plan.program.hardware.hbm.request_bytes,
            # The memory has served later requests, too.
            hbm=None,
        )

    def _ends(self, waits: dict[int, WaitState]) -> dict[int, UnitEnd]:
        return {
            unit.index: UnitEnd(unit.now, finished=True, busy_cycles=None, flops=unit.flops)
            for unit in self.machine.units
            if unit.finished and unit.now <= self.cycle and unit.index not in waits
        }

    def _closed(self) -> dict[int, int]:
        return {
            number: channel.closed_cycle
            for number, channel in enumerate(self.machine.channels)
            if channel.closed_cycle is not None and channel.closed_cycle <= self.cycle
        }

    def _wait(self, unit: Unit, wait: Wait, tally: Tally) -> WaitState:
        operation = wait.operation
        channels = tuple(self._number[channel] for channel in wait.channels)
        if channels and wait.any_of:
            operation, channels = Operation.RECEIVE, self._open_inputs(unit.index, tally)
        return WaitState(operation, channels, unit.now, len(channels) > 1, wait.stops)

    def _drain(self, unit: Unit, waits: dict[int, WaitState], seen: list[tuple[int, ...]]) -> None:
        """Let an ended ``unit`` see the ends of its inputs in turn."""
        now = unit.now
        for source in self.machine.ports[unit.index].inputs:
            number, closed_cycle = self._number[source], source.closed_cycle
            if closed_cycle is None or closed_cycle > self.cycle:
                waits[unit.index] = WaitState(
                    Operation.RECEIVE, (number,), now, any_of=False, stops=None
                )
                return
            if closed_cycle > now and not source.ended:
                waited = closed_cycle - now
                seen.append((unit.index, WAITS.index(Cause.EMPTY), number, closed_cycle, waited, 0))
                now = closed_cycle

    def _open_inputs(self, unit: int, tally: Tally) -> tuple[int, ...]:
        closed = self._closed()
        numbers = (self._number[source] for source in self.machine.ports[unit].inputs)
        return tuple(
            number for number in numbers if number not in closed or tally.counts[number].held
        )

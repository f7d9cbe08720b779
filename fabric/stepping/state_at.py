"""The state of a run that is held in a cycle.

It is defined as that of a recorded run (``fabric.trace.reading.state_in``): all that bears a stamp
up to the cycle has happened, and nothing later, however far units have run ahead.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from fabric.engine.channel_rule import credit_part
from fabric.state.run_state import ChannelState, OnChipState, RunState, UnitState, WaitState
from fabric.stepping.ledger import Waited
from fabric.telling.causes import OPERATIONS, WAITS, Cause, Operation
from fabric.values.value import Empty

if TYPE_CHECKING:
    from fabric.engine.channel import Channel
    from fabric.engine.unit import Unit, Wait
    from fabric.machine.fixed import FixedChannel, FixedUnit
    from fabric.machine.machine import Machine
    from fabric.stepping.carried import Carried
    from fabric.stepping.ledger import Ledger

__all__ = ["state_at"]


def state_at(ledger: Ledger, machine: Machine, cycle: int) -> RunState:
    """Return the state in ``cycle``: the one that ``ledger`` has gone to.

    A unit that works has come to ``cycle``; one that waits stands where it began to, and the wait
    counts once it is over. What is to come is not known: a unit that takes what comes first, of
    several streams, waits for all that are open; who holds room on chip is not known in between,
    nor what a unit has computed before it has ended, nor what the HBM has counted.
    """
    return _Moment(ledger, machine, cycle).state()


class _Moment:
    """One cycle of a run: the waits in it, and those that were over and have not been told of."""

    def __init__(self, ledger: Ledger, machine: Machine, cycle: int) -> None:
        self._ledger: Final = ledger
        self._machine: Final = machine
        self._cycle: Final = cycle
        self._number: Final[dict[object, int]] = {
            channel: number for number, channel in enumerate(machine.channels)
        }
        self._wants_room: Final = {unit.index for unit, _ in machine.on_chip.requests}
        self._waited: Final = Counter[tuple[int, Cause]]()
        self._waited_for: Final = Counter[tuple[int, Cause]]()
        self._waits: Final[dict[int, WaitState]] = {}
        for unit in machine.units:
            if unit.wait is not None and unit.now <= cycle:
                self._open_wait(unit, unit.wait)
        for wait in (*ledger.later, *ledger.untold()):
            self._ended_wait(wait)

    def state(self) -> RunState:
        """Return it."""
        machine, cycle = self._machine, self._cycle
        request_bytes = machine.plan.program.hardware.hbm.request_bytes
        units = zip(machine.fixed.units, machine.units, strict=True)
        channels = zip(machine.fixed.channels, machine.channels, self._ledger.carried, strict=True)
        on_chip = machine.on_chip
        return RunState(
            program=machine.plan.program.name,
            cycles=cycle,
            units=tuple([self._unit(fixed, unit) for fixed, unit in units]),
            channels=tuple([self._channel(*each) for each in channels]),
            on_chip=OnChipState(
                on_chip.capacity_bytes,
                tuple((unit.index, size) for unit, size in on_chip.requests if unit.now <= cycle),
                () if on_chip.capacity_bytes is None else None,
                on_chip.pages,
            ),
            hbm_bytes_moved=self._ledger.requests * request_bytes,
            # The memory has gone on with what units handed over later.
            hbm=None,
        )

    def _ended_wait(self, wait: Waited) -> None:
        """Take account of a wait that is over, in the cycle or later."""
        start_cycle = wait.end_cycle - wait.cycles
        if wait.end_cycle <= self._cycle:
            self._count(wait)
        elif start_cycle <= self._cycle:
            channels: tuple[int, ...] = () if wait.channel is None else (wait.channel,)
            if wait.chose:
                channels = self._open_inputs(wait.unit)
            self._waits[wait.unit] = WaitState(
                OPERATIONS[wait.cause], channels, start_cycle, len(channels) > 1, None
            )

    def _count(self, wait: Waited) -> None:
        self._waited[wait.unit, wait.cause] += wait.cycles
        number = wait.channel
        if number is not None:
            back = self._machine.channels[number].backward_cycles
            credit = credit_part(wait.cycles, back) if wait.cause is Cause.FULL else 0
            self._waited_for[number, wait.cause] += wait.cycles - credit
            self._waited_for[number, Cause.CREDIT] += credit

    def _open_wait(self, unit: Unit, wait: Wait) -> None:
        """Take account of what ``unit`` is parked for since a cycle up to this one."""
        if unit.drains:
            self._drain(unit)
            return
        operation = wait.operation
        channels = tuple(self._number[channel] for channel in wait.channels)
        if channels and wait.any_of:
            operation, channels = Operation.RECEIVE, self._open_inputs(unit.index)
        elif operation is Operation.REACH and unit.index in self._wants_room:
            operation = Operation.CAPACITY
        self._waits[unit.index] = WaitState(
            operation, channels, unit.now, len(channels) > 1, wait.stops
        )

    def _drain(self, unit: Unit) -> None:
        """Let ``unit``, whose operator has done its work, see the ends of its inputs in turn."""
        now = unit.now
        for source in self._machine.ports[unit.index].inputs:
            number, closed_cycle = self._number[source], source.closed_cycle
            if closed_cycle is None or closed_cycle > self._cycle:
                self._waits[unit.index] = WaitState(Operation.RECEIVE, (number,), now, False, None)
                return
            if closed_cycle > now and not source.ended:
                self._count(
                    Waited(unit.index, closed_cycle, closed_cycle - now, Cause.EMPTY, number)
                )
                now = closed_cycle

    def _open_inputs(self, unit: int) -> tuple[int, ...]:
        """Return the inputs of a unit from which an element may come."""
        numbers = (self._number[source] for source in self._machine.ports[unit].inputs)
        return tuple(number for number in numbers if self._is_open(number))

    def _is_open(self, channel: int) -> bool:
        closed_cycle = self._machine.channels[channel].closed_cycle
        if closed_cycle is None or closed_cycle > self._cycle:
            return True
        return any(True for _ in self._ledger.carried[channel].held(self._cycle))

    def _unit(self, fixed: FixedUnit, unit: Unit) -> UnitState:
        wait = self._waits.get(unit.index)
        now, finished = self._cycle, False
        if wait is not None:
            now = wait.since_cycle
        elif unit.finished and unit.now <= self._cycle:
            now, finished = unit.now, True
        told = self._ledger.waited[unit.index]
        waited = {cause: told[cause] + self._waited[unit.index, cause] for cause in WAITS}
        return UnitState(
            *fixed,
            now,
            finished,
            wait,
            now - sum(waited.values()),
            waited[Cause.HBM],
            waited[Cause.CAPACITY],
            unit.flops if finished else None,
        )

    def _channel(self, fixed: FixedChannel, channel: Channel, carried: Carried) -> ChannelState:
        held = list(carried.held(self._cycle))
        bare = sum(isinstance(each.value, Empty) for each in held)
        closed_cycle = channel.closed_cycle
        is_closed = closed_cycle is not None and closed_cycle <= self._cycle
        waited = {
            cause: self._waited_for[fixed.number, cause]
            for cause in (Cause.EMPTY, Cause.FULL, Cause.CREDIT)
        }
        return ChannelState(
            *fixed,
            channel.depth,
            channel.forward_cycles,
            channel.backward_cycles,
            len(held),
            carried.values + len(held) - bare,
            carried.values,
            carried.elements - carried.values + bare,
            closed_cycle if is_closed else None,
            carried.newest_sent_cycle(self._cycle),
            carried.last_taken_cycle,
            max(carried.peak_slots if carried.elements else 0, len(held)),
            carried.empty_cycles + waited[Cause.EMPTY],
            carried.full_cycles + waited[Cause.FULL],
            carried.credit_cycles + waited[Cause.CREDIT],
            carried.left_over,
        )

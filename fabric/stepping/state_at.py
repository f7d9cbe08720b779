"""The state of a run that is held in a cycle.

It is counted as that of a recorded run (``fabric.log.tally``): all that bears a stamp up to the
cycle has happened, and nothing later, however far units have run ahead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.log import columns as c
from fabric.log.tally import UnitEnd, wait_state
from fabric.state.run_state import OnChipState, RunState, WaitState
from fabric.telling.causes import WAITS, Cause, Operation

if TYPE_CHECKING:
    from fabric.engine.unit import Unit, Wait
    from fabric.log.tally import Tally
    from fabric.machine.machine import Machine
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
    """One cycle of a run, and what units wait for in it."""

    def __init__(self, ledger: Ledger, machine: Machine, cycle: int) -> None:
        self._ledger: Final = ledger
        self._machine: Final = machine
        self._cycle: Final = cycle
        self._number: Final[dict[object, int]] = {
            channel: number for number, channel in enumerate(machine.channels)
        }
        self._wants_room: Final = {unit.index for unit, _ in machine.on_chip.requests}
        self._parked: Final = [
            unit for unit in machine.units if unit.wait is not None and unit.now <= cycle
        ]

    def state(self) -> RunState:
        """Return it."""
        machine, cycle = self._machine, self._cycle
        waits: dict[int, WaitState] = {}
        seen: list[tuple[int, ...]] = []
        for unit in self._parked:
            if unit.drains:
                self._drain(unit, waits, seen)
        tally, under_way = self._ledger.counted(cycle, seen)
        for unit in self._parked:
            if unit.wait is not None and not unit.drains:
                waits[unit.index] = self._wait(unit, unit.wait, tally)
        for number, row in under_way.items():
            wait = wait_state(row)
            if row[c.CHOSE]:
                channels = self._open_inputs(number, tally)
                wait = wait._replace(channels=channels, any_of=len(channels) > 1)
            waits[number] = wait
        on_chip = machine.on_chip
        stems = [
            (*fixed, channel.depth, channel.forward_cycles, channel.backward_cycles)
            for fixed, channel in zip(machine.fixed.channels, machine.channels, strict=True)
        ]
        return RunState(
            program=machine.plan.program.name,
            cycles=cycle,
            units=tally.units(machine.fixed.units, waits, self._ends(waits), cycle),
            channels=tally.channels(stems, self._closed(), {}),
            on_chip=OnChipState(
                on_chip.capacity_bytes,
                tuple((unit.index, size) for unit, size in on_chip.requests if unit.now <= cycle),
                () if on_chip.capacity_bytes is None else None,
                on_chip.pages,
            ),
            hbm_bytes_moved=self._ledger.requests * machine.plan.program.hardware.hbm.request_bytes,
            # The memory has gone on with what units handed over later.
            hbm=None,
        )

    def _ends(self, waits: dict[int, WaitState]) -> dict[int, UnitEnd]:
        """Return what units came to that have ended."""
        return {
            unit.index: UnitEnd(unit.now, finished=True, busy_cycles=None, flops=unit.flops)
            for unit in self._machine.units
            if unit.finished and unit.now <= self._cycle and unit.index not in waits
        }

    def _closed(self) -> dict[int, int]:
        """Return when streams were ended, by the numbers of their channels."""
        return {
            number: channel.closed_cycle
            for number, channel in enumerate(self._machine.channels)
            if channel.closed_cycle is not None and channel.closed_cycle <= self._cycle
        }

    def _wait(self, unit: Unit, wait: Wait, tally: Tally) -> WaitState:
        """Return what ``unit`` is parked for since a cycle up to this one."""
        operation = wait.operation
        channels = tuple(self._number[channel] for channel in wait.channels)
        if channels and wait.any_of:
            operation, channels = Operation.RECEIVE, self._open_inputs(unit.index, tally)
        elif operation is Operation.REACH and unit.index in self._wants_room:
            operation = Operation.CAPACITY
        return WaitState(operation, channels, unit.now, len(channels) > 1, wait.stops)

    def _drain(self, unit: Unit, waits: dict[int, WaitState], seen: list[tuple[int, ...]]) -> None:
        """Let ``unit``, whose operator has done its work, see the ends of its inputs in turn."""
        now = unit.now
        for source in self._machine.ports[unit.index].inputs:
            number, closed_cycle = self._number[source], source.closed_cycle
            if closed_cycle is None or closed_cycle > self._cycle:
                waits[unit.index] = WaitState(
                    Operation.RECEIVE, (number,), now, any_of=False, stops=None
                )
                return
            if closed_cycle > now and not source.ended:
                waited = closed_cycle - now
                seen.append((unit.index, WAITS.index(Cause.EMPTY), number, closed_cycle, waited, 0))
                now = closed_cycle

    def _open_inputs(self, unit: int, tally: Tally) -> tuple[int, ...]:
        """Return the inputs of a unit from which an element may come."""
        closed = self._closed()
        numbers = (self._number[source] for source in self._machine.ports[unit].inputs)
        return tuple(
            number for number in numbers if number not in closed or tally.carried[number, c.HELD]
        )

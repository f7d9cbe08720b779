"""Holds a run until another thread sets a goal: a cycle, an element or the next event.

The stepper waits for a cycle like a merge, and continues when nothing earlier can happen any more.
The log then has all events before that cycle, and no unit's clock has changed.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, TypeAlias

import trio
from typing_extensions import override

from fabric.graph.arguments.described import refuse
from fabric.messages.errors import ConfigurationError
from fabric.messages.place import Place
from fabric.messages.text import close_to
from fabric.timing.engine.unit import Unit
from fabric.timing.machine.machine import Companion, cycles_of, state_of
from fabric.timing.stepping.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.timing.machine.machine import Machine
    from fabric.timing.state.run_state import RunState
    from fabric.timing.stepping.ledger import Held

FINISH: Final = "finish"
"""A goal: run to the end."""

_NEVER: Final = 1 << 62

_LOOK_SECONDS: Final = 0.1
"""Interval of checks for signals while waiting for a run."""

_FIRST_CYCLES: Final = 64

_CHUNK_CYCLES: Final = 1_024

_SHORT_SECONDS: Final = 0.02

_LONG_SECONDS: Final = 0.1
"""A chunk of cycles takes between these two times, so that the run soon notices a pause."""


Goal: TypeAlias = "Callable[[Ledger], int | None]"
"""Returns the cycle in which to hold the run, at least the ledger's; None if unknown."""


@dataclass(frozen=True)
class AtElement:
    """A goal: the cycle in which a value is dequeued by its operator, or sent.

    Attributes:
        element: number of the value, from 1.
        sent: whether the value is sent in the cycle; else it is dequeued.
    """

    channel: int
    element: int
    sent: bool

    def __call__(self, ledger: Ledger) -> int | None:
        cycle_of = ledger.sent_cycle if self.sent else ledger.taken_cycle
        return cycle_of(self.channel, self.element)


_DIGITS: Final = 10
"""The most digits of an input's number."""


def unit_number(machine: Machine, name: str) -> int:
    """Return the number of the unit called ``name``; an unknown name is an error."""
    names = [unit.name for unit in machine.units]
    if name not in names:
        refuse(f"no unit is called {name!r}: expected {close_to(names, name)}", ConfigurationError)
    return names.index(name)


def channel_number(machine: Machine, name: str) -> int:
    """Return the number of a channel: ``OPERATOR.INPUT``, or its name in reports."""
    edges = machine.plan.edges
    numbers = [number for number, edge in enumerate(edges) if name in (edge.key, edge.name)]
    if not numbers:
        keys = [edge.key for edge in edges]
        refuse(
            f"no channel is called {name!r}: expected OPERATOR.INPUT, {close_to(keys, name)}",
            ConfigurationError,
        )
    return numbers[0]


def element_goal(machine: Machine, unit: str, element: int) -> AtElement:
    """Return the goal that a unit has dequeued ``element`` values; a source, that it sent them.

    ``unit`` is a name for the first input, or a name and an input, as in ``matmul_1.1``.

    Raises:
        ConfigurationError: there is no such unit or input, or it has no streams.
    """
    edges = list(enumerate(machine.plan.edges))
    name, _, port = unit.rpartition(".")
    wanted = int(port) if name and port.isdecimal() and len(port) < _DIGITS else None
    if any(other.name == unit for other in machine.units):
        wanted = None
    index = unit_number(machine, unit if wanted is None else name)
    read = {edge.input: number for number, edge in edges if edge.consumer.index == index}
    if wanted is not None and wanted not in read:
        inputs = f"one of {', '.join(map(str, sorted(read)))}" if read else "a unit with inputs"
        refuse(f"until: {name} has no input {wanted}: expected {inputs}", ConfigurationError)
    if read:
        return AtElement(read[min(read) if wanted is None else wanted], element, sent=False)
    written = [(edge.output, number) for number, edge in edges if edge.producer.index == index]
    if not written:
        refuse(f"until: {unit} has no streams: expected a unit with streams", ConfigurationError)
    return AtElement(min(written)[1], element, sent=True)


class Stepper(Ledger, Companion):
    """Runs beside a machine and holds it at goals.

    Between two goals the machine's thread waits, and another thread may read it.

    Attributes:
        over: whether the run has ended, and is held in its last cycle.
        pausing: another thread sets it to hold the run soon.
        interrupt: abandons the run, from any thread; returns whether the run still continues.
    """

    def __init__(self) -> None:
        super().__init__()
        self.over = False
        self.pausing = False
        self.interrupt: Callable[[], bool] = lambda: False
        self._known_cycle = -1
        self._chunk_cycles = _CHUNK_CYCLES
        self._let_go = False
        self._goals: Final[SimpleQueue[Goal | str | None]] = SimpleQueue()
        self._resting: Final = threading.Event()

    def ask(self, goal: Goal | str | None) -> None:
        """Run to ``goal``, or to the end with ``FINISH``; None abandons the run."""
        self._resting.clear()
        self._goals.put(goal)

    def wait(self) -> None:
        """Wait until the run is held, or has ended. An interrupted wait can be repeated."""
        # A signal just before the thread sleeps does not wake it. Without the timeout, Ctrl-C would
        # wait for the end of the run.
        while not self._resting.wait(_LOOK_SECONDS):
            pass

    def rest(self) -> None:
        """Release the waiting thread: the run is held, or has ended."""
        self._resting.set()

    @override
    def attach(self, machine: Machine, interrupt: Callable[[], bool]) -> None:
        self.interrupt = interrupt
        self.open(machine)
        # The clock does not advance before ``run`` waits for a cycle.
        machine.clock.running += 1

    @override
    async def run(self) -> None:
        clock = self.machine.clock
        unit = Unit("", -1, Place("", 0), bytes_per_cycle=1)
        unit.strand.begin(conducted=False)
        while not self._let_go:
            goal = self._goals.get()
            if goal is None:
                self.interrupt()
                await trio.sleep_forever()
            elif isinstance(goal, str):
                self._let_go = True
            else:
                await self._go(goal, unit)
                self.rest()
        clock.bound(None)
        clock.leave()

    async def _go(self, goal: Goal, unit: Unit) -> None:
        clock = self.machine.clock
        spent = clock.spent and self._known_cycle >= 0
        chunk = _FIRST_CYCLES
        while True:
            target = goal(self)
            if spent:
                last = cycles_of(self.machine)
                self.go_to(last if target is None else min(target, last))
                self.over = self.cycle == last
                return
            if target is not None and target <= self._known_cycle:
                self.go_to(target)
                return
            if self._known_cycle >= 0:
                self.go_to(self._known_cycle)
            if self.pausing:
                return
            cycle = self._known_cycle + chunk
            chunk = min(2 * chunk, self._chunk_cycles)
            await self._advance(cycle if target is None else min(target, cycle), unit)
            spent = clock.spent

    async def _advance(self, cycle: int, unit: Unit) -> None:
        start = time.perf_counter()
        machine, clock = self.machine, self.machine.clock
        if machine.failures.first_cycle is None and not machine.failures.circling:
            # Elements that are sent or dequeued far ahead use memory.
            clock.bound(cycle + 2)
        await clock.reach(unit, cycle + 1)
        self._known_cycle = cycle
        seconds = time.perf_counter() - start
        if seconds > _LONG_SECONDS:
            self._chunk_cycles = max(1, self._chunk_cycles // 2)
        elif seconds < _SHORT_SECONDS:
            self._chunk_cycles *= 2

    def end(self) -> None:
        machine = self.machine
        cycle = machine.failures.first_cycle
        if cycle is None:
            circling = [unit.now for unit, _ in machine.failures.circling]
            moving = [] if machine.clock.spent else [machine.clock.pace_cycle - 1]
            cycle = min(circling or moving, default=cycles_of(machine))
        self.over = True
        self.go_to(max(cycle, self.cycle))

    def state(self) -> RunState:
        return state_of(self.machine) if self._at_end else self.state_in_flight()

    @override
    def held(self, number: int) -> list[Held]:
        if self._at_end:
            self.count(_NEVER)
        return super().held(number)

    @property
    def _at_end(self) -> bool:
        """Whether the run is in its final state, in which unread values are dequeued, too."""
        machine = self.machine
        failed = machine.failures.first_cycle is not None
        return self.over and not failed and self.cycle == cycles_of(machine)

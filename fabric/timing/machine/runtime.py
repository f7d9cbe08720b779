"""Runs the operators of a machine as trio tasks, stops them, and reports hanging ones.

A thread looks at the machine once a second of the host's time. If nothing has moved for a while, it
reports the running unit and its line. It does not affect the run or reports.

An operator awaits only the fabric: otherwise, for instance at a trio event, it counts as running
forever. It does so in one task. Operators that break these rules are found without slowing the
others.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple

import trio
from trio import Cancelled, CancelScope, current_effective_deadline, open_nursery
from typing_extensions import override

from fabric.messages.telling.errors import FabricError
from fabric.messages.telling.place import Place, deepest_place, raising_place
from fabric.messages.telling.users_code import first_of, pass_signals
from fabric.timing.engine.checked_operator import CheckedUnit, Circling, LaterSink
from fabric.timing.engine.clock import Stopped
from fabric.timing.machine.machine import users_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio.lowlevel import Task

    from fabric.graph.wiring.operator import Node
    from fabric.timing.compiled.region import Region
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.ports import Ports
    from fabric.timing.engine.unit import Unit, Wait
    from fabric.timing.machine.machine import Machine

_PERIOD_SECONDS: Final = 1.0

_PATIENCE: Final = 4
"""Looks without progress before the user is told."""


class Watched(NamedTuple):
    """Input of the watchdog.

    Attributes:
        users: units with a user's operator or function.
        operating: the coroutine function in which operators run; its local ``unit`` is the unit.
    """

    units: Sequence[Unit]
    users: frozenset[int]
    channels: Sequence[Channel]
    operating: Callable[..., object]


@contextlib.contextmanager
def watched(what: Watched, say: Callable[[str], object]) -> Iterator[None]:
    """Watch the run in this thread if it has user code; ``say`` which unit does not end."""
    if not what.users:
        yield
        return
    done, runner = threading.Event(), threading.get_ident()
    failures: list[FabricError] = []

    def watch() -> None:
        try:
            _watch(what, runner, say, done)
        except FabricError as error:
            failures.append(error)

    thread = threading.Thread(target=watch, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if failures:
        raise failures[0]


def _watch(what: Watched, runner: int, say: Callable[[str], object], done: threading.Event) -> None:
    moved, looks = -1, 0
    while not done.wait(_PERIOD_SECONDS):
        now_moved = sum(channel.sent + channel.taken for channel in what.channels)
        if now_moved != moved:
            moved, looks = now_moved, 0
            continue
        looks += 1
        if looks == _PATIENCE:
            for unit, place in _at_work(what, sys._current_frames().get(runner)):
                say(
                    f"{unit.name} ({unit.place}) has sent and received nothing for "
                    f"{looks * _PERIOD_SECONDS:.0f} seconds and has not ended: it is in {place}, "
                    f"at cycle {unit.now:,}; Ctrl-C ends the run"
                )


def _at_work(what: Watched, running: FrameType | None) -> Iterator[tuple[Unit, Place]]:
    """Return users' units that are running, each with its line of user code.

    ``running`` is the frame of the run's thread.
    """
    stack = list(traceback.walk_stack(running))[::-1] if running is not None else []
    for depth, (frame, _) in enumerate(stack):
        unit = _unit_of(frame, what)
        if unit is not None:
            place = deepest_place(stack[depth:])
            if unit.index in what.users and place is not None:
                yield unit, place
            # While it runs no other does.
            return
    for unit in what.units:
        if unit.wait is None and not unit.finished and unit.index in what.users:
            task = unit.strand.task
            place = None if task is None else deepest_place(task.iter_await_frames())
            if place is not None:
                yield unit, place


def _unit_of(frame: FrameType, what: Watched) -> Unit | None:
    if frame.f_code is not getattr(what.operating, "__code__", None):
        return None
    unit: Unit = frame.f_locals["unit"]
    return unit


def rounds(ports: Ports) -> Iterator[Ports]:
    """Yield the ports of an operator without inputs for each of its runs.

    Cycles of ``send_at`` continue after those of the previous run: cycles 0 to 9 are 10 to 19 in
    the second run.
    """
    if ports.repeats == 1:
        yield ports
        return
    since_cycle = 0
    for _ in range(ports.repeats):
        sinks = tuple(
            LaterSink(sink, since_cycle)
            for sink in ports.outputs
            if not isinstance(sink, LaterSink)
        )
        yield replace(ports, outputs=sinks, since_cycle=since_cycle)
        since_cycle = max((sink.next_cycle for sink in sinks), default=0)


class Runtime:
    """One trio task for each operator."""

    def __init__(self, machine: Machine) -> None:
        self.machine: Final = machine
        self._scope: Final = CancelScope()
        self._unit_of: dict[Task, Unit] = {}
        self._abandoned = False
        self._at_rest: list[tuple[Unit, Wait | None, int]] = []

    async def run(self) -> None:
        """Run the operators until all have ended or are cancelled."""
        machine = self.machine
        machine.clock.running += len(machine.units)
        async with open_nursery() as host:
            host.start_soon(machine.clock.conductor.run)
            with self._scope:
                async with open_nursery() as nursery:
                    if machine.region is not None:
                        nursery.start_soon(self._compiled, machine.region)
                    for node in machine.plan.nodes:
                        if not machine.is_compiled(node):
                            nursery.start_soon(self.operate, node, name=node.name)
            host.cancel_scope.cancel()
        machine.publish()
        for unit, wait, now in self._at_rest:
            unit.wait, unit.now = wait, now

    async def _compiled(self, region: Region) -> None:
        await region.run()
        if region.gave_up:
            self.stop()

    def abandon(self) -> None:
        """Start no further operators; started ones will be cancelled."""
        self._abandoned = True
        self.machine.clock.stopped = True

    def cancel(self) -> None:
        """Cancel the operators."""
        self._scope.cancel()

    def stop(self) -> None:
        """Cancel the operators and freeze the machine, even if they send in a ``finally``."""
        machine = self.machine
        machine.publish()
        self._at_rest = [(unit, unit.wait, unit.now) for unit in machine.units]
        for channel in machine.channels:
            channel.stop()
        machine.clock.stopped = True
        self._scope.cancel()
        for unit in machine.units:
            unit.strand.interrupt(Stopped())

    @property
    def over(self) -> bool:
        """Whether the run was abandoned or stopped."""
        return self._abandoned or self._scope.cancel_called

    def unit_of(self, task: Task) -> Unit | None:
        """Return the unit whose operator runs in ``task``, if any."""
        return self._unit_of.get(task)

    def refuse(self, unit: Unit, what: str, place: Place | None) -> None:
        """Keep an error of the operator of ``unit`` at line ``place`` of the user's code."""
        machine = self.machine
        node, ports = machine.plan.nodes[unit.index], machine.ports[unit.index]
        machine.failures.keep(ports.failure(what, place), node, ports)

    @property
    def watched(self) -> Watched:
        """Input of a watchdog."""
        machine = self.machine
        users = users_among(node.operator for node in machine.plan.nodes)
        return Watched(machine.units, users, machine.channels, Runtime._operate)

    async def operate(self, node: Node) -> None:
        """Run one operator until it ends; keep its error."""
        ports = self.machine.ports[node.index]
        unit = ports.unit
        task = unit.strand.begin(conducted=not isinstance(unit, CheckedUnit))
        self._unit_of[task] = unit
        await self._operate(node, ports, unit)
        await self.machine.clock.conductor.end(unit.strand)

    async def _operate(self, node: Node, ports: Ports, unit: Unit) -> None:
        if self._abandoned:
            return
        clock, failures = self.machine.clock, self.machine.failures
        try:
            for each in rounds(ports) if not node.inputs else (ports,):
                await node.operator.run(each)
            if clock.stopped:
                return
            ports.finish()
            await ports.drain()
        except BaseException as error:
            if isinstance(error, Cancelled) and current_effective_deadline() == -math.inf:
                raise
            first = first_of(error)
            pass_signals(first)
            if clock.stopped:
                return
            if isinstance(unit, CheckedUnit):
                unit.let_go()
            if isinstance(first, Circling):
                failures.circling.append((unit, raising_place(first)))
            else:
                failures.keep(first, node, ports)
            await self._stop_in_turn(unit)
        else:
            unit.finished = True
            clock.leave()

    async def _stop_in_turn(self, unit: Unit) -> None:
        """Stop the run once no unit can fail before ``unit``."""
        clock = self.machine.clock
        with suppress(Stopped):
            clock.bound(None)
            await clock.reach(unit, unit.now)
            clock.stopping = True
            clock.leave()


class _IdleClock(trio.abc.Clock):
    """Wall time for trio, which calls it before it sleeps: then no task can run."""

    def __init__(self, on_idle: Callable[[], bool]) -> None:
        self._on_idle: Final = on_idle

    @override
    def start_clock(self) -> None:
        pass

    current_time = staticmethod(time.perf_counter)

    @override
    def deadline_to_sleep_time(self, deadline: float) -> float:
        if self._on_idle():
            return 0
        return deadline if math.isinf(deadline) else deadline - time.perf_counter()


class _ChildTasks(trio.abc.Instrument):
    """Reports tasks that start: a unit has one task."""

    def __init__(self, on_start: Callable[[trio.lowlevel.Task], object]) -> None:
        self._on_start: Final = on_start

    @override
    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if task.parent_nursery is not None:
            self._on_start(task.parent_nursery.parent_task)


class Foreign:
    """Refuses operators that await anything but their channels, and ends the run."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime: Final = runtime
        self.clock: Final = _IdleClock(self._idle)
        self.tasks: Final = _ChildTasks(self._started)

    def _idle(self) -> bool:
        """Stop a run whose units wait for something outside of the fabric; return whether any does.

        While no task can run, such a unit counts as running.
        """
        runtime = self._runtime
        machine = runtime.machine
        if runtime.over or not machine.clock.running:
            return False
        failed = machine.failures.nodes
        outside = [
            unit
            for unit in machine.units
            if unit.wait is None and not unit.finished and unit.index not in failed
        ]
        for unit in outside:
            task = unit.strand.task
            assert task is not None
            what = "awaits something outside of the fabric: expected its channels only"
            runtime.refuse(unit, what, deepest_place(task.iter_await_frames()))
        if outside:
            runtime.stop()
        return bool(outside)

    def _started(self, parent: trio.lowlevel.Task) -> None:
        """End the run if ``parent``, which has started a task, runs an operator."""
        unit = self._runtime.unit_of(parent)
        if unit is not None:
            what = "starts a task of its own: expected one that awaits its channels in turn"
            self._runtime.refuse(unit, what, _line_now())
            self._runtime.stop()

    def dropped(self, name: str) -> bool:
        """Note a coroutine that was not awaited; return whether an operator has dropped it."""
        runtime, task = self._runtime, None
        if trio.lowlevel.in_trio_task():
            task = trio.lowlevel.current_task()
        unit = None if task is None else runtime.unit_of(task)
        if unit is None:
            return False
        if not runtime.machine.clock.stopped:
            what = (
                f"{name.rpartition('.')[2].lstrip('_')}() is not awaited: expected `await` at once"
            )
            runtime.refuse(unit, what, _line_now())
        return True


def _line_now() -> Place | None:
    return deepest_place(reversed(list(traceback.walk_stack(None))))

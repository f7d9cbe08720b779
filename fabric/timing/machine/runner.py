"""Runs the operators of a machine as trio tasks, for users and for trial remedies."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import trio
from trio import Cancelled, CancelScope, current_effective_deadline, open_nursery

from fabric.messages.place import raising_place
from fabric.messages.users_code import first_of, pass_signals
from fabric.timing.engine.channel import LaterSink
from fabric.timing.engine.clock import Stopped, VirtualClock
from fabric.timing.guards.operators import Circling, GuardedUnit
from fabric.timing.guards.tasks import Watched, guarded, stack_of, unawaited
from fabric.timing.machine.assembly import Setup, assemble
from fabric.timing.machine.machine import users_among
from fabric.timing.state.run_state import Ending

if TYPE_CHECKING:
    from fabric.graph.wiring.operator import Node
    from fabric.timing.compiled.region import Region
    from fabric.timing.engine.ports import Ports
    from fabric.timing.engine.unit import Unit, Wait
    from fabric.timing.machine.interrupts import Interrupts


@contextlib.contextmanager
def _no_wakeups() -> Iterator[None]:
    """Hide the signal wakeup descriptor of another event loop of this thread from trio.

    A notebook has such a loop, and trio would warn of a collision.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        if before != -1:
            signal.set_wakeup_fd(before)


def rounds(ports: Ports) -> Iterator[Ports]:
    """Yield the ports of an operator without inputs for each of its runs.

    Cycles of ``send_at`` continue after the previous run: 0 to 9 become 10 to 19 in the second run.
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


class Runner:
    """Runs a program once, with one trio task for each operator."""

    def __init__(self, setup: Setup, *, on_heartbeat: Callable[[], None], beat_cycles: int) -> None:
        """Build the machine; ``on_heartbeat`` is called about every ``beat_cycles``."""
        clock = VirtualClock(self._stop, on_heartbeat, beat_cycles)
        self.machine: Final = assemble(setup, clock)
        self._scope: Final = CancelScope()
        self._at_rest: list[tuple[Unit, Wait | None, int]] = []

    def run(
        self,
        interrupts: Interrupts,
        given_up: Callable[[], Ending | None],
        *,
        beside: Iterable[Callable[[], Awaitable[object]]] = (),
    ) -> Ending:
        """Run to the end, or to a signal of ``interrupts``, and return how it ended.

        ``given_up`` returns the ending of an abandoned run. Tasks ``beside`` run with the
        operators.
        """
        with _no_wakeups(), unawaited(self.dropped):
            trio.run(
                self._main, interrupts, beside, restrict_keyboard_interrupt_to_checkpoints=True
            )
        machine = self.machine
        machine.publish()
        if machine.region is not None:
            machine.region.close()
        if machine.ports.log is not None:
            machine.ports.log.close()
        if machine.failures.first is not None:
            return "error"
        if all(unit.finished for unit in machine.units):
            return "completed"
        if machine.failures.circling:
            return "livelock"
        return given_up() or "deadlock"

    async def _main(
        self, interrupts: Interrupts, beside: Iterable[Callable[[], Awaitable[object]]]
    ) -> None:
        machine = self.machine
        interrupts.connect(machine.clock, self._scope.cancel)
        machine.clock.running += len(machine.units)
        async with open_nursery() as host:
            for task in (*beside, machine.clock.conductor.run):
                host.start_soon(task)
            with self._scope:
                async with open_nursery() as nursery:
                    if machine.region is not None:
                        nursery.start_soon(self._compiled, machine.region)
                    for node in machine.plan.nodes:
                        if not machine.is_compiled(node):
                            nursery.start_soon(self.operate, node, name=node.name)
            machine.publish()
            for unit, wait, now in self._at_rest:
                unit.wait, unit.now = wait, now
            host.cancel_scope.cancel()

    async def _compiled(self, region: Region) -> None:
        await region.run()
        if region.gave_up:
            self._stop()

    def _stop(self) -> None:
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

    def dropped(self, name: str) -> bool:
        """Keep an error if an operator dropped the coroutine ``name``; return whether it did."""
        machine = self.machine
        current = self.watched.unit_in(stack_of(sys._getframe()))
        if current is None or not isinstance(current[0], GuardedUnit):
            return False
        unit, place = current
        if not machine.clock.stopped:
            node, ports = machine.plan.nodes[unit.index], machine.ports[unit.index]
            what = name.rpartition(".")[2].lstrip("_")
            failure = ports.failure(f"{what}() is not awaited: expected `await` at once", place)
            machine.failures.keep(failure, node, ports)
        return True

    @property
    def watched(self) -> Watched:
        """The input of ``guards.tasks.watched``."""
        machine = self.machine
        users = users_among(machine.plan.nodes)
        return Watched(machine.units, users, machine.channels, Runner._operate)

    async def operate(self, node: Node) -> None:
        """Run one operator until it ends; keep its error."""
        ports = self.machine.ports[node.index]
        unit = ports.unit
        unit.strand.begin(conducted=not isinstance(unit, GuardedUnit))
        await self._operate(node, ports, unit)
        await self.machine.clock.conductor.end(unit.strand)

    async def _operate(self, node: Node, ports: Ports, unit: Unit) -> None:
        if self.machine.clock.stopped:
            return
        clock, failures = self.machine.clock, self.machine.failures
        try:
            running = self._run(node, ports)
            if isinstance(unit, GuardedUnit):
                await guarded(running, unit, clock)
            else:
                await running
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
            if isinstance(unit, GuardedUnit):
                unit.guard.let_go()
            if isinstance(first, Circling):
                failures.circling.append((unit, raising_place(first)))
            else:
                failures.keep(first, node, ports)
            await self._stop_in_turn(unit)
        else:
            unit.finished = True
            clock.leave()

    async def _run(self, node: Node, ports: Ports) -> None:
        for ports_of_run in rounds(ports) if not node.inputs else (ports,):
            await node.operator.run(ports_of_run)

    async def _stop_in_turn(self, unit: Unit) -> None:
        """Stop the run once no unit can fail in an earlier cycle than ``unit``."""
        clock = self.machine.clock
        with contextlib.suppress(Stopped):
            clock.bound(None)
            await clock.reach(unit, unit.now)
            clock.stopping = True
            clock.leave()

"""Runs the operators of a machine, and stops them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from fabric.engine.checked_unit import CheckedUnit, Circling
from fabric.engine.clock import Stopped
from fabric.machine.blame import first_of, has_user_code, users_among
from fabric.machine.rounds import rounds
from fabric.machine.watchdog import Watched
from fabric.telling.place import Place, raising_place

if TYPE_CHECKING:
    from trio import CancelScope
    from trio.lowlevel import Task

    from fabric.engine.ports import Ports
    from fabric.engine.unit import Unit, Wait
    from fabric.machine.machine import Machine
    from fabric.wiring.operator import Node

__all__ = ["Runtime"]


class Runtime:
    """One trio task for each operator; none where the conductor can do without.

    Attributes:
        machine: whose operators run.
        catches_interrupts: Ctrl-C calls ``abandon``; a KeyboardInterrupt before is a user's.
    """

    def __init__(self, machine: Machine) -> None:
        """Start nothing yet."""
        self.machine: Final = machine
        self.catches_interrupts = False
        self._scope: CancelScope | None = None
        self._unit_of: dict[Task, Unit] = {}
        self._abandoned = False
        self._cancelled = False
        self._cancellation: tuple[type[BaseException], ...] = ()
        self._at_rest: list[tuple[Unit, Wait | None, int]] = []

    @property
    def needs_tasks(self) -> bool:
        """Whether there are operators that may await something else than their channels."""
        machine = self.machine
        return any(
            isinstance(unit, CheckedUnit) or has_user_code(node.operator)
            for node, unit in zip(machine.plan.nodes, machine.units, strict=True)
            if not machine.is_compiled(node)
        )

    def run_alone(self) -> None:
        """Let the operators run until all have ended, or are stopped, without tasks of trio's.

        Importing trio takes as long as thousands of operators.
        """
        machine = self.machine
        conductor = machine.clock.conductor
        machine.clock.running += len(machine.units)
        if machine.region is not None:
            machine.region.start()
        running = []
        try:
            for node in machine.plan.nodes:
                if not machine.is_compiled(node):
                    ports = machine.ports[node.index]
                    running.append(self._conducted(node, ports, ports.unit))
                    ports.unit.strand.step = running[-1].send
                    with suppress(StopIteration):
                        running[-1].send(None)
            while conductor.busy and not self.over:
                conductor.conduct()
        finally:
            machine.clock.stopped = True
            for each in running:
                each.close()
        self._settle()

    async def run(self) -> None:
        """Let the operators run in trio until all have ended, or until they are cancelled."""
        from trio import Cancelled, CancelScope, Event, open_nursery

        from fabric.engine.tasks import conduct

        machine = self.machine
        self._cancellation = (Cancelled,)
        self._scope = CancelScope()
        if self._cancelled:
            self._scope.cancel()
        machine.clock.running += len(machine.units)
        async with open_nursery() as host:
            host.start_soon(conduct, machine.clock.conductor)
            with self._scope:
                async with open_nursery() as nursery:
                    if machine.region is not None:
                        over = Event()
                        machine.region.start(over.set)
                        nursery.start_soon(over.wait)
                    for node in machine.plan.nodes:
                        if not machine.is_compiled(node):
                            nursery.start_soon(self.operate, node, name=node.name)
            host.cancel_scope.cancel()
        self._settle()

    def _settle(self) -> None:
        self.machine.publish()
        for unit, wait, now in self._at_rest:
            unit.wait, unit.now = wait, now

    def abandon(self) -> None:
        """Start no operator any more; those that have started are about to be cancelled."""
        self._abandoned = True
        self.machine.clock.stopped = True

    def cancel(self) -> None:
        """Cancel the operators."""
        self._cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    def stop(self) -> None:
        """Cancel the operators; the machine stays as it is, whatever they still do.

        They may send in a ``finally``, or shield themselves: those are ended, too.
        """
        machine = self.machine
        machine.publish()
        self._at_rest = [(unit, unit.wait, unit.now) for unit in machine.units]
        for channel in machine.channels:
            channel.stop()
        machine.clock.stopped = True
        self.cancel()
        for unit in machine.units:
            unit.strand.interrupt(Stopped())

    @property
    def over(self) -> bool:
        """Whether the run was abandoned or stopped."""
        return self._abandoned or self._cancelled

    def unit_of(self, task: Task) -> Unit | None:
        """Return the unit whose operator runs in ``task``, if one does."""
        return self._unit_of.get(task)

    def refuse(self, unit: Unit, what: str, place: Place | None) -> None:
        """Keep that the operator of ``unit`` did ``what`` in line ``place`` of the user's code."""
        machine = self.machine
        node, ports = machine.plan.nodes[unit.index], machine.ports[unit.index]
        machine.failures.keep(ports.failure(what, place), node, ports)

    @property
    def watched(self) -> Watched:
        """What a watchdog looks at."""
        machine = self.machine
        users = users_among(node.operator for node in machine.plan.nodes)
        return Watched(machine.units, users, machine.channels, Runtime._operate)

    async def operate(self, node: Node) -> None:
        """Run one operator in this task until it ends; an error ends it too and is kept."""
        from fabric.engine.tasks import TaskStrand

        ports = self.machine.ports[node.index]
        unit = ports.unit
        unit.strand = strand = TaskStrand(conducted=not isinstance(unit, CheckedUnit))
        assert strand.task is not None
        self._unit_of[strand.task] = unit
        await self._conducted(node, ports, unit)

    async def _conducted(self, node: Node, ports: Ports, unit: Unit) -> None:
        await self._operate(node, ports, unit)
        await self.machine.clock.conductor.end(unit.strand)

    async def _operate(self, node: Node, ports: Ports, unit: Unit) -> None:
        if self._abandoned:
            return
        clock, failures = self.machine.clock, self.machine.failures
        try:
            await self._run(node, ports)
            if clock.stopped:
                return
            ports.finish()
            await ports.drain()
        except self._cancellation:
            raise
        except BaseException as error:
            first = first_of(error)
            if isinstance(first, KeyboardInterrupt) and not self._raised_by_user():
                raise
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

    async def _run(self, node: Node, ports: Ports) -> None:
        for each in rounds(ports) if not node.inputs else (ports,):
            await node.operator.run(each)

    async def _stop_in_turn(self, unit: Unit) -> None:
        """Stop the run once no unit that is behind ``unit`` can fail at an earlier cycle."""
        clock = self.machine.clock
        with suppress(Stopped):
            clock.bound(None)
            await clock.reach(unit, unit.now)
            clock.stopping = True
            clock.leave()

    def _raised_by_user(self) -> bool:
        """Whether a KeyboardInterrupt now is not Ctrl-C's, which would have abandoned the run."""
        return self.catches_interrupts and not self._abandoned

"""The machine a program runs on: one unit per operator, one channel per edge, the memories."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from outcome import Error
from trio import Cancelled, CancelScope, open_nursery
from trio.lowlevel import Task, current_task, in_trio_task, reschedule

from fabric.engine.assumed_sink import AssumedSink
from fabric.engine.channel import Channel, Discard
from fabric.engine.checked_unit import Circling, UserUnit, unit_class
from fabric.engine.clock import Stopped, VirtualClock
from fabric.engine.off_chip import OffChip, memory_of
from fabric.engine.on_chip import OnChipMemory
from fabric.engine.ports import Ports, Sink
from fabric.engine.stored import Stored
from fabric.engine.unit import ComputeUnit, MemoryUnit, Unit, Wait
from fabric.machine.blame import blamed, failure, first_of, has_user_code
from fabric.machine.checked_ports import checked_ports
from fabric.machine.watchdog import Watched
from fabric.telling.errors import ConfigurationError, FabricError
from fabric.telling.place import Place, deepest_place, is_own, raising_place
from fabric.wiring.elaborate import Plan
from fabric.wiring.operator import ComputeOperator, Node

if TYPE_CHECKING:
    from fabric.trace.recording.recorder import Recorder

__all__ = ["Machine"]


class Machine:
    """Units, channels and memories of one run.

    Attributes:
        plan: what was built.
        clock: the global virtual clock.
        units: in node order.
        channels: in edge order.
        assumed: ends of channels whose stream the program has stated the shape of.
        off_chip: the memory behind the chip's pins, where the program uses it.
        on_chip: the on-chip memory.
        ports: what each operator sees, in node order.
        stored: what stores have written, by name.
        failures: errors that operators raised.
        circling: units that charged on and on, and the line in which each was stopped.
        catches_interrupts: Ctrl-C calls ``abandon``; a KeyboardInterrupt before is a user's.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        functional: bool,
        depths: Mapping[str, int],
        capacity_bytes: int | None,
        on_quiescence: Callable[[], None],
        on_heartbeat: Callable[[], None],
        beat_cycles: int,
        recorder: Recorder | None = None,
    ) -> None:
        """Build the machine.

        Args:
            plan: the program.
            functional: tiles have data.
            depths: of single channels, by ``consumer.input``.
            capacity_bytes: of the on-chip memory; None for no limit.
            on_quiescence: called when nothing can happen any more.
            on_heartbeat: called about every ``beat_cycles``.
            beat_cycles: between two heartbeats.
            recorder: makes what is traced; None traces nothing and costs nothing.

        Raises:
            ConfigurationError: a depth names no channel or is below 1.
        """
        self.plan = plan
        self.clock = VirtualClock(on_quiescence, on_heartbeat, beat_cycles)
        self.units = tuple(_unit(node, plan) for node in plan.nodes)
        if recorder is not None:
            recorder.check(self.units)
        self.channels = self._channels(depths, recorder)
        on_chip = OnChipMemory if recorder is None else recorder.on_chip_memory
        self.on_chip = on_chip(capacity_bytes, self.clock)
        self.off_chip = self._memory(recorder)
        self.clock.memory = self.off_chip
        self.stored = Stored()
        self.failures: list[FabricError] = []
        self.failed_at: list[tuple[int, int]] = []
        self.circling: list[tuple[Unit, Place | None]] = []
        self.catches_interrupts = False
        self._unit_of: dict[Task, Unit] = {}
        self._abandoned = False
        self._at_rest: list[tuple[Unit, Wait | None, int]] = []
        self.assumed: list[AssumedSink] = []
        self.ports = self._ports(functional)

    def abandon(self) -> None:
        """Start no operator any more; those that have started are about to be cancelled."""
        self._abandoned = True
        self.clock.stopped = True

    async def run(self, scope: CancelScope) -> None:
        """Let the operators run until all have ended, or until ``scope`` is cancelled."""
        self.clock.running = len(self.units)
        async with open_nursery() as host:
            host.start_soon(self.clock.conductor.run)
            with scope:
                async with open_nursery() as nursery:
                    for node in self.plan.nodes:
                        nursery.start_soon(self.operate, node, name=node.name)
            host.cancel_scope.cancel()
        for unit, wait, now in self._at_rest:
            unit.wait, unit.now = wait, now

    def stop(self, scope: CancelScope) -> None:
        """Cancel the operators; the machine stays as it is, whatever they still do.

        They may send in a ``finally``, or shield themselves: those are ended, too.
        """
        self._at_rest = [(unit, unit.wait, unit.now) for unit in self.units]
        for channel in self.channels:
            channel.stop()
        self.clock.stopped = True
        scope.cancel()
        for unit in self.units:
            if unit.parked:
                unit.parked = False
                assert unit.task is not None
                reschedule(unit.task, Error(Stopped()))

    async def operate(self, node: Node) -> None:
        """Run one operator until it ends; an error ends it too and is kept."""
        ports = self.ports[node.index]
        unit = ports.unit
        unit.task = current_task()
        self._unit_of[unit.task] = unit
        if is_own(node.operator):
            unit.step = unit.task.coro.send
        await self._operate(node, ports, unit)
        await self.clock.conductor.end(unit)

    async def _operate(self, node: Node, ports: Ports, unit: Unit) -> None:
        if self._abandoned:
            return
        try:
            await node.operator.run(ports)
            if self.clock.stopped:
                return
            ports.finish()
            await ports.drain()
        except Cancelled:
            raise
        except BaseException as error:
            first = first_of(error)
            if isinstance(first, KeyboardInterrupt) and not self._raised_by_user():
                raise
            if self.clock.stopped:
                return
            if isinstance(unit, UserUnit):
                unit.let_go()
            if isinstance(first, Circling):
                self.circling.append((unit, raising_place(first)))
            else:
                self._keep(node, ports, first)
            await self._stop_in_turn(unit)
        else:
            unit.finished = True
            self.clock.leave()

    async def _stop_in_turn(self, unit: Unit) -> None:
        """Stop the run once no unit that is behind ``unit`` can fail at an earlier cycle."""
        with suppress(Stopped):
            await self.clock.reach(unit, unit.now)
            self.clock.stopping = True
            self.clock.leave()

    @property
    def watched(self) -> Watched:
        """What a watchdog looks at."""
        operators = [node.operator for node in self.plan.nodes]
        users = (index for index, each in enumerate(operators) if has_user_code(each))
        return Watched(self.units, frozenset(users), self.channels, Machine._operate)

    @property
    def elements(self) -> int:
        """Values dequeued so far, on all channels."""
        return sum(channel.elements for channel in self.channels)

    @property
    def waiting(self) -> int:
        """How many units wait."""
        return sum(unit.wait is not None for unit in self.units)

    @property
    def stopped_cycle(self) -> int:
        """The latest clock of the units that wait."""
        return max((unit.now for unit in self.units if unit.wait is not None), default=0)

    def first_failure(self) -> FabricError | None:
        """The error at the earliest cycle, the lowest node first."""
        if not self.failures:
            return None
        return self.failures[self.failed_at.index(min(self.failed_at))]

    @property
    def ran_ahead(self) -> bool:
        """Whether units were ahead of a failure, stopped where the schedule had brought them."""
        if not self.failed_at:
            return False
        pace_cycle = self.clock.pace_after(min(self.failed_at)[0])
        return any(unit.now >= pace_cycle for unit in self.units)

    def end_outside(self, scope: CancelScope) -> bool:
        """End a run whose units wait for what no unit, memory or clock will ever bring.

        To be called while no task can run: then a unit that counts as running waits for something
        outside of the fabric.

        Returns:
            Whether there were any, and ``scope`` has been cancelled.
        """
        if self._abandoned or scope.cancel_called or not self.clock.running:
            return False
        failed = {index for _, index in self.failed_at}
        outside = [
            unit
            for unit in self.units
            if unit.wait is None and not unit.finished and unit.index not in failed
        ]
        for unit in outside:
            assert unit.task is not None
            place = deepest_place(unit.task.iter_await_frames())
            what = "awaits something outside of the fabric: expected its channels only"
            self._fail_at(unit, what, place)
        if outside:
            self.stop(scope)
        return bool(outside)

    def refuse_child(self, scope: CancelScope, parent: Task) -> None:
        """End the run where ``parent``, which has just started a task, is that of an operator."""
        unit = self._unit_of.get(parent)
        if unit is not None:
            frames = reversed(list(traceback.walk_stack(None)))
            what = "starts a task of its own: expected one that awaits its channels in turn"
            self._fail_at(unit, what, deepest_place(frames))
            self.stop(scope)

    def refuse_unawaited(self, name: str) -> bool:
        """Note that an operator has dropped the coroutine ``name``, which it did not await.

        Returns:
            Whether it was an operator.
        """
        unit = self._unit_of.get(current_task()) if in_trio_task() else None
        if unit is None:
            return False
        if not self.clock.stopped:
            frames = reversed(list(traceback.walk_stack(None)))
            what = (
                f"{name.rpartition('.')[2].lstrip('_')}() is not awaited: expected `await` at once"
            )
            self._fail_at(unit, what, deepest_place(frames))
        return True

    def _fail_at(self, unit: Unit, what: str, place: Place | None) -> None:
        """Keep that the operator of ``unit`` did ``what`` in line ``place`` of the user's code."""
        node, ports = self.plan.nodes[unit.index], self.ports[unit.index]
        self._keep(node, ports, failure(what, place, node, ports))

    def _raised_by_user(self) -> bool:
        """Whether a KeyboardInterrupt now is not Ctrl-C's, which would have abandoned the run."""
        return self.catches_interrupts and not self._abandoned

    def _keep(self, node: Node, ports: Ports, error: BaseException) -> None:
        if not isinstance(error, FabricError):
            error = blamed(error, node, ports)
        elif error.file is None:
            error.file, error.line = node.place
        self.failures.append(error)
        self.failed_at.append((ports.unit.now, node.index))

    def _channels(
        self, depths: Mapping[str, int], recorder: Recorder | None
    ) -> tuple[Channel, ...]:
        edges = self.plan.edges
        known = {edge.key for edge in edges}
        for key in depths:
            if key not in known:
                near = ", ".join(sorted(known)[:8])
                raise ConfigurationError(
                    f"--depth {key}: no channel has that name: expected consumer.input, "
                    f"such as {near}"
                )
        channels = []
        for number, edge in enumerate(edges):
            depth = depths.get(edge.key, self.plan.program.channel_depth)
            ends = self.units[edge.producer.index], self.units[edge.consumer.index]
            if recorder is None:
                channel = Channel(edge.name, depth, *ends, self.clock)
            else:
                channel = recorder.channel(edge.name, depth, *ends, self.clock, number)
            channels.append(channel)
        return tuple(channels)

    def _memory(self, recorder: Recorder | None) -> OffChip | None:
        clients = [
            (node.operator.off_chip, unit)
            for node, unit in zip(self.plan.nodes, self.units, strict=True)
        ]
        readers = [unit for side, unit in clients if side == "read"]
        writers = [unit for side, unit in clients if side == "write"]
        description = self.plan.program.hardware.hbm
        memory = memory_of(description, readers, writers)
        if memory is None or recorder is None:
            return memory
        return recorder.off_chip(memory, description.request_bytes)

    def _ports(self, functional: bool) -> tuple[Ports, ...]:
        nodes = self.plan.nodes
        inputs: list[dict[int, Channel]] = [{} for _ in nodes]
        outputs: list[list[Sink]] = [[Discard()] * len(node.outputs) for node in nodes]
        for edge, channel in zip(self.plan.edges, self.channels, strict=True):
            inputs[edge.consumer.index][edge.input] = channel
            sink: Sink = channel
            if edge.claims:
                sink = AssumedSink(channel, edge.claims, edge.type.rank)
                self.assumed.append(sink)
            outputs[edge.producer.index][edge.output] = sink
        made = tuple(
            Ports(
                unit=unit,
                inputs=tuple(inputs[node.index][port] for port in range(len(node.inputs))),
                outputs=tuple(outputs[node.index]),
                input_types=node.input_types,
                output_types=node.output_types,
                functional=functional,
                clock=self.clock,
                off_chip=self.off_chip,
                region=self.plan.layout.region(node),
                on_chip=self.on_chip,
                stored=self.stored,
            )
            for node, unit in zip(nodes, self.units, strict=True)
        )
        names = {(edge.producer.index, edge.output): edge.name for edge in self.plan.edges}
        return tuple(
            ports if is_own(node.operator) else checked_ports(ports, _names(node, names))
            for node, ports in zip(nodes, made, strict=True)
        )


def _names(node: Node, edges: Mapping[tuple[int, int], str]) -> tuple[str, ...]:
    """Return what the outputs of ``node`` are called: as their channels, where they are read."""
    return tuple(
        edges.get((node.index, port), f"{node.name}.{port}") for port in range(len(node.outputs))
    )


def _unit(node: Node, plan: Plan) -> Unit:
    program = plan.program
    bytes_per_cycle = program.hardware.on_chip.bytes_per_cycle
    operator = node.operator
    own = is_own(operator)
    if isinstance(operator, ComputeOperator):
        flops_per_cycle = operator.flops_per_cycle or program.flops_per_cycle
        return unit_class(ComputeUnit, own=own)(
            node.name,
            node.index,
            node.place,
            flops_per_cycle=flops_per_cycle if operator.has_arithmetic else 0,
            bytes_per_cycle=bytes_per_cycle,
        )
    of_kind = MemoryUnit if operator.kind == "memory" else Unit
    return unit_class(of_kind, own=own)(
        node.name, node.index, node.place, bytes_per_cycle=bytes_per_cycle
    )

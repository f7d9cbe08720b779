"""From a plan to a machine: units, channels, memories, and what each operator sees of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from fabric.engine.assumed_sink import AssumedSink
from fabric.engine.channel import Channel, Discard
from fabric.engine.checked_unit import CheckedUnit, unit_class
from fabric.engine.clock import VirtualClock
from fabric.engine.memories import memory_of
from fabric.engine.off_chip import OffChip
from fabric.engine.on_chip import OnChipMemory
from fabric.engine.ports import Ports, Sink
from fabric.engine.stored import Stored
from fabric.engine.unit import ComputeUnit, MemoryUnit, Unit
from fabric.machine.checked_memory import CheckedMemory
from fabric.machine.checked_ports import checked_ports
from fabric.machine.failures import Failures
from fabric.machine.machine import Machine
from fabric.telling.errors import ConfigurationError
from fabric.telling.place import is_own
from fabric.wiring.behaviour import is_conducted
from fabric.wiring.elaborate import Plan
from fabric.wiring.operator import ComputeOperator, Node

__all__ = ["TracedParts", "assemble"]


class TracedParts(Protocol):
    """Makes the parts of a machine that is traced."""

    def check(self, units: Sequence[Unit]) -> None:
        """Refuse to trace none of ``units``."""

    def channel(
        self,
        name: str,
        depth: int,
        producer: Unit,
        consumer: Unit,
        clock: VirtualClock,
        number: int,
    ) -> Channel:
        """Return the channel ``number``."""
        ...

    def off_chip(self, memory: OffChip, request_bytes: int) -> OffChip:
        """Return what stands for ``memory``, whose requests move ``request_bytes`` each."""
        ...

    def on_chip_memory(self, capacity_bytes: int | None, clock: VirtualClock) -> OnChipMemory:
        """Return the on-chip memory."""
        ...


def assemble(
    plan: Plan,
    clock: VirtualClock,
    *,
    functional: bool,
    depths: Mapping[str, int],
    capacity_bytes: int | None,
    traced: TracedParts | None = None,
) -> Machine:
    """Build the machine for a program.

    Args:
        plan: the program.
        clock: at cycle 0.
        functional: tiles have data.
        depths: of single channels, by ``consumer.input``.
        capacity_bytes: of the on-chip memory; None for no limit.
        traced: makes what is traced; None traces nothing and costs nothing.

    Raises:
        ConfigurationError: a depth names no channel or is below 1; or the memory is not known.
    """
    kinds = {type(node.operator) for node in plan.nodes}
    conducted = {kind for kind in kinds if is_conducted(kind)}
    units = tuple(
        _unit(node, plan, checked=type(node.operator) not in conducted) for node in plan.nodes
    )
    if traced is not None:
        traced.check(units)
    channels = _channels(plan, units, clock, depths, traced)
    on_chip = (OnChipMemory if traced is None else traced.on_chip_memory)(capacity_bytes, clock)
    failures = Failures()
    clock.memory = off_chip = _off_chip(plan, units, failures, traced)
    assumed = {
        number: AssumedSink(channels[number], edge.claims, edge.type.rank)
        for number, edge in enumerate(plan.edges)
        if edge.claims
    }
    inputs: list[dict[int, Channel]] = [{} for _ in plan.nodes]
    outputs: list[list[Sink]] = [[Discard()] * len(node.outputs) for node in plan.nodes]
    for number, (edge, channel) in enumerate(zip(plan.edges, channels, strict=True)):
        inputs[edge.consumer.index][edge.input] = channel
        outputs[edge.producer.index][edge.output] = assumed.get(number, channel)
    stored = Stored()
    ports = tuple(
        Ports(
            unit=unit,
            inputs=tuple(inputs[node.index][port] for port in range(len(node.inputs))),
            outputs=tuple(outputs[node.index]),
            input_types=node.input_types,
            output_types=node.output_types,
            functional=functional,
            clock=clock,
            off_chip=off_chip,
            region=plan.layout.region(node),
            on_chip=on_chip,
            stored=stored,
        )
        for node, unit in zip(plan.nodes, units, strict=True)
    )
    return Machine(
        plan=plan,
        clock=clock,
        units=units,
        channels=channels,
        assumed=tuple(assumed.values()),
        off_chip=off_chip,
        on_chip=on_chip,
        ports=_with_checks(plan, ports),
        stored=stored,
        failures=failures,
    )


def _unit(node: Node, plan: Plan, *, checked: bool) -> Unit:
    program = plan.program
    bytes_per_cycle = program.hardware.on_chip.bytes_per_cycle
    operator = node.operator
    if isinstance(operator, ComputeOperator):
        flops_per_cycle = operator.flops_per_cycle or program.flops_per_cycle
        return unit_class(ComputeUnit, checked=checked)(
            node.name,
            node.index,
            node.place,
            flops_per_cycle=flops_per_cycle if operator.has_arithmetic else 0,
            bytes_per_cycle=bytes_per_cycle,
        )
    of_kind = MemoryUnit if operator.kind == "memory" else Unit
    return unit_class(of_kind, checked=checked)(
        node.name, node.index, node.place, bytes_per_cycle=bytes_per_cycle
    )


def _channels(
    plan: Plan,
    units: Sequence[Unit],
    clock: VirtualClock,
    depths: Mapping[str, int],
    traced: TracedParts | None,
) -> tuple[Channel, ...]:
    known = {edge.key for edge in plan.edges}
    for key in depths:
        if key not in known:
            near = ", ".join(sorted(known)[:8])
            raise ConfigurationError(
                f"--depth {key}: no channel has that name: expected consumer.input, such as {near}"
            )
    channels = []
    for number, edge in enumerate(plan.edges):
        depth = depths.get(edge.key, plan.program.channel_depth)
        ends = units[edge.producer.index], units[edge.consumer.index]
        if traced is None:
            channel = Channel(edge.name, depth, *ends, clock)
        else:
            channel = traced.channel(edge.name, depth, *ends, clock, number)
        channels.append(channel)
    return tuple(channels)


def _off_chip(
    plan: Plan, units: Sequence[Unit], failures: Failures, traced: TracedParts | None
) -> OffChip | None:
    clients = [(node.operator.off_chip, unit) for node, unit in zip(plan.nodes, units, strict=True)]
    readers = [unit for side, unit in clients if side == "read"]
    writers = [unit for side, unit in clients if side == "write"]
    description = plan.program.hardware.hbm
    memory = memory_of(description, readers, writers)
    if memory is not None and not is_own(memory):
        memory = CheckedMemory(memory, description.model, failures.keep_of_memory)
    if memory is None or traced is None:
        return memory
    return traced.off_chip(memory, description.request_bytes)


def _with_checks(plan: Plan, ports: tuple[Ports, ...]) -> tuple[Ports, ...]:
    """Return ``ports``, those of operators that are not conducted with a look at what they do."""
    names = {(edge.producer.index, edge.output): edge.name for edge in plan.edges}
    return tuple(
        checked_ports(each, _names(node, names)) if isinstance(each.unit, CheckedUnit) else each
        for node, each in zip(plan.nodes, ports, strict=True)
    )


def _names(node: Node, edges: Mapping[tuple[int, int], str]) -> tuple[str, ...]:
    """Return what the outputs of ``node`` are called: as their channels, where they are read."""
    return tuple(
        edges.get((node.index, port), f"{node.name}.{port}") for port in range(len(node.outputs))
    )

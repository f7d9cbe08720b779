"""Builds a machine from a plan: units, channels, memories, and the ports of each operator."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

# Any: an input is None until its channel is found.
from typing import TYPE_CHECKING, Any, Final

from fabric.graph.hardware.latency import ONE_CYCLE, Hop
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.mistakes import costs_of
from fabric.graph.wiring.operator import ComputeOperator, Node, Operator, is_conducted
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.place import is_ours
from fabric.messages.text import close_to
from fabric.messages.users_code import users_code
from fabric.timing.compiled.port_views import Views
from fabric.timing.compiled.region import region_of
from fabric.timing.engine.channel import AssumedSink, Channel, Discard
from fabric.timing.engine.clock import VirtualClock
from fabric.timing.engine.log import ChannelLog, Keeper, Log
from fabric.timing.engine.observer import Observation, Observer, Watched
from fabric.timing.engine.off_chip import LoggedOffChip, OffChip
from fabric.timing.engine.on_chip import OnChipMemory
from fabric.timing.engine.ports import Sink, Stored
from fabric.timing.engine.unit import ComputeUnit, MemoryUnit, Unit
from fabric.timing.guards.operators import guarded_ports
from fabric.timing.guards.parts import GuardedMemory, GuardedObserver
from fabric.timing.machine.machine import Companion, Failures, Machine, Routes, routes_of
from fabric.timing.memories.registry import memory_of

if TYPE_CHECKING:
    from fabric.timing.compiled.region import Region

_DISCARD: Final = Discard()
"""The sink of every unread output."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A program and the options with which its machine is built.

    Attributes:
        depths, hops: of single channels, by ``consumer.input``; the program has the others.
        keepers: receive the log. Without keepers and observers, the run has no log.
        compiles: whether operators may run without tasks.
        repeats: the number of inputs; see ``rounds``.
    """

    plan: Plan
    functional: bool = False
    depths: Mapping[str, int] = field(default_factory=dict)
    hops: Mapping[str, Hop] = field(default_factory=dict)
    capacity_bytes: int | None = None
    observers: Sequence[Observer] = ()
    keepers: Sequence[Keeper] = ()
    compiles: bool = False
    repeats: int = 1


def assemble(setup: Setup, clock: VirtualClock) -> Machine:
    """Build the machine for a program.

    Raises:
        ConfigurationError: the channel of a depth or a hop is unknown, a depth is below 1, a hop is
            stated although routes decide the hops, or the memory is unknown.
    """
    plan, capacity_bytes = setup.plan, setup.capacity_bytes
    kinds = {type(node.operator) for node in plan.nodes}
    conducted = {kind for kind in kinds if is_conducted(kind)}
    units = tuple(_unit(node, plan) for node in plan.nodes)
    failures = Failures()
    log = _log(setup, units, clock, failures)
    assert (plan.floor is None) == (plan.program.hardware.network is None)
    routes = None if plan.floor is None else routes_of(plan, plan.floor)
    clock.network = links = None if routes is None else routes.network
    channels = _channels(setup, units, clock, routes)
    on_chip = _on_chip(plan, clock, capacity_bytes, log)
    clock.memory = off_chip = _off_chip(plan, units, failures, log)
    clock.chose = None if log is None else log.chose
    inputs, outputs, assumed = _ends(plan, channels)
    stored = Stored()
    views = Views(
        plan,
        units,
        inputs,
        outputs,
        functional=setup.functional,
        clock=clock,
        off_chip=off_chip,
        on_chip=on_chip,
        stored=stored,
        log=log,
        repeats=setup.repeats,
        interval_cycles=plan.program.hardware.channel.interval_cycles,
    )
    region = None
    # The compiled loop does not report allocations by unit.
    has_limits = capacity_bytes is not None or on_chip.pages is not None
    if setup.compiles and not (setup.functional or setup.observers or has_limits):
        # The compiled loop runs an operator only once.
        may_compile = [
            type(node.operator) in conducted and (setup.repeats == 1 or bool(node.inputs))
            for node in plan.nodes
        ]
        region = region_of(plan, views, channels, may_compile, links)
    _open(plan, channels, region, log)
    if len(conducted) < len(kinds):
        _guard(plan, views, conducted)
    return Machine(
        plan=plan,
        clock=clock,
        units=units,
        channels=channels,
        assumed=assumed,
        off_chip=off_chip,
        on_chip=on_chip,
        ports=views,
        stored=stored,
        failures=failures,
        region=region,
        routes=routes,
    )


def _on_chip(
    plan: Plan, clock: VirtualClock, capacity_bytes: int | None, log: Log | None
) -> OnChipMemory:
    on_chip = OnChipMemory(capacity_bytes, clock, log)
    on_chip.pages = plan.program.hardware.on_chip.pages
    if plan.program.hardware.on_chip.spill:
        on_chip.spill_address = plan.memory_map.end_address
        on_chip.reserved_bytes = sum(map(on_chip.room_bytes, unspilled_bytes(plan)))
    return on_chip


def _ends(
    plan: Plan, channels: Sequence[Channel]
) -> tuple[list[tuple[Any, ...]], list[tuple[Sink, ...]], tuple[AssumedSink, ...]]:
    """Return the sources and sinks of each node, and the sinks that check assumptions."""
    assumed: list[AssumedSink] = []
    inputs: list[list[Any]] = [[None] * len(node.inputs) for node in plan.nodes]
    outputs: list[list[Sink]] = [[_DISCARD] * len(node.outputs) for node in plan.nodes]
    for edge, channel in zip(plan.edges, channels, strict=True):
        sink: Sink = channel
        if edge.claims:
            sink = AssumedSink(channel, edge.claims, edge.type.rank)
            assumed.append(sink)
        inputs[edge.consumer.index][edge.input] = channel
        outputs[edge.producer.index][edge.output] = sink
    return list(map(tuple, inputs)), list(map(tuple, outputs)), tuple(assumed)


def _open(plan: Plan, channels: Sequence[Channel], region: Region | None, log: Log | None) -> None:
    """Open the channels of tasks, which write to ``log``."""
    inner = frozenset() if region is None else region.indices
    for number, (edge, channel) in enumerate(zip(plan.edges, channels, strict=True)):
        if edge.producer.index not in inner or edge.consumer.index not in inner:
            channel.open()
            if isinstance(log, Observation):
                channel.log = Watched(number, channel, log)
            elif log is not None:
                channel.log = ChannelLog(number, channel.producer, channel.consumer, log)


def _unit(node: Node, plan: Plan) -> Unit:
    program = plan.program
    hardware, operator = program.hardware, node.operator
    bytes_per_cycle = hardware.on_chip.bytes_per_cycle
    if isinstance(operator, ComputeOperator):
        flops_per_cycle = operator.flops_per_cycle or program.flops_per_cycle
        return ComputeUnit(
            node.name,
            node.index,
            node.place,
            flops_per_cycle=flops_per_cycle if operator.has_arithmetic else 0,
            bytes_per_cycle=bytes_per_cycle,
            registers=hardware.registers,
        )
    of_kind = MemoryUnit if operator.kind == "memory" else Unit
    return of_kind(
        node.name,
        node.index,
        node.place,
        bytes_per_cycle=bytes_per_cycle,
        registers=hardware.registers,
    )


def _channels(
    setup: Setup, units: Sequence[Unit], clock: VirtualClock, routes: Routes | None
) -> tuple[Channel, ...]:
    plan, depths, hops = setup.plan, setup.depths, setup.hops
    program = plan.program
    _check_names("--depth", depths, plan)
    _check_names("hops", hops, plan)
    if routes is not None:
        _refuse_hops(hops, program.hops)
    interval_cycles = program.hardware.channel.interval_cycles
    is_stated = depths or program.depths or hops or program.hops
    channels = []
    for number, edge in enumerate(plan.edges):
        depth, hop = program.channel_depth, ONE_CYCLE
        if is_stated:
            key = edge.key
            depth = depths.get(key) or program.depth_of(key)
            hop = hops.get(key) or program.hops.get(key, ONE_CYCLE)
        ends = units[edge.producer.index], units[edge.consumer.index]
        way = None
        if routes is not None:
            hop, way = routes.hops[number], routes.shared[number]
        channels.append(Channel(edge.name, depth, *ends, clock, hop, interval_cycles, way))
    if routes is not None and routes.network is not None:
        routes.network.connect([[channels[number] for number in flow] for _, flow in routes.trees])
    return tuple(channels)


def _refuse_hops(hops: Mapping[str, Hop], of_program: Mapping[str, Hop]) -> None:
    for what, stated in ("hops", hops), ("the program's hops", of_program):
        for key in stated:
            raise ConfigurationError(
                f"{what} {key}: the hardware has [network], so that the cycles of a channel follow "
                "from its route: expected no hops of single channels"
            )


def _log(
    setup: Setup, units: tuple[Unit, ...], clock: VirtualClock, failures: Failures
) -> Log | None:
    observers = setup.observers
    keepers = [*setup.keepers, *(one for one in observers if isinstance(one, Companion))]
    if not observers:
        return Log(keepers, units) if keepers else None

    def fail(cycle: int, error: FabricError) -> None:
        failures.keep_at(cycle, error)
        # The caller of the observer continues, and all units run until they wait.
        clock.stopping = True

    guarded = [one if is_ours(type(one)) else GuardedObserver(one, fail) for one in observers]
    return Observation(guarded, keepers, units)


def _check_names(what: str, keys: Collection[str], plan: Plan) -> None:
    names = {edge.key for edge in plan.edges} if keys else set()
    for key in keys:
        if key not in names:
            raise ConfigurationError(
                f"{what} {key}: no channel has that name: expected OPERATOR.INPUT, "
                f"{close_to(sorted(names), key)}"
            )


def _off_chip(
    plan: Plan, units: Sequence[Unit], failures: Failures, log: Log | None
) -> OffChip | None:
    readers = [units[index] for index, side in plan.clients.items() if side == "read"]
    writers = [units[index] for index, side in plan.clients.items() if side == "write"]
    if not readers and not writers:
        return None
    description = plan.program.hardware.hbm
    if is_ours(type(description)):
        memory = memory_of(description, readers, writers)
    else:
        with users_code(f"memory {description.model!r}: making it"):
            memory = memory_of(description, readers, writers)
    if not is_ours(type(memory)):
        memory = GuardedMemory(memory, description.model, len(units), failures.keep_at)
    return memory if log is None else LoggedOffChip(memory, description.request_bytes, log)


def _guard(plan: Plan, views: Views, conducted: set[type[Operator]]) -> None:
    names = {(edge.producer.index, edge.output): edge.name for edge in plan.edges}
    for node in plan.nodes:
        if type(node.operator) not in conducted:
            ends = [(node.index, port) for port in range(len(node.outputs))]
            # An output that is not read has no channel.
            written = [names.get(end, f"{node.name}.{end[1]}") for end in ends]
            views.replace(node.index, guarded_ports(views[node.index], written))


def unspilled_bytes(plan: Plan) -> list[int]:
    """Return the sizes of buffers that cannot be spilled, if shapes decide them before a run.

    An accumulator keeps its room until its group ends. A tile on its way to or from off-chip memory
    returns its room soon, so only the largest such tile is in the list.
    """
    kept: list[int] = []
    passing = [0]
    for node in plan.nodes:
        if node.operator.spills is None:
            size_bytes = costs_of(node, node.input_types, node.output_types).on_chip_bytes
            if isinstance(size_bytes, int):
                (kept if node.operator.off_chip is None else passing).append(size_bytes)
    return [*kept, max(passing)]

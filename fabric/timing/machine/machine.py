"""The machine a program runs on, as data; its state, and its errors with unit, line and cycle.

It has one unit per operator, one channel per edge, and memories.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from fabric.graph.hardware.latency import ONE_CYCLE, Hop
from fabric.graph.values.stream_type import kind_of
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.inserted import Broadcast
from fabric.graph.wiring.operator import Node, Operator, behaving_as
from fabric.messages.errors import FabricError, OperatorError, Refusal, error_text
from fabric.messages.place import Place, defining_place, is_ours, raising_place
from fabric.timing.compiled.port_views import Views
from fabric.timing.compiled.region import Region
from fabric.timing.engine.channel import AssumedSink, Channel
from fabric.timing.engine.clock import VirtualClock, Way
from fabric.timing.engine.log import Keeper
from fabric.timing.engine.observer import Observer
from fabric.timing.engine.off_chip import OffChip, counters_of
from fabric.timing.engine.on_chip import OnChipMemory
from fabric.timing.engine.ports import Ports, Stored
from fabric.timing.engine.unit import ComputeUnit, Unit
from fabric.timing.network.links import Links
from fabric.timing.state.resource_use import LinkUse, MemoryUse, NetworkUse, RouteUse
from fabric.timing.state.run_state import (
    ChannelFacts,
    ChannelState,
    OnChipState,
    RunState,
    UnitFacts,
    UnitState,
    WaitState,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fabric.graph.wiring.sites import Floor
    from fabric.timing.engine.unit import Awaited, Wait


class Failures:
    """Errors of operators, and of a user's memory and observers."""

    def __init__(self) -> None:
        self.circling: list[tuple[Unit, Place | None]] = []
        self._kept: list[tuple[int, int, FabricError]] = []

    def keep(self, error: BaseException, node: Node, ports: Ports) -> None:
        """Keep an error of the operator of ``node`` or of its function."""
        if not isinstance(error, FabricError):
            error = blamed(error, node.operator, ports)
        elif error.file is None:
            error.file, error.line = node.place
        self._kept.append((ports.unit.now, node.index, error))

    def keep_at(self, cycle: int, error: FabricError) -> None:
        """Keep an error of a user's memory or observer, the first among errors of its cycle."""
        self._kept.append((cycle, -1, error))

    @property
    def first(self) -> FabricError | None:
        """The error of the earliest cycle, and of the lowest node in that cycle."""
        return min(self._kept, key=lambda kept: kept[:2])[2] if self._kept else None

    @property
    def first_cycle(self) -> int | None:
        return min((cycle for cycle, _, _ in self._kept), default=None)


def blamed(error: BaseException, operator: Operator, ports: Ports) -> OperatorError:
    """Return the error that names ``operator``, for an exception that it or its function raised."""
    place = raising_place(error) or _function_place(operator)
    if not isinstance(error, Refusal):
        return ports.failure(error_text(error), place)
    return ports.failure(str(error), error.place or place, counted=error.counted)


def users_among(nodes: Iterable[Node]) -> frozenset[int]:
    """Return the indices of ``nodes`` with an operator or a function of a user.

    Results are cached by the classes of operators and attributes, for programs of many nodes.
    """
    cached: dict[tuple[type, ...], bool] = {}
    indices = set()
    for node in nodes:
        operator = node.operator
        kinds = (type(operator), *map(type, vars(operator).values()))
        if kinds not in cached:
            ours = is_ours(behaving_as(kinds[0])) and _function_place(operator) is None
            cached[kinds] = not ours
        if cached[kinds]:
            indices.add(node.index)
    return frozenset(indices)


def has_effects(plan: Plan, *others: object) -> bool:
    """Whether an operator, a function, the memory or one of ``others`` states ``effects``."""
    kinds = set(map(type, (plan.program.hardware.hbm, *others)))
    for node in plan.nodes:
        kinds.update(map(type, (node.operator, *vars(node.operator).values())))
    return any(getattr(kind, "effects", False) is True for kind in kinds)


def _function_place(operator: Operator) -> Place | None:
    for attribute in vars(operator).values():
        for method in ("apply", "update"):
            place = defining_place(getattr(attribute, method, None))
            if place is not None:
                return place
    return None


@dataclass(frozen=True, eq=False)
class Machine:
    """Units, channels and memories of one run; see ``assemble``.

    Attributes:
        assumed: sinks of streams with a shape that the program states.
        off_chip: None if the program does not use it.
        region: the compiled units; None if every unit is a task.
        routes: None if units have no sites.
    """

    plan: Plan
    clock: VirtualClock
    units: tuple[Unit, ...]
    channels: tuple[Channel, ...]
    assumed: tuple[AssumedSink, ...]
    off_chip: OffChip | None
    on_chip: OnChipMemory
    ports: Views
    stored: Stored
    failures: Failures
    region: Region | None = None
    routes: Routes | None = None

    def publish(self) -> None:
        if self.region is not None:
            self.region.publish()

    def is_compiled(self, node: Node) -> bool:
        return self.region is not None and node.index in self.region.indices

    @cached_property
    def unit_facts(self) -> tuple[UnitFacts, ...]:
        """Facts of the units; cached, since making them takes most of the time of ``state_of``."""
        return tuple(
            UnitFacts(
                unit.index,
                unit.name,
                type(node.operator).__name__,
                unit.kind,
                unit.place,
                unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0,
            )
            for unit, node in zip(self.units, self.plan.nodes, strict=True)
        )

    @cached_property
    def channel_facts(self) -> list[ChannelFacts]:
        ends = zip(self.plan.edges, self.channels, strict=True)
        return [
            ChannelFacts(
                number,
                channel.name,
                edge.key,
                edge.producer.index,
                edge.consumer.index,
                kind_of(edge.type.value),
                channel.depth,
                channel.forward_cycles,
                channel.backward_cycles,
            )
            for number, (edge, channel) in enumerate(ends)
        ]

    @property
    def sinks(self) -> tuple[Channel, ...]:
        ends = zip(self.channels, self.plan.edges, strict=True)
        return tuple(channel for channel, edge in ends if not edge.consumer.outputs)

    @property
    def elements(self) -> int:
        """Values dequeued so far, on all channels."""
        self.publish()
        return sum(channel.elements for channel in self.channels)

    @property
    def ran_ahead(self) -> bool:
        """Whether units ran so far past a failure that the state depends on the schedule."""
        cycle = self.failures.first_cycle
        if cycle is None:
            return False
        pace_cycle = self.clock.pace_after(cycle)
        return any(unit.now >= pace_cycle for unit in self.units)


class Companion(Observer, Keeper):
    """An observer with a task, which also receives the rows of the run."""

    def attach(self, machine: Machine, interrupt: Callable[[], bool]) -> None:
        """Prepare for the run of ``machine``; ``interrupt`` abandons it, from any thread."""
        raise NotImplementedError

    async def run(self) -> None:
        raise NotImplementedError


class Routes(NamedTuple):
    """Routes of the channels of a program.

    Attributes:
        hops: in edge order; one cycle within a site, else the latency of the route.
        network: None if no link is limited.
        shared: by channel; None for a route without limited links. All channels of a Broadcast are
            one flow.
        trees: by flow, the numbers of its links and of its channels.
    """

    hops: Sequence[Hop]
    network: Links | None
    shared: Sequence[Way | None]
    trees: Sequence[tuple[Sequence[int], Sequence[int]]]


def routes_of(plan: Plan, floor: Floor) -> Routes:
    """Return routes along rows, then columns; a Broadcast uses each link of its routes once."""
    mesh = floor.mesh
    sites = [floor.site_of(node) for node in plan.nodes]
    hops: list[Hop] = []
    ways: dict[int, tuple[int, ...]] = {}
    # By sender: a Broadcast, or one channel.
    trees: dict[tuple[int, int], list[int]] = {}
    for number, edge in enumerate(plan.edges):
        source, target = sites[edge.producer.index], sites[edge.consumer.index]
        if source == target:
            hops.append(ONE_CYCLE)
            continue
        ways[number], cycles = mesh.route(source, target)
        # Credits return over the same number of other links, and take the same cycles.
        hops.append(Hop(cycles, cycles))
        port = 0 if isinstance(edge.producer.operator, Broadcast) else edge.output
        trees.setdefault((edge.producer.index, port), []).append(number)
    limited: list[tuple[tuple[int, ...], list[int]]] = []
    for (producer, _), numbers in trees.items():
        links = ways[numbers[0]]
        if len(numbers) > 1:
            targets = [sites[plan.edges[number].consumer.index] for number in numbers]
            links = mesh.tree(sites[producer], targets).links
        if any(mesh.capacities[link] is not None for link in links):
            limited.append((links, numbers))
    shared: list[Way | None] = [None] * len(plan.edges)
    if not limited:
        return Routes(hops, None, shared, limited)
    network = Links(mesh.capacities, [links for links, _ in limited])
    for flow, (_, numbers) in enumerate(limited):
        for number in numbers:
            shared[number] = Way(network, flow)
    return Routes(hops, network, shared, limited)


def state_of(machine: Machine) -> RunState:
    """Return the state of ``machine``; no unit may run. It takes 1 microsecond per unit."""
    machine.publish()
    number: dict[Awaited, int] = {channel: at for at, channel in enumerate(machine.channels)}
    off_chip = machine.off_chip
    units = zip(machine.unit_facts, machine.units, strict=True)
    channels = zip(machine.channel_facts, machine.channels, strict=True)
    return RunState(
        program=machine.plan.program.name,
        cycles=cycles_of(machine),
        units=tuple([_unit(facts, unit, number) for facts, unit in units]),
        channels=tuple([_channel(facts, channel) for facts, channel in channels]),
        on_chip=_on_chip(machine.on_chip),
        hbm_bytes_moved=0 if off_chip is None else off_chip.bytes_moved,
        hbm=None if off_chip is None else counters_of(off_chip),
    )


def cycles_of(machine: Machine) -> int:
    """Return the largest clock, including the HBM's if it has stopped."""
    machine.publish()
    cycles = max(unit.now for unit in machine.units)
    off_chip = machine.off_chip
    if off_chip is not None and off_chip.final_cycle is not None:
        cycles = max(cycles, off_chip.final_cycle)
    return cycles


def shutdown_cycles_of(machine: Machine) -> int:
    """Return the cycles from the end of the last client until the off-chip memory stopped."""
    off_chip = machine.off_chip
    if off_chip is None or off_chip.final_cycle is None:
        return 0
    last_cycle = max(machine.units[client].now for client in machine.plan.clients)
    return off_chip.final_cycle - last_cycle


def memory_use(machine: Machine) -> MemoryUse:
    moved: Counter[str] = Counter()
    for node, unit in zip(machine.plan.nodes, machine.units, strict=True):
        side = node.operator.off_chip or f"spilled {node.operator.spills}"
        moved[side] += unit.off_chip_bytes
    on_chip, spills = machine.on_chip, machine.plan.program.hardware.on_chip.spill
    return MemoryUse(
        moved["read"],
        moved["write"],
        on_chip.peak_bytes,
        on_chip.peak_pages,
        on_chip.peak_empty_bytes,
        moved["spilled write"] if spills else None,
        moved["spilled read"] if spills else None,
    )


def _unit(facts: UnitFacts, unit: Unit, number: Mapping[Awaited, int]) -> UnitState:
    wait = unit.wait
    return UnitState(
        **structs.asdict(facts),
        cycle=unit.now,
        finished=unit.finished,
        wait=None if wait is None else _wait(wait, number),
        busy_cycles=unit.busy_cycles,
        hbm_cycles=unit.off_chip_cycles,
        capacity_cycles=unit.capacity_cycles,
        flops=unit.flops,
    )


def _wait(wait: Wait, number: Mapping[Awaited, int]) -> WaitState:
    channels = tuple([number[channel] for channel in wait.channels])
    return WaitState(wait.operation, channels, wait.since_cycle, wait.any_of, wait.stops)


def _channel(facts: ChannelFacts, channel: Channel) -> ChannelState:
    held = channel.held_elements
    taken = channel.elements
    sent = taken + channel.held_values if held else taken
    return ChannelState(
        **structs.asdict(facts),
        held=held,
        sent=sent,
        taken=taken,
        bare_stops=channel.sent - sent,
        closed_cycle=channel.closed_cycle,
        newest_sent_cycle=channel.last_sent_cycle,
        last_taken_cycle=channel.last_taken_cycle,
        peak_occupancy=channel.peak_occupancy,
        empty_cycles=channel.empty_cycles,
        full_cycles=channel.full_cycles,
        credit_cycles=channel.credit_cycles,
        left_over=channel.left_over,
    )


def _on_chip(memory: OnChipMemory) -> OnChipState:
    held = [(unit.index, held_bytes) for unit, held_bytes in memory.held_by.items() if held_bytes]
    requests = [(unit.index, wanted_bytes) for unit, wanted_bytes in memory.requests]
    return OnChipState(memory.capacity_bytes, tuple(requests), tuple(sorted(held)), memory.pages)


def network_use(machine: Machine) -> NetworkUse | None:
    """Return the use of the network; None if units have no sites."""
    floor, routes = machine.plan.floor, machine.routes
    if floor is None or routes is None:
        return None
    mesh = floor.mesh
    edges = machine.plan.edges
    used = []
    for edge, channel in zip(edges, machine.channels, strict=True):
        source, target = floor.site_of(edge.producer), floor.site_of(edge.consumer)
        if source != target:
            way, cycles = channel.way, channel.forward_cycles
            load = (None, 0) if way is None else (way.bytes_sent, way.links_cycles)
            used.append(RouteUse(channel.name, tuple(source), tuple(target), cycles, *load))
    carried: dict[int, int] = defaultdict(int)
    users: dict[int, list[str]] = defaultdict(list)
    for links, numbers in routes.trees:
        way = machine.channels[numbers[0]].way
        assert way is not None
        for link in links:
            carried[link] += way.bytes_sent
            users[link] += [edges[number].name for number in numbers]
    wired = {node.index for node in machine.plan.program.nodes}
    per_site = [
        sum(node.index in wired for node in nodes)
        for _, nodes in floor.units_at(machine.plan.nodes)
        if nodes
    ]
    return NetworkUse(
        placement=None if floor.stated is None else floor.stated.file,
        sites=len(per_site),
        most_units=max(per_site),
        routes=tuple(used),
        links=tuple(
            LinkUse(
                mesh.link_name(link),
                carried[link],
                mesh.capacities[link],
                tuple(users[link]),
                *mesh.link_sites(link),
            )
            for link in sorted(carried)
            if carried[link]
        ),
    )

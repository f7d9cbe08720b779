"""The machine a program runs on, as data, and who runs beside it.

It has one unit per operator, one channel per edge, and memories. What of them is the same in every
state of a run is there once: names, places, and the routes of channels over a mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from fabric.graph.hardware.description import UnitKind
from fabric.graph.hardware.hop import ONE_CYCLE, Hop
from fabric.graph.values.stream_type import kind_of
from fabric.graph.wiring.elaborate import Broadcast, Plan
from fabric.graph.wiring.operator import Node
from fabric.messages.telling.place import Place
from fabric.timing.compiled.port_views import Views
from fabric.timing.compiled.region import Region
from fabric.timing.engine.assumed_sink import AssumedSink
from fabric.timing.engine.channel import Channel
from fabric.timing.engine.clock import VirtualClock
from fabric.timing.engine.observer import Observer
from fabric.timing.engine.off_chip import OffChip
from fabric.timing.engine.on_chip import OnChipMemory
from fabric.timing.engine.ports import Stored
from fabric.timing.engine.unit import ComputeUnit, Unit
from fabric.timing.machine.failures import Failures
from fabric.timing.network.links import Links

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.graph.wiring.sites import Floor
    from fabric.timing.network.links import SharedFlow

__all__ = ["Companion", "FixedChannel", "FixedUnit", "Machine", "Routes", "routes_of"]


@dataclass(frozen=True, eq=False)
class Machine:
    """Units, channels and memories of one run; see ``assemble``.

    Attributes:
        plan: what was built.
        clock: the global virtual clock.
        units: in node order.
        channels: in edge order.
        assumed: ends of channels whose stream the program has stated the shape of.
        off_chip: the memory behind the chip's pins, where the program uses it.
        on_chip: the on-chip memory.
        ports: what each operator sees, by its node's place.
        stored: what stores have written, by name.
        failures: errors that operators raised.
        region: the units that go on without a task of their own, where there are any.
        routes: of the channels, where the units have sites.
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
        """Let all units and channels say how far they are."""
        if self.region is not None:
            self.region.publish()

    def is_compiled(self, node: Node) -> bool:
        """Whether ``node`` has no task of its own."""
        return self.region is not None and node.index in self.region.indices

    @cached_property
    def fixed(self) -> Fixed:
        """What is the same in every state of it; to ask again would take most of a state's time."""
        return fixed_of(self.plan, self.units, self.channels)

    @property
    def sinks(self) -> tuple[Channel, ...]:
        """The channels whose readers send nothing on."""
        ends = zip(self.channels, self.plan.edges, strict=True)
        return tuple(channel for channel, edge in ends if not edge.consumer.outputs)

    @property
    def elements(self) -> int:
        """Values dequeued so far, on all channels."""
        self.publish()
        return sum(channel.elements for channel in self.channels)

    @property
    def waiting(self) -> int:
        """How many units wait."""
        return sum(unit.wait is not None for unit in self.units)

    @property
    def ran_ahead(self) -> bool:
        """Whether units were ahead of a failure, stopped where the schedule had brought them."""
        cycle = self.failures.first_cycle
        if cycle is None:
            return False
        pace_cycle = self.clock.pace_after(cycle)
        return any(unit.now >= pace_cycle for unit in self.units)


class Companion(Observer):
    """An observer with a task of its own."""

    def attach(self, machine: Machine, interrupt: Callable[[], bool]) -> None:
        """``machine`` is about to run.

        Args:
            machine: on which nothing has happened.
            interrupt: abandons the run, from any thread; says whether it still goes on.
        """
        raise NotImplementedError

    async def run(self) -> None:
        """Run as long as the operators do."""
        raise NotImplementedError


class FixedUnit(NamedTuple):
    """The first fields of a ``UnitState``."""

    number: int
    name: str
    operator: str
    kind: UnitKind
    place: Place
    flops_per_cycle: int


class FixedChannel(NamedTuple):
    """The first fields of a ``ChannelState``."""

    number: int
    name: str
    option: str
    producer: int
    consumer: int
    carries: str


class Fixed(NamedTuple):
    """Of all units and channels, in node and in edge order."""

    units: tuple[FixedUnit, ...]
    channels: tuple[FixedChannel, ...]


def fixed_of(plan: Plan, units: Sequence[Unit], channels: Sequence[Channel]) -> Fixed:
    """Return what is fixed of the ``units`` and ``channels`` of a machine for ``plan``."""
    return Fixed(
        tuple(
            FixedUnit(
                unit.index,
                unit.name,
                type(node.operator).__name__,
                unit.kind,
                unit.place,
                unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0,
            )
            for unit, node in zip(units, plan.nodes, strict=True)
        ),
        tuple(
            FixedChannel(
                number,
                channel.name,
                edge.key,
                edge.producer.index,
                edge.consumer.index,
                kind_of(edge.type.value),
            )
            for number, (edge, channel) in enumerate(zip(plan.edges, channels, strict=True))
        ),
    )


class Routes(NamedTuple):
    """How the channels of a program go.

    Attributes:
        hops: of each channel, in edge order: one cycle within a site, that of its route elsewhere.
        network: the links; None where nothing has to wait for one.
        flows: of each channel; None of one that no link limits. Those from one Broadcast are one.
        trees: of each flow, in their order, its links by number, and its channels.
    """

    hops: Sequence[Hop]
    network: Links | None
    flows: Sequence[SharedFlow | None]
    trees: Sequence[tuple[Sequence[int], Sequence[int]]]


def routes_of(plan: Plan, floor: Floor) -> Routes:
    """Return the routes of the channels of ``plan`` over the mesh of ``floor``.

    Along the row first, then along the column; credits take as many cycles back. What a Broadcast
    sends goes over the links of all its routes once.
    """
    mesh = floor.mesh
    sites = [floor.site_of(node) for node in plan.nodes]
    hops: list[Hop] = []
    ways: dict[int, tuple[int, ...]] = {}
    # By who sends: a Broadcast, or one channel.
    trees: dict[tuple[int, int], list[int]] = {}
    for number, edge in enumerate(plan.edges):
        source, target = sites[edge.producer.index], sites[edge.consumer.index]
        if source == target:
            hops.append(ONE_CYCLE)
            continue
        ways[number], cycles = mesh.route(source, target)
        # Back it goes over other links, of which there are as many.
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
    flows: list[SharedFlow | None] = [None] * len(plan.edges)
    if not limited:
        return Routes(hops, None, flows, limited)
    network = Links(mesh.capacities, [links for links, _ in limited])
    for flow, (_, numbers) in zip(network.flows, limited, strict=True):
        for number in numbers:
            flows[number] = flow
    return Routes(hops, network, flows, limited)

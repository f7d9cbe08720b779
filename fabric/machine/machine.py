"""The machine a program runs on, as data: one unit per operator, one channel per edge, memories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fabric.compiled.region import Region
from fabric.compiled.views import Views
from fabric.engine.assumed_sink import AssumedSink
from fabric.engine.channel import Channel
from fabric.engine.clock import VirtualClock
from fabric.engine.off_chip import OffChip
from fabric.engine.on_chip import OnChipMemory
from fabric.engine.ports import Stored
from fabric.engine.unit import Unit
from fabric.machine.failures import Failures
from fabric.machine.fixed import Fixed, fixed_of
from fabric.machine.routes import Routes
from fabric.wiring.elaborate import Plan
from fabric.wiring.operator import Node

__all__ = ["Machine"]


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

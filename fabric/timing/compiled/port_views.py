"""Ports of a machine's operators, made on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from fabric.timing.engine.ports import Ports

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Region
    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.clock import VirtualClock
    from fabric.timing.engine.observation import Observation
    from fabric.timing.engine.off_chip import OffChip
    from fabric.timing.engine.on_chip import OnChipMemory
    from fabric.timing.engine.ports import Sink, Stored
    from fabric.timing.engine.unit import Unit


class Views:
    """Ports by node, made on demand: compiled operators need none."""

    def __init__(
        self,
        plan: Plan,
        units: Sequence[Unit],
        inputs: Sequence[tuple[Channel, ...]],
        outputs: Sequence[tuple[Sink, ...]],
        *,
        functional: bool,
        clock: VirtualClock,
        off_chip: OffChip | None,
        on_chip: OnChipMemory,
        stored: Stored,
        observation: Observation | None,
        repeats: int,
    ) -> None:
        self.units: Final = units
        self.inputs: Final = inputs
        self.outputs: Final = outputs
        self.clock: Final = clock
        self.off_chip: Final = off_chip
        self.on_chip: Final = on_chip
        self.observation: Final = observation
        self._plan: Final = plan
        self._functional: Final = functional
        self._stored: Final = stored
        self._repeats: Final = repeats
        self._made: Final[dict[int, Ports]] = {}

    def __getitem__(self, index: int) -> Ports:
        """Return the ports of node ``index``."""
        ports = self._made.get(index)
        if ports is None:
            ports = self._made[index] = self._make(index)
        return ports

    def __iter__(self) -> Iterator[Ports]:
        """Iterate over all ports, in node order."""
        return map(self.__getitem__, range(len(self.units)))

    def replace(self, index: int, ports: Ports) -> None:
        """Replace the ports of node ``index``."""
        self._made[index] = ports

    def region(self, index: int) -> Region | None:
        """Return the region of the tensor of node ``index``; inputs are stored consecutively."""
        region = self._plan.memory_map.regions.get(self._plan.nodes[index])
        if region is None or not region.write:
            return region
        return region._replace(size_bytes=self._repeats * region.size_bytes)

    def _make(self, index: int) -> Ports:
        node = self._plan.nodes[index]
        return Ports(
            unit=self.units[index],
            inputs=self.inputs[index],
            outputs=self.outputs[index],
            input_types=node.input_types,
            output_types=node.output_types,
            functional=self._functional,
            clock=self.clock,
            off_chip=self.off_chip,
            region=self.region(index),
            on_chip=self.on_chip,
            stored=self._stored,
            observation=self.observation,
            repeats=self._repeats,
            interval_cycles=self._plan.program.hardware.channel.interval_cycles,
        )

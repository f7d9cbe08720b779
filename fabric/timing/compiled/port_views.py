"""The ports of a machine's operators."""

from __future__ import annotations

from collections.abc import Sequence

# Any: the fields have many types.
from typing import TYPE_CHECKING, Any, Final

from fabric.timing.engine.ports import Ports

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Region
    from fabric.graph.wiring.elaborate import Plan
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.clock import VirtualClock
    from fabric.timing.engine.log import Log
    from fabric.timing.engine.off_chip import OffChip
    from fabric.timing.engine.on_chip import OnChipMemory
    from fabric.timing.engine.ports import Sink
    from fabric.timing.engine.unit import Unit


class Views:
    """Ports by node, made on demand: compiled operators need none."""

    def __init__(
        self,
        plan: Plan,
        units: Sequence[Unit],
        inputs: Sequence[tuple[Channel, ...]],
        outputs: Sequence[tuple[Sink, ...]],
        **shared: Any,
    ) -> None:
        """Store the fields of ports; ``shared`` has the fields that are equal in all ports."""
        self.units: Final = units
        self.inputs: Final = inputs
        self.outputs: Final = outputs
        self.clock: Final[VirtualClock] = shared["clock"]
        self.off_chip: Final[OffChip | None] = shared["off_chip"]
        self.on_chip: Final[OnChipMemory] = shared["on_chip"]
        self.log: Final[Log | None] = shared["log"]
        self._plan: Final = plan
        self._shared: Final = shared
        self._ports: Final[dict[int, Ports]] = {}

    def __getitem__(self, index: int) -> Ports:
        if index not in self._ports:
            node = self._plan.nodes[index]
            self._ports[index] = Ports(
                unit=self.units[index],
                inputs=self.inputs[index],
                outputs=self.outputs[index],
                input_types=node.input_types,
                output_types=node.output_types,
                region=self.region(index),
                **self._shared,
            )
        return self._ports[index]

    def replace(self, index: int, ports: Ports) -> None:
        self._ports[index] = ports

    def region(self, index: int) -> Region | None:
        """Return the region of node ``index``. A store has room for the outputs of all repeats."""
        region = self._plan.memory_map.regions.get(self._plan.nodes[index])
        if region is None or not region.write:
            return region
        return region._replace(size_bytes=self._shared["repeats"] * region.size_bytes)

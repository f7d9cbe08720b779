"""What of a machine's units and channels is the same in every state of its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fabric.engine.channel import Channel
from fabric.engine.unit import ComputeUnit, Unit, UnitKind
from fabric.telling.place import Place
from fabric.values.stream_type import kind_of
from fabric.wiring.elaborate import Plan

__all__ = ["Fixed", "FixedChannel", "FixedUnit", "fixed_of"]


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

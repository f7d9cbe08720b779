"""Which operators of a run are compiled, and which of them are alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Final

from fabric.compiled import columns as c
from fabric.compiled.arrays import Arrays, Joint, Stage
from fabric.compiled.automaton import Automaton
from fabric.compiled.codes import Codes, UncodedError
from fabric.compiled.recording import UnfitError
from fabric.compiled.region import Region
from fabric.compiled.tables import Tables
from fabric.engine.assumed_sink import AssumedSink
from fabric.engine.channel import Channel
from fabric.engine.discard import Discard
from fabric.engine.flat_memory import FlatMemory
from fabric.engine.ports import Sink
from fabric.engine.unit import ComputeUnit
from fabric.telling.place import is_ours, is_own
from fabric.values.stream_type import StreamType, holds_buffers
from fabric.wiring.behaviour import behaving_as

if TYPE_CHECKING:
    from fabric.engine.ports import Ports
    from fabric.wiring.elaborate import Plan
    from fabric.wiring.operator import Operator

__all__ = ["region_of"]


def region_of(
    plan: Plan, ports: Sequence[Ports], channels: Sequence[Channel], conducted: Sequence[bool]
) -> Region | None:
    """Return the operators that need no task of their own; None where there are none.

    Args:
        plan: the program.
        ports: of each node.
        channels: of each edge.
        conducted: whether the operator of each node is.
    """
    codes, tables = Codes(), Tables()
    known: dict[Hashable, Automaton | None] = {}
    chosen: dict[int, Automaton] = {}
    for node, its, may in zip(plan.nodes, ports, conducted, strict=True):
        if not may or not _is_fit(node.operator, its):
            continue
        key = _likeness(node.operator, its)
        if key not in known:
            try:
                known[key] = Automaton(node.operator, its, codes, tables)
            except (UnfitError, UncodedError):
                known[key] = None
        automaton = known[key]
        if automaton is not None:
            chosen[node.index] = automaton
    if not chosen:
        return None
    number = {index: at for at, index in enumerate(chosen)}
    sinks = [sink for index in chosen for sink in ports[index].outputs]
    assumed = {sink.channel: sink for sink in sinks if isinstance(sink, AssumedSink)}
    joints = [
        Joint(
            channel,
            assumed.get(channel),
            number.get(edge.producer.index, c.OUTSIDE),
            number.get(edge.consumer.index, c.OUTSIDE),
        )
        for edge, channel in zip(plan.edges, channels, strict=True)
        if edge.producer.index in number or edge.consumer.index in number
    ]
    stages = [
        Stage(
            ports[index].unit,
            automaton,
            ports[index].inputs,
            tuple(map(_channel, ports[index].outputs)),
        )
        for index, automaton in chosen.items()
    ]
    first = ports[0]
    arrays = Arrays(codes, tables, stages, joints)
    return Region(first.clock, first.on_chip, first.off_chip, arrays)


def _channel(sink: Sink) -> Channel | None:
    if isinstance(sink, AssumedSink):
        return sink.channel
    return sink if isinstance(sink, Channel) else None


def _is_fit(operator: Operator, ports: Ports) -> bool:
    """Whether the behaviour of ``operator`` can be a table."""
    kind = behaving_as(type(operator))
    if not vars(kind).get("turns", False) or (is_ours(kind) and not _is_ours(operator)):
        return False
    # Other memories may look at the addresses, which are not kept.
    if operator.off_chip is not None and not isinstance(ports.off_chip, FlatMemory):
        return False
    return not any(holds_buffers(each.value) for each in (*ports.input_types, *ports.output_types))


def _is_ours(described: object) -> bool:
    """Whether all that ``described`` is made of is the fabric's or the operators' own."""
    if not (is_own(described) and is_dataclass(described)):
        return False
    values = [getattr(described, each.name) for each in fields(described)]
    return all(_is_ours(each) for each in values if is_dataclass(each) or callable(each))


_UNLIKE: Final = {"name"}


def _likeness(operator: Operator, ports: Ports) -> Hashable:
    """Return what operators of one behaviour share.

    Dimensions that data decide are told apart by where they stand, not by their names.
    """
    dims: dict[Hashable, int] = {}
    unit = ports.unit
    rate = unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0
    parts = [
        _plain(getattr(operator, each.name), dims)
        for each in fields(operator)
        if each.name not in _UNLIKE
    ]
    types = [_plain_type(each, dims) for each in (*ports.input_types, *ports.output_types)]
    unread = tuple(isinstance(each, Discard) for each in ports.outputs)
    return (type(operator), *parts, len(ports.inputs), *types, unread, rate, unit.bytes_per_cycle)


def _plain_type(described: StreamType, dims: dict[Hashable, int]) -> Hashable:
    return len(described.shape), _plain(described.value, dims)


def _plain(part: object, dims: dict[Hashable, int]) -> Hashable:
    if part is None or isinstance(part, bool | int | str | float):
        return part
    if isinstance(part, tuple):
        return tuple(_plain(each, dims) for each in part)
    if is_dataclass(part):
        return (type(part), *(_plain(getattr(part, each.name), dims) for each in fields(part)))
    if hasattr(part, "free_symbols"):
        return "dim", dims.setdefault(part, len(dims))
    if (
        hasattr(part, "shape")
        and hasattr(part, "dtype")
        and getattr(part.dtype, "kind", "f") not in "iub"
    ):
        # Of a tensor without integers only its shape matters where there are no data.
        return "tensor", part.shape, str(part.dtype)
    try:
        hash(part)
    except TypeError:
        return id(part)
    return part

"""Which operators of a run are compiled, and which of them are alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from fabric.compiled import columns as c
from fabric.compiled.arrays import Arrays, Joint, Stage
from fabric.compiled.automaton import Automaton
from fabric.compiled.codes import Codes, UncodedError
from fabric.compiled.journal import Journal
from fabric.compiled.likeness import Likeness
from fabric.compiled.recording import UnfitError
from fabric.compiled.region import Region
from fabric.compiled.tables import Tables
from fabric.engine.assumed_sink import AssumedSink
from fabric.engine.channel import Channel
from fabric.engine.off_chip import memory_behind, prefetching
from fabric.engine.ports import Sink
from fabric.telling.place import is_own
from fabric.values.stream_type import BoolType, SelectorType, TileType, TupleType, ValueType

if TYPE_CHECKING:
    from fabric.engine.ports import Ports
    from fabric.wiring.elaborate import Plan

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
    codes, tables, likeness = Codes(), Tables(), Likeness()
    known: dict[Hashable, Automaton | None] = {}
    chosen: dict[int, Automaton] = {}
    for node, its, may in zip(plan.nodes, ports, conducted, strict=True):
        if not (may and likeness.turns(node.operator) and _is_fit(its)):
            continue
        key = likeness.of(node.operator, its)
        if key not in known:
            try:
                known[key] = Automaton(node.operator, its, codes, tables)
            except (UnfitError, UncodedError, OverflowError):
                known[key] = None
        automaton = known[key]
        if automaton is not None:
            chosen[node.index] = automaton
    slow = max((max(each.forward_cycles, each.backward_cycles) for each in channels), default=0)
    if not chosen or slow > c.FAR:
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
            ports[index].region,
        )
        for index, automaton in chosen.items()
    ]
    first = ports[0]
    recorded = first.observation is not None
    try:
        arrays = Arrays(codes, tables, stages, joints, recorded=recorded)
    except OverflowError:
        return None

    def ours() -> bool:
        memory = memory_behind(first.off_chip)
        return (memory is None or is_own(memory)) and all(
            likeness.is_ours(node.operator) for node in plan.nodes
        )

    journal = Journal(stages, tables, codes) if recorded else None
    return Region(first.clock, first.on_chip, first.off_chip, arrays, ours, journal)


def _channel(sink: Sink) -> Channel | None:
    if isinstance(sink, AssumedSink):
        return sink.channel
    return sink if isinstance(sink, Channel) else None


def _is_fit(ports: Ports) -> bool:
    """Whether what an operator, which turns, does can be written in a table."""
    # What it announces is not; a table would say it an element at a time.
    announces = ports.region is not None and not ports.region.write
    if announces and prefetching(ports.off_chip) is not None:
        return False
    return all(_is_coded(each.value) for each in (*ports.input_types, *ports.output_types))


def _is_coded(described: ValueType) -> bool:
    """Whether values of a type can be written as integers."""
    if isinstance(described, TupleType):
        return all(map(_is_coded, described.items))
    return type(described) in (TileType, SelectorType, BoolType)

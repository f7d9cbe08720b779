"""Which operators of a run are compiled, and which of them are alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from fabric.graph.values.stream_type import BoolType, SelectorType, TileType, TupleType, ValueType
from fabric.graph.wiring.operator import behaving_as
from fabric.timing.compiled import columns as c
from fabric.timing.compiled.arrays import Arrays, Joint, Journal, Stage
from fabric.timing.compiled.automaton import Automaton, Tables
from fabric.timing.compiled.codes import Codes, UncodedError
from fabric.timing.compiled.likeness import Likeness
from fabric.timing.compiled.region import Region
from fabric.timing.compiled.stand_ins import UnfitError
from fabric.timing.engine.assumed_sink import AssumedSink
from fabric.timing.engine.channel import Channel
from fabric.timing.engine.off_chip import prefetching
from fabric.timing.engine.ports import Sink

if TYPE_CHECKING:
    from fabric.graph.wiring.elaborate import Plan
    from fabric.graph.wiring.operator import Operator
    from fabric.timing.compiled.port_views import Views
    from fabric.timing.engine.ports import Ports
    from fabric.timing.network.links import Links

__all__ = ["region_of"]


def region_of(
    plan: Plan,
    views: Views,
    channels: Sequence[Channel],
    conducted: Sequence[bool],
    network: Links | None,
) -> Region | None:
    """Return the operators that need no task of their own; None where there are none.

    Args:
        plan: the program.
        views: what each node sees.
        channels: of each edge.
        conducted: whether the operator of each node is.
        network: the links that channels share; None where none do.
    """
    slow = max((max(each.forward_cycles, each.backward_cycles) for each in channels), default=0)
    if slow > c.FAR:
        return None
    behaving = {kind: behaving_as(kind) for kind in {type(node.operator) for node in plan.nodes}}
    turning = {kind for kind, each in behaving.items() if vars(each).get("turns", False)}
    codes, tables, likeness = Codes(), Tables(), Likeness()
    known: dict[Hashable, Automaton | None] = {}
    stages: list[Stage] = []
    number = [c.OUTSIDE] * len(plan.nodes)
    rows = zip(plan.nodes, views.units, views.inputs, views.outputs, conducted, strict=True)
    for index, (node, unit, inputs, outputs, may) in enumerate(rows):
        operator = node.operator
        kind = type(operator)
        if not may or kind not in turning:
            continue
        key = likeness.of(node, unit, outputs)
        if key not in known:
            turns = likeness.keeps(operator, behaving[kind]) and _is_fit(views[index])
            known[key] = _automaton(operator, views[index], codes, tables) if turns else None
        automaton = known[key]
        if automaton is not None:
            number[index] = len(stages)
            sinks = tuple(map(_channel, outputs))
            stages.append(Stage(unit, automaton, inputs, sinks, views.region(index)))
    if not stages:
        return None
    recorded = views.observation is not None
    try:
        joints = _joints(plan, views, channels, number)
        arrays = Arrays(codes, tables, stages, joints, network=network, recorded=recorded)
    except OverflowError:
        return None
    return Region(arrays, likeness, views, Journal(arrays) if recorded else None)


def _joints(
    plan: Plan, views: Views, channels: Sequence[Channel], number: Sequence[int]
) -> list[Joint]:
    """Return the channels at whose ends there are stages, whose numbers are given by node."""
    joints = []
    for edge, channel in zip(plan.edges, channels, strict=True):
        source, output, target = edge.producer, edge.output, edge.consumer
        producer, consumer = number[source.index], number[target.index]
        if producer >= 0 or consumer >= 0:
            sink = views.outputs[source.index][output]
            assumed = sink if producer >= 0 and isinstance(sink, AssumedSink) else None
            joints.append(Joint(channel, assumed, producer, consumer))
    return joints


def _automaton(operator: Operator, ports: Ports, codes: Codes, tables: Tables) -> Automaton | None:
    """Return what ``operator`` does, and all that are like it; None where that is no table."""
    try:
        return Automaton(operator, ports, codes, tables)
    except (UnfitError, UncodedError, OverflowError):
        return None


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

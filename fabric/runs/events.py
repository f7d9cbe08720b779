"""The events of a run that energy is spent on, counted from what the run has counted anyway.

What a channel carried is its elements times the bytes of one; of elements whose size data decide,
times the mean that the run measured. Accumulators of compute units are a part of their operations.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from fabric.symbolic.carried import dtype_of, passed_bytes
from fabric.symbolic.substitution import Size, Substitution
from fabric.values.stream_type import (
    TileType,
    TupleType,
    ValueType,
    holds_buffers,
)
from fabric.wiring.mistakes import work_of
from fabric.wiring.operator import Node
from fabric.wiring.work import Rates

if TYPE_CHECKING:
    from fabric.hardware.description import Hardware
    from fabric.state.memory_use import MemoryUse
    from fabric.state.run_state import RunState
    from fabric.values.dims import Dim
    from fabric.wiring.elaborate import Edge, Plan

__all__ = ["Events", "dtype_of", "events_of"]


class Events(NamedTuple):
    """What a run moved and computed.

    Attributes:
        hbm_bytes: of whole requests.
        memory_written_bytes: of tiles that memory units were given: by loads, stores and buffers,
            and by compute units whose results go to memory.
        memory_read_bytes: of tiles that memory units gave: each once, however many read it then.
        fifo_bytes: of values through channels; of a buffer, its reference.
        hop_bytes: the same, times the cycles that each channel takes forward.
        flops: by the element type of the operator's result.
    """

    hbm_bytes: Size
    memory_written_bytes: Size
    memory_read_bytes: Size
    fifo_bytes: Size
    hop_bytes: Size
    flops: dict[str, int]


def events_of(plan: Plan, state: RunState, used: MemoryUse, sizes: Substitution) -> Events:
    """Return the events of a run of ``plan``.

    Args:
        plan: the program.
        state: after the run.
        used: of the memories.
        sizes: that the symbols of the program had.
    """
    written: Size = used.loaded_bytes + used.stored_bytes
    read: Size = used.stored_bytes
    fifo: Size = 0
    hops: Size = 0
    hardware = plan.program.hardware
    holding = [_holds_results(node, hardware) for node in plan.nodes]
    for edge, channel in zip(plan.edges, state.channels, strict=True):
        value = sizes.stream(edge.type).value
        count = channel.taken + channel.left_over
        carried = count * _number(passed_bytes(value))
        fifo += carried
        hops += carried * channel.forward_cycles
        tiles = count * _tile_bytes(value)
        if _gives(edge.producer) or holding[edge.producer.index]:
            read += tiles
        if edge.input in edge.consumer.operator.updates:
            read += tiles
        if _keeps(edge):
            written += tiles
        if holding[edge.producer.index]:
            written += tiles
    flops: Counter[str] = Counter()
    for node, unit in zip(plan.nodes, state.units, strict=True):
        if unit.flops:
            flops[dtype_of(node)] += unit.flops
    return Events(state.hbm_bytes_moved, written, read, fifo, hops, dict(sorted(flops.items())))


def _gives(node: Node) -> bool:
    """Whether its tiles come from a memory unit."""
    return node.operator.kind == "memory" and node.operator.off_chip != "write"


def _keeps(edge: Edge) -> bool:
    """Whether its tiles go to a memory unit.

    Beside a buffer they only say when that is read, beside updates which words these are for.
    """
    node, operator = edge.consumer, edge.consumer.operator
    return (
        operator.kind == "memory"
        and operator.off_chip is None
        and not any(holds_buffers(each.value) for each in node.input_types)
        and (not operator.updates or edge.input in operator.updates)
    )


def _holds_results(node: Node, hardware: Hardware) -> bool:
    """Whether a compute unit's results go to a memory unit, as its operator says."""
    operator = node.operator
    if operator.kind != "compute":
        return False
    elsewhere = (False,) * len(node.inputs)
    rates = Rates(0, hardware.on_chip.bytes_per_cycle, hardware.hbm, None, elsewhere)
    work = work_of(operator, node.input_types, node.output_types, rates)
    return work is not None and work.in_memory


def _tile_bytes(value: ValueType) -> Size:
    """Return the bytes of the tiles in a value."""
    if isinstance(value, TupleType):
        return sum(map(_tile_bytes, value.items))
    return _number(value.size_bytes) if isinstance(value, TileType) else 0


def _number(size: Dim) -> Size:
    """Return a size that the run has measured; one that no channel shows counts as none."""
    return size if isinstance(size, int | Fraction) else 0

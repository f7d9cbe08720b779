"""Seconds and joules of a run, from its cycles and events and the hardware description.

If data decide the size of elements, their mean counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.analysis.symbolic.metrics import dtype_of, passed_bytes
from fabric.analysis.symbolic.substitution import Size, Substitution
from fabric.graph.values.stream_type import TileType, TupleType, ValueType, holds_buffers
from fabric.graph.wiring.costs import Rates
from fabric.graph.wiring.mistakes import work_of
from fabric.graph.wiring.operator import Node

if TYPE_CHECKING:
    from fabric.graph.hardware.description import EnergyDescription, Hardware
    from fabric.graph.values.dims import Dim
    from fabric.graph.wiring.elaborate import Edge, Plan
    from fabric.messages.telling.plain import JsonObject
    from fabric.timing.state.resource_use import MemoryUse
    from fabric.timing.state.run_state import RunState

_PICO: Final = 1e-12


@dataclass(frozen=True)
class Spending:
    """The energy that one kind of event took.

    Attributes:
        cause: ``hbm``, ``memory_write``, ``memory_read``, ``fifo``, ``hop``, ``bfloat16_flop`` (and
            so on) or ``static``: a key of ``[energy]`` without its unit.
        amount: of ``unit``; of sizes that data decide, from their means.
        unit: ``bytes``, ``byte hops``, ``FLOPs`` or ``seconds``.
        joules: None if a positive amount has no price.
    """

    cause: str
    amount: float | None
    unit: str
    joules: float | None


def priced(plan: Plan, state: RunState, used: MemoryUse, sizes: Substitution) -> JsonObject:
    """Return seconds, joules and tokens of a completed run, as fields of a report."""
    program = plan.program
    hardware, stated, runs = program.hardware, program.token_count, program.stands_for_runs
    frequency_hz = hardware.clock.frequency_hz
    seconds = None if frequency_hz is None else state.cycles / frequency_hz
    spent: tuple[Spending, ...] = ()
    if hardware.energy.is_stated:
        spent = _spent(hardware.energy, events_of(plan, state, used, sizes), seconds)
    joules = joules_in_all(spent)
    tokens, phase = (None, None) if stated is None else (stated.count, stated.phase)
    all_seconds = None if seconds is None else seconds * runs
    return {
        "seconds": seconds,
        "joules": joules,
        "spent": spent,
        "stands_for_runs": runs,
        "tokens": tokens,
        "token_phase": phase,
        "tokens_per_second": tokens_rate(tokens, all_seconds),
        "tokens_per_joule": tokens_rate(tokens, None if joules is None else joules * runs),
        "time_to_first_token_seconds": all_seconds if phase == "prefill" else None,
    }


def _spent(
    energy: EnergyDescription, events: Events, seconds: float | None
) -> tuple[Spending, ...]:
    moved = (
        ("hbm", events.hbm_bytes, "bytes"),
        ("memory_write", events.memory_written_bytes, "bytes"),
        ("memory_read", events.memory_read_bytes, "bytes"),
        ("fifo", events.fifo_bytes, "bytes"),
        ("hop", events.hop_bytes, "byte hops"),
    )
    prices = [
        *((*each, getattr(energy, f"{each[0]}_picojoules_per_byte")) for each in moved),
        *(
            (f"{dtype}_flop", count, "FLOPs", energy.flop_picojoules(dtype))
            for dtype, count in events.flops.items()
        ),
    ]
    found = [
        Spending(cause, float(amount), unit, _joules(float(amount), picojoules))
        for cause, amount, unit, picojoules in prices
    ]
    watts = energy.static_watts
    static = None if watts is None or seconds is None else watts * seconds
    if watts == 0:
        static = 0.0
    return (*found, Spending("static", seconds, "seconds", static))


def joules_in_all(spent: Sequence[Spending]) -> float | None:
    """Return the sum; None if a cause with events has no price."""
    known = [each.joules for each in spent if each.joules is not None]
    return sum(known) if len(known) == len(spent) and spent else None


def tokens_rate(tokens: int | None, quantity: float | None) -> float | None:
    """Return tokens per second or per joule; None if either is unknown or 0."""
    return tokens / quantity if tokens is not None and quantity else None


def _joules(amount: float, picojoules: float | None) -> float | None:
    if not amount:
        return 0.0
    return None if picojoules is None else amount * picojoules * _PICO


class Events(NamedTuple):
    """Moved bytes and operations of a run.

    Attributes:
        hbm_bytes: of whole requests.
        memory_written_bytes: of tiles that loads, stores, buffers and compute units write.
        memory_read_bytes: of tiles that are read, once for all readers.
        fifo_bytes: of values through channels; of a buffer, its reference.
        hop_bytes: the same, times the forward cycles of each channel.
        flops: by the element type of the result.
    """

    hbm_bytes: Size
    memory_written_bytes: Size
    memory_read_bytes: Size
    fifo_bytes: Size
    hop_bytes: Size
    flops: dict[str, int]


def events_of(plan: Plan, state: RunState, used: MemoryUse, sizes: Substitution) -> Events:
    """Return the events of a run."""
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
    """Whether the tiles of an edge are written to memory; some only control reads or updates."""
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
    if isinstance(value, TupleType):
        return sum(map(_tile_bytes, value.items))
    return _number(value.size_bytes) if isinstance(value, TileType) else 0


def _number(size: Dim) -> Size:
    """Return a measured size; a size that no channel shows counts as 0."""
    return size if isinstance(size, int | Fraction) else 0

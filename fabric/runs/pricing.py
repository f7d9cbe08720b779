"""Seconds and joules of a run, computed from its cycles, its events and the hardware description.

Sizes of elements that depend on data count with their mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

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
    from fabric.messages.text import JsonObject
    from fabric.timing.state.resource_use import MemoryUse
    from fabric.timing.state.run_state import RunState

_PICO: Final = 1e-12


@dataclass(frozen=True)
class Spending:
    """The energy of one kind of event.

    Attributes:
        cause: a key of ``[energy]`` without its unit: ``hbm``, ``memory_write``, ``memory_read``,
            ``fifo``, ``hop``, ``static``, or the FLOPs of an element type, as ``bfloat16_flop``.
        amount: in ``unit``; sizes that depend on data count with their mean.
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
        spent = tuple(_spent(hardware.energy, _amounts(plan, state, used, sizes), seconds))
    joules_known = [spending.joules for spending in spent if spending.joules is not None]
    joules = sum(joules_known) if spent and len(joules_known) == len(spent) else None
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
    energy: EnergyDescription, amounts: Iterable[tuple[str, Size, str]], seconds: float | None
) -> Iterator[Spending]:
    for cause, amount, unit in amounts:
        per = "" if unit == "FLOPs" else "_per_byte"
        picojoules = _times(float(amount), getattr(energy, f"{cause}_picojoules{per}", None))
        yield Spending(cause, float(amount), unit, _times(picojoules, _PICO))
    yield Spending("static", seconds, "seconds", _times(seconds, energy.static_watts))


def _times(amount: float | None, price: float | None) -> float | None:
    if 0 in (amount, price):
        return 0.0
    return None if amount is None or price is None else amount * price


def tokens_rate(tokens: int | None, quantity: float | None) -> float | None:
    """Return tokens per second or per joule; None if unknown, or if ``quantity`` is 0."""
    return tokens / quantity if tokens is not None and quantity else None


def _amounts(
    plan: Plan, state: RunState, used: MemoryUse, sizes: Substitution
) -> Iterator[tuple[str, Size, str]]:
    """Yield the moved bytes and the operations of a run: cause, amount and unit.

    Loads, stores, buffers and compute units write tiles to memory. A tile that is read counts once
    for all readers. A buffer in a channel is a reference.
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
        if _reads_memory(edge.producer) or holding[edge.producer.index]:
            read += tiles
        if edge.input in edge.consumer.operator.updates:
            read += tiles
        if _writes_memory(edge):
            written += tiles
        if holding[edge.producer.index]:
            written += tiles
    yield "hbm", state.hbm_bytes_moved, "bytes"
    yield "memory_write", written, "bytes"
    yield "memory_read", read, "bytes"
    yield "fifo", fifo, "bytes"
    yield "hop", hops, "byte hops"
    flops: Counter[str] = Counter()
    for node, unit in zip(plan.nodes, state.units, strict=True):
        if unit.flops:
            flops[dtype_of(node)] += unit.flops
    for dtype, number in sorted(flops.items()):
        yield f"{dtype}_flop", number, "FLOPs"


def _reads_memory(node: Node) -> bool:
    return node.operator.kind == "memory" and node.operator.off_chip != "write"


def _writes_memory(edge: Edge) -> bool:
    """Whether the tiles of an edge are written to memory; some only control reads or updates."""
    node, operator = edge.consumer, edge.consumer.operator
    return (
        operator.kind == "memory"
        and operator.off_chip is None
        and not any(holds_buffers(type_.value) for type_ in node.input_types)
        and (not operator.updates or edge.input in operator.updates)
    )


def _holds_results(node: Node, hardware: Hardware) -> bool:
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
    return size if isinstance(size, int | Fraction) else 0

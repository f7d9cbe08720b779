"""From the counters of a machine to the report of its run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from fabric.engine.open_waits import OpenWait, open_wait
from fabric.engine.unit import ComputeUnit
from fabric.machine.machine import Machine
from fabric.runs.report import ChannelCounters, UnitCounters
from fabric.symbolic.metrics import Metrics

if TYPE_CHECKING:
    from fabric.engine.channel import Channel

__all__ = [
    "channel_counters",
    "open_waits",
    "run_cycles",
    "totals",
    "unit_counters",
    "warnings",
]

_COLUMNS: Final = {
    "empty": "empty_cycles",
    "full": "full_cycles",
    "hbm": "hbm_cycles",
    "capacity": "capacity_cycles",
}


def run_cycles(machine: Machine) -> int:
    """Return the largest clock, the HBM's included once it stops: when its clients have ended."""
    cycles = max(unit.now for unit in machine.units)
    off_chip = machine.off_chip
    if off_chip is not None and off_chip.final_cycle is not None:
        cycles = max(cycles, off_chip.final_cycle)
    return cycles


def open_waits(machine: Machine) -> list[OpenWait | None]:
    """Return for each unit, in node order, the wait that goes on to the end of the run."""
    wanting_room = {unit for unit, _ in machine.on_chip.requests}
    return [open_wait(unit, wanting_room) for unit in machine.units]


def unit_counters(machine: Machine, cycles: int) -> tuple[UnitCounters, ...]:
    """Return where each unit's cycles went, in node order; open waits last up to ``cycles``."""
    empty = [0] * len(machine.units)
    full = [0] * len(machine.units)
    credit = [0] * len(machine.units)
    elements = [0] * len(machine.units)
    for channel in machine.channels:
        empty[channel.consumer.index] += channel.empty_cycles
        elements[channel.consumer.index] += channel.elements
        full[channel.producer.index] += channel.full_cycles
        credit[channel.producer.index] += channel.credit_cycles
    counters = (
        UnitCounters(
            name=unit.name,
            operator=type(node.operator).__name__,
            kind=unit.kind,
            file=unit.place.file,
            line=unit.place.line,
            elements=elements[unit.index],
            busy_cycles=unit.busy_cycles,
            empty_cycles=empty[unit.index],
            full_cycles=full[unit.index],
            credit_cycles=credit[unit.index],
            hbm_cycles=unit.off_chip_cycles,
            capacity_cycles=unit.capacity_cycles,
            idle_cycles=cycles - unit.now,
            flops=unit.flops,
            flops_per_cycle=unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0,
        )
        for node, unit in zip(machine.plan.nodes, machine.units, strict=True)
    )
    return tuple(
        unit if wait is None else _with_open(unit, wait, cycles)
        for unit, wait in zip(counters, open_waits(machine), strict=True)
    )


def _with_open(unit: UnitCounters, wait: OpenWait, cycles: int) -> UnitCounters:
    """Return ``unit`` with the cycles of ``wait``, which are not idle."""
    column = _COLUMNS[wait.cause]
    length = cycles - wait.since_cycle
    changed = {column: getattr(unit, column) + length, "idle_cycles": unit.idle_cycles - length}
    return replace(unit, **changed)


def channel_counters(machine: Machine, cycles: int) -> tuple[ChannelCounters, ...]:
    """Return what went through each channel, in edge order; open waits last up to ``cycles``."""
    open_cycles: Counter[tuple[Channel | None, str]] = Counter()
    for wait in open_waits(machine):
        if wait is not None:
            open_cycles[wait.channel, wait.cause] += cycles - wait.since_cycle
    return tuple(
        ChannelCounters(
            name=channel.name,
            depth=channel.depth,
            elements=channel.elements,
            peak_occupancy=channel.peak_occupancy,
            empty_cycles=channel.empty_cycles + open_cycles[channel, "empty"],
            full_cycles=channel.full_cycles + open_cycles[channel, "full"],
            credit_cycles=channel.credit_cycles,
            left_over=channel.left_over,
        )
        for channel in machine.channels
    )


def totals(machine: Machine, cycles: int, metrics: Metrics) -> dict[str, Any]:
    """Return the fields of ``run --json`` that are sums over the machine.

    Args:
        machine: after the run.
        cycles: of the run.
        metrics: of the program, for the sizes it had.
    """
    paper, artifact = metrics.paper, metrics.artifact
    peak = Fraction(machine.plan.program.hardware.hbm.peak_bytes_per_cycle)
    off_chip = machine.off_chip
    flops = sum(unit.flops for unit in machine.units)
    allocated = sum(unit.flops_per_cycle for unit in machine.units if isinstance(unit, ComputeUnit))
    traffic = paper.traffic_bytes
    peak_traffic = float(cycles * peak)
    return {
        "cycles": cycles,
        "off_chip_traffic_bytes": traffic,
        "on_chip_requirement_bytes": paper.on_chip_bytes,
        "off_chip_traffic_artifact_bytes": artifact.traffic_bytes,
        "on_chip_requirement_artifact_bytes": artifact.on_chip_bytes,
        "hbm_bytes_moved": 0 if off_chip is None else off_chip.bytes_moved,
        "flops": flops,
        "allocated_flops_per_cycle": allocated,
        "compute_utilization": flops / (cycles * allocated) if cycles and allocated else 0.0,
        "off_chip_bandwidth_utilization": traffic / peak_traffic if peak_traffic else 0.0,
        "operators": len(machine.units),
        "channels": len(machine.channels),
        "elements": machine.elements,
    }


def warnings(machine: Machine) -> tuple[str, ...]:
    """Return sentences about a run that completed, but not as one would expect."""
    return tuple(
        f"FAB-D004: {channel.name}: {channel.left_over:,} elements were left over: "
        f"{channel.consumer.name} had ended"
        for channel in machine.channels
        if channel.left_over
    )

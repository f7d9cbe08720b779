"""From the state of a run to the counters and totals of its report."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from fabric.runs.counters import ChannelCounters, Totals, UnitCounters
from fabric.state.open_waits import OpenWait, open_waits
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from fabric.state.run_state import RunState
    from fabric.symbolic.metrics import Metrics

__all__ = ["channel_counters", "totals", "unit_counters", "warnings"]


def unit_counters(state: RunState) -> tuple[UnitCounters, ...]:
    """Return where each unit's cycles went, in node order; open waits last up to the end."""
    cycles = state.cycles
    empty = [0] * len(state.units)
    full = [0] * len(state.units)
    credit = [0] * len(state.units)
    elements = [0] * len(state.units)
    for channel in state.channels:
        empty[channel.consumer] += channel.empty_cycles
        elements[channel.consumer] += channel.taken
        full[channel.producer] += channel.full_cycles
        credit[channel.producer] += channel.credit_cycles
    # By their places: there are thousands, and fifteen names each take half as long again.
    counters = [
        UnitCounters(
            unit.name,
            unit.operator,
            unit.kind,
            unit.place.file,
            unit.place.line,
            elements[unit.number],
            unit.busy_cycles,
            empty[unit.number],
            full[unit.number],
            credit[unit.number],
            unit.hbm_cycles,
            unit.capacity_cycles,
            cycles - unit.cycle,
            unit.flops or 0,
            unit.flops_per_cycle,
        )
        for unit in state.units
    ]
    for number, wait in enumerate(open_waits(state)):
        if wait is not None:
            counters[number] = _with_open(counters[number], wait, cycles)
    return tuple(counters)


def _with_open(unit: UnitCounters, wait: OpenWait, cycles: int) -> UnitCounters:
    """Return ``unit`` with the cycles of ``wait``, which are not idle."""
    column = wait.cause.column
    length = cycles - wait.since_cycle
    changed = {column: getattr(unit, column) + length, "idle_cycles": unit.idle_cycles - length}
    return replace(unit, **changed)


def channel_counters(state: RunState) -> tuple[ChannelCounters, ...]:
    """Return what went through each channel, in edge order; open waits last up to the end."""
    counters = [
        ChannelCounters(
            channel.name,
            channel.depth,
            channel.taken,
            channel.peak_occupancy,
            channel.empty_cycles,
            channel.full_cycles,
            channel.credit_cycles,
            channel.left_over,
        )
        for channel in state.channels
    ]
    for wait in open_waits(state):
        if wait is not None and wait.channel is not None:
            channel, column = counters[wait.channel], wait.cause.column
            cycles = getattr(channel, column) + state.cycles - wait.since_cycle
            counters[wait.channel] = replace(channel, **{column: cycles})
    return tuple(counters)


def totals(state: RunState, peak_bytes_per_cycle: Fraction, metrics: Metrics) -> Totals:
    """Return the fields of ``run --json`` that are sums over the machine.

    Args:
        state: after the run.
        peak_bytes_per_cycle: of the off-chip memory.
        metrics: of the program, for the sizes it had.
    """
    paper, artifact = metrics.paper, metrics.artifact
    cycles = state.cycles
    flops = state.flops
    allocated = sum(unit.flops_per_cycle for unit in state.units)
    traffic = paper.traffic_bytes
    peak_traffic = float(cycles * peak_bytes_per_cycle)
    return Totals(
        cycles=cycles,
        off_chip_traffic_bytes=traffic,
        on_chip_requirement_bytes=paper.on_chip_bytes,
        off_chip_traffic_artifact_bytes=artifact.traffic_bytes,
        on_chip_requirement_artifact_bytes=artifact.on_chip_bytes,
        hbm_bytes_moved=state.hbm_bytes_moved,
        flops=flops,
        allocated_flops_per_cycle=allocated,
        compute_utilization=flops / (cycles * allocated) if cycles and allocated else 0.0,
        off_chip_bandwidth_utilization=traffic / peak_traffic if peak_traffic else 0.0,
        operators=len(state.units),
        channels=len(state.channels),
        elements=state.elements,
    )


def warnings(state: RunState) -> tuple[str, ...]:
    """Return sentences about a run that completed, but not as one would expect."""
    return tuple(
        f"FAB-D004: {channel.name}: {counted(channel.left_over, 'element')} "
        f"{'was' if channel.left_over == 1 else 'were'} left over: "
        f"{state.units[channel.consumer].name} had ended"
        for channel in state.channels
        if channel.left_over
    )

"""Counters and totals of a run, and their comparison with values computed before it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec import structs

from fabric.messages.causes import COUNTED, Cause
from fabric.messages.text import Family, counted, families
from fabric.timing.state.run_state import open_waits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.analysis.symbolic.metrics import Metrics
    from fabric.messages.text import JsonObject
    from fabric.timing.state.run_state import ChannelState, RunState


@dataclass(frozen=True)
class UnitCounters:
    """The cycles of a unit by ``Cause``, which sum to the cycles of the run.

    Attributes:
        elements: values that it dequeued.
        idle_cycles: after its end. A wait that is open when the run ends counts for its cause.
        flops_per_cycle: 0 without arithmetic.
    """

    name: str
    operator: str
    kind: str
    file: str
    line: int
    elements: int
    busy_cycles: int
    empty_cycles: int
    full_cycles: int
    credit_cycles: int
    hbm_cycles: int
    capacity_cycles: int
    idle_cycles: int
    flops: int
    flops_per_cycle: int

    @property
    def stalled_cycles(self) -> int:
        waits: int = sum(getattr(self, cause.column) for cause in COUNTED) - self.busy_cycles
        return waits

    @property
    def took_part(self) -> bool:
        """Whether it dequeued an element, was busy, or waited for a memory."""
        return bool(self.elements or self.busy_cycles or self.hbm_cycles or self.capacity_cycles)


def unit_families(units: Iterable[UnitCounters]) -> list[Family[UnitCounters]]:
    return families(
        units, lambda unit: unit.name, lambda unit: (unit.operator, unit.file, unit.line)
    )


@dataclass(frozen=True)
class Compared:
    """An expected and a measured quantity. With ``at_most`` the measured one may be smaller."""

    what: str
    expected: int
    measured: int
    at_most: bool = False

    @property
    def agrees(self) -> bool:
        return self.measured <= self.expected if self.at_most else self.measured == self.expected


@dataclass(frozen=True)
class Comparison:
    """Expected and measured totals, and the expected elements of channels, in edge order."""

    totals: tuple[Compared, ...] = ()
    channel_elements: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


def unit_counters(state: RunState) -> tuple[UnitCounters, ...]:
    """Return the counters of units, in node order; open waits count until the run ends."""
    elements = [0] * len(state.units)
    columns = {cause: [0] * len(state.units) for cause in Cause}
    busy, empty, full, credit, hbm, capacity, idle = columns.values()
    for number, unit in enumerate(state.units):
        busy[number] = unit.busy_cycles
        hbm[number] = unit.hbm_cycles
        capacity[number] = unit.capacity_cycles
        idle[number] = state.cycles - unit.cycle
    for channel in state.channels:
        elements[channel.consumer] += channel.taken
        empty[channel.consumer] += channel.empty_cycles
        full[channel.producer] += channel.full_cycles
        credit[channel.producer] += channel.credit_cycles
    for number, wait in enumerate(open_waits(state)):
        if wait is not None:
            columns[wait.cause][number] += state.cycles - wait.since_cycle
            idle[number] -= state.cycles - wait.since_cycle
    flops = [(unit.flops or 0, unit.flops_per_cycle) for unit in state.units]
    amounts = zip(elements, *columns.values(), *zip(*flops, strict=True), strict=True)
    # Positional, since fifteen keywords take 1.5 times as long, for thousands of units.
    return tuple(
        UnitCounters(unit.name, unit.operator, unit.kind, *unit.place, *numbers)
        for unit, numbers in zip(state.units, amounts, strict=True)
    )


def channel_counters(state: RunState) -> tuple[ChannelState, ...]:
    """Return the channels in edge order; open waits count until the run ends."""
    counters = list(state.channels)
    for wait in open_waits(state):
        if wait is not None and wait.channel is not None:
            channel, column = counters[wait.channel], wait.cause.column
            cycles = getattr(channel, column) + state.cycles - wait.since_cycle
            counters[wait.channel] = structs.replace(channel, **{column: cycles})
    return tuple(counters)


def totals(state: RunState, peak_bytes_per_cycle: Fraction, metrics: Metrics) -> JsonObject:
    """Return the fields of a report that are totals of all units and memories."""
    paper, artifact = metrics.paper, metrics.artifact
    cycles, flops = state.cycles, state.flops
    allocated = sum(unit.flops_per_cycle for unit in state.units)
    # Fewer bytes may have moved: the last arbitrated burst may complete before its last request.
    used_bytes = min(paper.traffic_bytes, state.hbm_bytes_moved)
    peak_traffic = float(cycles * peak_bytes_per_cycle)
    return {
        "cycles": cycles,
        "off_chip_traffic_bytes": paper.traffic_bytes,
        "on_chip_requirement_bytes": paper.on_chip_bytes,
        "off_chip_traffic_artifact_bytes": artifact.traffic_bytes,
        "on_chip_requirement_artifact_bytes": artifact.on_chip_bytes,
        "hbm_bytes_moved": state.hbm_bytes_moved,
        "flops": flops,
        "allocated_flops_per_cycle": allocated,
        "compute_utilization": flops / (cycles * allocated) if cycles and allocated else 0.0,
        "off_chip_bandwidth_utilization": used_bytes / peak_traffic if peak_traffic else 0.0,
        "off_chip_peak_bytes_per_cycle": float(peak_bytes_per_cycle),
        "elements": state.elements,
    }


def warnings(state: RunState) -> tuple[str, ...]:
    """Return a sentence for each channel with elements that its reader left over."""
    return tuple(
        f"FAB-D004: {channel.name}: {counted(channel.left_over, 'element')} "
        f"{'was' if channel.left_over == 1 else 'were'} left over: "
        f"{state.units[channel.consumer].name} had ended"
        for channel in state.channels
        if channel.left_over
    )

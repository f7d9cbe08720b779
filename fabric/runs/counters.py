"""The counters and totals of a run, and what was known of them before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fabric.telling.families import Family, families

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ChannelCounters",
    "Compared",
    "Comparison",
    "Totals",
    "UnitCounters",
    "unit_families",
]


@dataclass(frozen=True)
class UnitCounters:
    """Where a unit's cycles went; the columns sum to the run's cycles.

    Attributes:
        name, operator, kind, file, line: which unit, and where it was wired.
        elements: values it dequeued.
        busy_cycles: charged for work.
        empty_cycles: waited for an element or the end of a stream.
        full_cycles: waited for a reader to take an element.
        credit_cycles: waited for a credit on its way back.
        hbm_cycles: waited for the HBM.
        capacity_cycles: waited for on-chip capacity.
        idle_cycles: between its end, or where the run was stopped under it, and the run's end; a
            wait that had not ended then counts as a wait to the last cycle.
        flops: floating-point operations done.
        flops_per_cycle: its compute bandwidth; 0 where it has no arithmetic.
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
        """Cycles of all waits."""
        return (
            self.empty_cycles
            + self.full_cycles
            + self.credit_cycles
            + self.hbm_cycles
            + self.capacity_cycles
        )

    @property
    def took_part(self) -> bool:
        """Whether it got an element, worked, or asked a memory for anything."""
        return bool(self.elements or self.busy_cycles or self.hbm_cycles or self.capacity_cycles)


def unit_families(units: Iterable[UnitCounters]) -> list[Family[UnitCounters]]:
    """Return the families of ``units``: those of one operator, wired at one place."""
    return families(
        units, lambda unit: unit.name, lambda unit: (unit.operator, unit.file, unit.line)
    )


@dataclass(frozen=True)
class ChannelCounters:
    """What went through a channel and who waited for it.

    Attributes:
        name: ``producer.output -> consumer.input``.
        depth: slots.
        elements: values dequeued.
        peak_occupancy: the most slots in use at once, credits on their way back included.
        empty_cycles: its consumer waited.
        full_cycles, credit_cycles: its producer waited.
        left_over: values nobody read.
    """

    name: str
    depth: int
    elements: int
    peak_occupancy: int
    empty_cycles: int
    full_cycles: int
    credit_cycles: int
    left_over: int


class Totals(NamedTuple):
    """The fields of ``run --json`` that are sums over the machine, under the same names."""

    cycles: int
    off_chip_traffic_bytes: int
    on_chip_requirement_bytes: int
    off_chip_traffic_artifact_bytes: int
    on_chip_requirement_artifact_bytes: int
    hbm_bytes_moved: int
    flops: int
    allocated_flops_per_cycle: int
    compute_utilization: float | None
    off_chip_bandwidth_utilization: float | None
    operators: int
    channels: int
    elements: int


@dataclass(frozen=True)
class Compared:
    """One quantity, as it was known before the run and as it came out.

    Attributes:
        what: in words.
        expected: the program's metric with the sizes of this run.
        measured: in the run.
        at_most: the measured one may be smaller.
    """

    what: str
    expected: int
    measured: int
    at_most: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the run was as expected."""
        return self.measured <= self.expected if self.at_most else self.measured == self.expected


@dataclass(frozen=True)
class Comparison:
    """What was known before a run beside what the run measured.

    Attributes:
        totals: of the program.
        channel_elements: expected per channel, in edge order.
        warnings: a sentence for every difference.
    """

    totals: tuple[Compared, ...] = ()
    channel_elements: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()

"""The die area of a program by cause, as ranges in square millimetres."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from fabric.analysis.symbolic.metrics import Metrics, dtype_of, passed_bytes
from fabric.analysis.symbolic.substitution import Size, Substitution
from fabric.graph.hardware.description import AreaDescription, Range
from fabric.graph.hardware.latency import Mesh
from fabric.graph.values.dims import Dim, Totals, least_of, with_totals
from fabric.graph.wiring.elaborate import Plan

_Number = TypeVar("_Number", int, float)

_KIB: Final = 1024

_ROUNDING: Final = 1e-12
"""Relative difference between sums of the same numbers in different orders."""


@dataclass(frozen=True)
class Area:
    """The die area of one part of a program.

    ``low_mm2`` and ``high_mm2`` are None if the amount is not 0 and its price is not stated.
    """

    cause: str  # small_memory, memory, slot, link, bfloat16_flop or another key of ``[area]``
    amount: int | None  # from means of data-dependent sizes; None for links of unlimited width
    unit: str  # bytes, bytes/cycle or FLOPs/cycle
    low_mm2: float | None
    high_mm2: float | None


class Sized(NamedTuple):
    """The fields of a report that describe the die and the channels."""

    channel_bytes: int
    area_mm2: float | None
    area_low_mm2: float | None
    area_high_mm2: float | None
    area: tuple[Area, ...]


def sized(plan: Plan, depths: Iterable[int], metrics: Metrics, sizes: Substitution) -> Sized:
    """Return the bytes in the channels of a run of ``plan``, and its die area.

    ``depths`` are in edge order. A size that no channel measures is unknown and counts as 0.
    """
    held = _slot_bytes(plan, depths, sizes)
    slot_bytes = math.ceil(sum(size for size in held if isinstance(size, Size)))
    units = [math.ceil(size) for size in _on_chip_bytes(metrics) if isinstance(size, Size) and size]
    return _priced(plan, slot_bytes, units, metrics)


def least_sized(
    plan: Plan,
    depths: Iterable[int],
    metrics: Metrics,
    sizes: Substitution,
    totals: Totals,
) -> Mapping[str, float]:
    """Return lower bounds of the fields of ``sized`` for any run with these depths, by field.

    Proof. Uncertain sizes are at least 0. An expression of sums, products and rounding up is least
    if all uncertain sizes are 0. So the bytes of slots and memory units are lower bounds. A
    unit that may be small or large takes at least the smaller of both areas. Operations and links
    depend on the program alone.
    """
    held = _slot_bytes(plan, depths, sizes)
    certain_bytes: Size = sum(size for size in held if isinstance(size, Size))
    open_bytes = sum(_least(size, totals) for size in held if not isinstance(size, Size))
    slot_bytes = math.ceil(certain_bytes + open_bytes)
    bounds: dict[str, float] = {"channel_bytes": slot_bytes}
    stated = plan.program.hardware.area
    certain_units, open_units = [], []
    for size in _on_chip_bytes(metrics):
        if not isinstance(size, Size):
            open_units.append(_least(size, totals))
        elif size:
            certain_units.append(math.ceil(size))
    prices = (stated.small_memory_mm2_per_kib, stated.memory_mm2_per_kib)
    priced = _priced(plan, slot_bytes, certain_units, metrics)
    low, high = priced.area_low_mm2, priced.area_high_mm2
    if low is None or high is None or (open_units and None in prices):
        return bounds
    low, high = (
        (mm2 + sum(_least_mm2(stated, least, end) for least in open_units)) * (1 - _ROUNDING)
        for end, mm2 in enumerate((low, high))
    )
    return bounds | {
        "area_mm2": math.sqrt(low * high) * (1 - _ROUNDING),
        "area_low_mm2": low,
        "area_high_mm2": high,
    }


def _least(dim: Dim, totals: Totals) -> int:
    return least_of(with_totals(dim, totals))


def _least_mm2(stated: AreaDescription, least_bytes: int, end: int) -> float:
    """Return the least area of a unit of ``least_bytes`` or more; ``end``: 0 is low, 1 high."""
    small, large = stated.small_memory_mm2_per_kib, stated.memory_mm2_per_kib
    assert small is not None
    assert large is not None
    border = stated.small_memory_bytes
    if least_bytes > border:
        return least_bytes * large[end] / _KIB
    return min(least_bytes * small[end], (border + 1) * large[end]) / _KIB


def _on_chip_bytes(metrics: Metrics) -> list[Dim]:
    return [operator.costs.on_chip_bytes for operator in metrics.operators]


def _slot_bytes(plan: Plan, depths: Iterable[int], sizes: Substitution) -> list[Dim]:
    return [
        depth * passed_bytes(sizes.stream(edge.type).value)
        for edge, depth in zip(plan.edges, depths, strict=True)
    ]


def _priced(plan: Plan, slot_bytes: int, unit_bytes: Sequence[int], metrics: Metrics) -> Sized:
    hardware = plan.program.hardware
    stated = hardware.area
    if not stated.is_stated:
        return Sized(slot_bytes, None, None, None, ())
    small = sum(size for size in unit_bytes if size <= stated.small_memory_bytes)
    large = sum(unit_bytes) - small
    flops: Counter[str] = Counter()
    for operator in metrics.operators:
        if operator.flops_per_cycle:
            flops[dtype_of(operator.node)] += operator.flops_per_cycle
    parts = [
        _area("small_memory", small, "bytes", stated.small_memory_mm2_per_kib, _KIB),
        _area("memory", large, "bytes", stated.memory_mm2_per_kib, _KIB),
        _area("slot", slot_bytes, "bytes", stated.slot_mm2_per_byte),
        *(
            _area(f"{dtype}_flop", count, "FLOPs/cycle", stated.flop_mm2(dtype))
            for dtype, count in sorted(flops.items())
        ),
    ]
    if hardware.network is not None:
        width = _link_bytes_per_cycle(hardware.network)
        parts.append(_area("link", width, "bytes/cycle", stated.link_mm2_per_byte_per_cycle))
    low = _sum_if_known([part.low_mm2 for part in parts])
    high = _sum_if_known([part.high_mm2 for part in parts])
    middle = None if low is None or high is None else math.sqrt(low * high)
    return Sized(slot_bytes, middle, low, high, tuple(parts))


def _link_bytes_per_cycle(mesh: Mesh) -> int | None:
    sites = {*mesh.sites}
    links = zip(mesh.link_ends, mesh.capacities, strict=True)
    return _sum_if_known([width for ends, width in links if ends is None or ends[1] in sites])


def _area(cause: str, amount: int | None, unit: str, price: Range | None, per: int = 1) -> Area:
    if amount == 0:
        return Area(cause, 0, unit, 0.0, 0.0)
    if price is None or amount is None:
        return Area(cause, amount, unit, None, None)
    low, high = (amount * bound / per for bound in price)
    return Area(cause, amount, unit, low, high)


def _sum_if_known(values: Sequence[_Number | None]) -> _Number | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if len(numbers) == len(values) else None

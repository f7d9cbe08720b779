"""Square millimetres of what a run's program is made of, by cause, from low to high."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.runs.events import dtype_of
from fabric.symbolic.carried import passed_bytes
from fabric.symbolic.substitution import Size, Substitution

if TYPE_CHECKING:
    from fabric.hardware.area import Range
    from fabric.state.run_state import RunState
    from fabric.symbolic.metrics import Metrics
    from fabric.wiring.elaborate import Plan

__all__ = ["Area", "Sized", "sized"]

_KIB: Final = 1024


@dataclass(frozen=True)
class Area:
    """What one part of a program takes of a die.

    Attributes:
        cause: ``small_memory``, ``memory``, ``slot``, ``bfloat16_flop`` (and so on): a key of
            ``[area]`` without its unit.
        amount: of ``unit``; of sizes that data decide, from their means.
        unit: ``bytes`` or ``FLOPs/cycle``.
        low_mm2, high_mm2: None where its area is not stated and there is something of it.
    """

    cause: str
    amount: int
    unit: str
    low_mm2: float | None
    high_mm2: float | None


class Sized(NamedTuple):
    """What a report says of the die and of channels; see there."""

    channel_bytes: int
    area_mm2: float | None
    area_low_mm2: float | None
    area_high_mm2: float | None
    area: tuple[Area, ...]


def sized(plan: Plan, state: RunState, metrics: Metrics, sizes: Substitution) -> Sized:
    """Return what the channels of a run of ``plan`` hold, and what all of it takes of a die.

    Args:
        plan: the program.
        state: of the run, which has its depths.
        metrics: of the program, for the sizes it had.
        sizes: that the symbols of the program had.
    """
    slots: Size = 0
    for edge, channel in zip(plan.edges, state.channels, strict=True):
        size = passed_bytes(sizes.stream(edge.type).value)
        # Of a size that no channel shows nothing is known; it counts as none.
        slots += channel.depth * size if isinstance(size, Size) else 0
    channel_bytes = math.ceil(slots)
    stated = plan.program.hardware.area
    if not stated.is_stated:
        return Sized(channel_bytes, None, None, None, ())
    memory: Counter[str] = Counter()
    flops: Counter[str] = Counter()
    for each in metrics.operators:
        needed = each.costs.on_chip_bytes
        if isinstance(needed, Size) and needed:
            small = needed <= stated.small_memory_bytes
            memory["small_memory" if small else "memory"] += math.ceil(needed)
        if each.flops_per_cycle:
            flops[dtype_of(each.node)] += each.flops_per_cycle
    parts = (
        _area(
            "small_memory",
            memory["small_memory"],
            "bytes",
            stated.small_memory_mm2_per_kib,
            _KIB,
        ),
        _area("memory", memory["memory"], "bytes", stated.memory_mm2_per_kib, _KIB),
        _area("slot", channel_bytes, "bytes", stated.slot_mm2_per_byte),
        *(
            _area(f"{dtype}_flop", count, "FLOPs/cycle", stated.flop_mm2(dtype))
            for dtype, count in sorted(flops.items())
        ),
    )
    low, high = (
        _in_all([each.low_mm2 for each in parts]),
        _in_all([each.high_mm2 for each in parts]),
    )
    middle = None if low is None or high is None else math.sqrt(low * high)
    return Sized(channel_bytes, middle, low, high, parts)


def _area(cause: str, amount: int, unit: str, price: Range | None, each: int = 1) -> Area:
    if not amount:
        return Area(cause, 0, unit, 0.0, 0.0)
    if price is None:
        return Area(cause, amount, unit, None, None)
    low, high = (amount * bound / each for bound in price)
    return Area(cause, amount, unit, low, high)


def _in_all(values: Sequence[float | None]) -> float | None:
    """Return the sum; None where a part that there is has no area."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None

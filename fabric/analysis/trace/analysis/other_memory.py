"""Changes of the HBM of a recorded run: its bandwidth, its latency, and the ports of units."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from fabric.graph.hardware.file import varied_hardware
from fabric.messages.errors import ConfigurationError

if TYPE_CHECKING:
    from fabric.analysis.trace.reading.reader import RecordedRun
    from fabric.graph.hardware.description import OffChipDescription

MemoryKey: TypeAlias = Literal["bandwidth", "latency", "ports"]

_KEYS: Final[dict[MemoryKey, tuple[str, ...]]] = {
    "bandwidth": ("channels", "bytes_per_cycle"),
    "latency": ("startup_cycles", "latency_cycles"),
    "ports": ("requests_per_bundle",),
}
"""The keys of ``[hbm]`` that are scaled, if the memory has them."""


def memory_of(trace: RecordedRun) -> OffChipDescription | None:
    """Return the off-chip memory of the run; None if its class is not known."""
    hardware: Any = trace.meta.get("hardware")
    if not isinstance(hardware, dict) or not isinstance(hardware.get("hbm"), dict):
        return None
    keys = {f"hbm.{key}": value for key, value in hardware["hbm"].items()}
    try:
        return varied_hardware(None, keys).hbm
    except ConfigurationError:
        return None


def scaled(memory: OffChipDescription, key: MemoryKey, factor: float) -> OffChipDescription | None:
    """Return ``memory`` with other numbers, rounded; None if it does not have them."""
    numbers = {name: getattr(memory, name, None) for name in _KEYS[key]}
    least = 0 if key == "latency" else 1
    changed = {
        name: max(least, round(number * factor))
        for name, number in numbers.items()
        if isinstance(number, int)
    }
    # The peak of the arbitrated memories does not follow from these keys.
    knows = type(memory).model in ("flat", "banked", "fixed")
    return replace(memory, **changed) if changed and knows else None

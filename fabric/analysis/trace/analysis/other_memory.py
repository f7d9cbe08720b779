"""Changes of the HBM of a recorded run: its bandwidth, its latency, and the ports of units."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fabric.analysis.trace.reading.reader import RecordedRun
from fabric.graph.hardware.description import OffChipDescription
from fabric.graph.hardware.file import varied_hardware
from fabric.graph.hardware.least_cycles import least_burst_cycles
from fabric.messages.errors import ConfigurationError

_KEYS: Final = {
    "bandwidth": ("channels", "bytes_per_cycle"),
    "latency": ("startup_cycles", "latency_cycles"),
    "ports": ("requests_per_bundle",),
}
"""The keys of ``[hbm]`` that are scaled, if the memory has them."""


def memory_of(trace: RecordedRun) -> OffChipDescription | None:
    """Return the off-chip memory of the run; None if its class is not known."""
    stated = (trace.meta.get("hardware") or {}).get("hbm")
    if not isinstance(stated, dict):
        return None
    keys = {f"hbm.{key}": value for key, value in stated.items()}
    try:
        return varied_hardware(None, keys).hbm
    except ConfigurationError:
        return None


def port_bytes(memory: OffChipDescription | None) -> int | None:
    """Return the bytes that a unit hands over or receives in a cycle at most; None if unlimited."""
    requests = getattr(memory, "requests_per_bundle", None)
    return requests * memory.request_bytes if memory and isinstance(requests, int) else None


def rate_text(bytes_per_cycle: float) -> str:
    """Return a text such as ``1,024 bytes``."""
    return f"{bytes_per_cycle:,.1f}".removesuffix(".0") + " bytes"


def scaled(memory: OffChipDescription, key: str, factor: float) -> OffChipDescription | None:
    """Return ``memory`` with scaled numbers; None if it lacks them or they are out of range."""
    numbers = {name: getattr(memory, name, None) for name in _KEYS[key]}
    least = 0 if key == "latency" else 1
    changed = {
        name: max(least, round(number * factor))
        for name, number in numbers.items()
        if isinstance(number, int)
    }
    if not changed or not least_burst_cycles(memory, 1, write=False):
        return None
    try:
        return replace(memory, **changed)
    except ConfigurationError:
        return None

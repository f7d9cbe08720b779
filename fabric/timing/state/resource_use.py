"""Traffic of memories and links over a run, and the use of their bandwidth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from fabric.graph.hardware.latency import Site
from fabric.messages.causes import BusUse
from fabric.messages.errors import Refusal
from fabric.messages.text import JsonObject, counted, plain
from fabric.timing.engine.off_chip import MemoryCounters

if TYPE_CHECKING:
    from fabric.timing.engine.off_chip import BusCycles


class MemoryUse(NamedTuple):
    """Traffic and use of the memories, up to the end of a run.

    Attributes:
        loaded_bytes, stored_bytes: off chip; of tiles, or of whole requests in a trace.
        on_chip_peak_bytes: the most held in any cycle.
        on_chip_peak_pages: None without pages.
        on_chip_peak_empty_bytes: the most unused bytes in held pages; None without pages.
        spilled_bytes, fetched_bytes: of tiles of buffers that found no room on chip; None if the
            hardware does not spill.
    """

    loaded_bytes: int
    stored_bytes: int
    on_chip_peak_bytes: int
    on_chip_peak_pages: int | None
    on_chip_peak_empty_bytes: int | None
    spilled_bytes: int | None
    fetched_bytes: int | None


@dataclass(frozen=True)
class RouteUse:
    """A channel between two sites.

    Attributes:
        source, target: column and row of the units' sites.
        hop_cycles: from a send until the element is visible, without load.
        bytes: None if no link of the route is limited.
        links_cycles: cycles that the consumer waited for links; part of ``empty_cycles``.
    """

    channel: str
    source: tuple[int, ...]
    target: tuple[int, ...]
    hop_cycles: int
    bytes: int | None
    links_cycles: int


@dataclass(frozen=True)
class LinkUse:
    """Traffic of a link.

    Attributes:
        name: ``0,0 -> 1,0``, or ``out of 0,0`` or ``into 0,0`` with equal source and target.
        bytes: a broadcast counts once for all its readers.
        bytes_per_cycle: None for unlimited.
    """

    name: str
    bytes: int
    bytes_per_cycle: int | None
    channels: tuple[str, ...]
    source: Site
    target: Site

    def share(self, cycles: int) -> float | None:
        """Return the used share of its capacity in ``cycles``."""
        if self.bytes_per_cycle is None or not cycles:
            return None
        return self.bytes / (self.bytes_per_cycle * cycles)


@dataclass(frozen=True)
class NetworkUse:
    """A run's use of its network.

    Attributes:
        placement: the file that places units; None if they are placed row by row.
        sites: number of sites with units.
        most_units: the most units that the program places on one site.
    """

    placement: str | None
    sites: int
    most_units: int
    routes: tuple[RouteUse, ...]
    links: tuple[LinkUse, ...]

    @property
    def links_cycles(self) -> int:
        """Cycles that all consumers waited for links."""
        return sum(route.links_cycles for route in self.routes)


_UNEVEN: Final = 1.5
"""Traffic is reported as uneven if the most is at least this many times the mean."""

_FEW: Final = 100
"""If no channel served this many requests, the traffic is uneven by chance."""


def bus_shares(bus: BusCycles) -> Iterator[tuple[BusUse, float]]:
    """Yield the categories of bus cycles and their percentages."""
    for use in BusUse:
        cycles = getattr(bus, use)
        if cycles:
            yield use, 100 * cycles / bus.total


def row_outcomes(counters: MemoryCounters) -> str:
    """Return in words how many requests met their open row, a closed bank or another row."""
    channels = counters.channels
    counted = {
        "row hits": sum(channel.row_hits for channel in channels),
        "misses": sum(channel.row_misses for channel in channels),
        "conflicts": sum(channel.row_conflicts for channel in channels),
    }
    whole = sum(counted.values())
    return ", ".join(
        f"{name} {count:,} ({100 * count / whole if whole else 0:.1f} %)"
        for name, count in counted.items()
    )


def uneven_channels(counters: MemoryCounters) -> str | None:
    """Describe the channels with most and least traffic, if the most far exceeds the mean."""
    served = [channel.requests for channel in counters.channels]
    most, mean = max(served, default=0), sum(served) / max(1, len(served))
    if most < max(_FEW, _UNEVEN * mean):
        return None
    least = min(served)
    return (
        f"channel {served.index(most)} served {counted(most, 'request')}, {most / mean:.1f} "
        f"times the mean; channel {served.index(least)} the fewest, {least:,}"
    )


_NUMBERS = 1 << 63
"""A valid count is less than this."""


def as_document(counters: MemoryCounters) -> JsonObject:
    """Return ``counters`` as JSON, with numbers of Python."""
    document: JsonObject = msgspec.to_builtins(counters, enc_hook=plain)
    return document


def counters_in(document: object, units: int) -> MemoryCounters:
    """Return the counters in a document of ``as_document``.

    Raises:
        Refusal: the document is malformed, or has clients beyond ``units``.
    """
    try:
        counters = msgspec.convert(document, MemoryCounters)
    except msgspec.ValidationError as error:
        raise Refusal(f"counters: {error}") from None
    for where, number in _numbers(document, ""):
        if not 0 <= number < _NUMBERS:
            raise Refusal(f"counters: {where} is {number}: expected 0 to {_NUMBERS - 1}")
    for client in counters.clients:
        if client.unit >= units:
            raise Refusal(f"counters: a client is unit {client.unit}: expected less than {units}")
    if counters.periods and not counters.period_cycles:
        raise Refusal("counters: period_cycles is 0: expected at least 1")
    return counters


def _numbers(document: object, where: str) -> Iterator[tuple[str, int]]:
    if isinstance(document, int):
        yield where, document
    elif isinstance(document, dict):
        for name, item in document.items():
            yield from _numbers(item, f"{where}.{name}".lstrip("."))
    elif isinstance(document, list | tuple):
        for place, item in enumerate(document):
            yield from _numbers(item, f"{where}[{place}]")

"""What was asked of memories and links over a run, and what became of their bandwidth.

The engine counts what operators asked of the memories, and no trace has it. What a memory has
counted is plain data, too, and is read back: a user's memory or a file may say anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from fabric.messages.telling.causes import BusUse
from fabric.messages.telling.errors import Refusal
from fabric.messages.telling.plain import JsonObject, plain
from fabric.messages.telling.wording import counted
from fabric.timing.engine.off_chip import MemoryCounters

if TYPE_CHECKING:
    from fabric.timing.engine.off_chip import BusCycles


class MemoryUse(NamedTuple):
    """What went to and from the memories, up to the end of a run.

    Attributes:
        loaded_bytes, stored_bytes: of tiles, off chip; a trace has whole requests only.
        on_chip_peak_bytes: the most held on chip in any cycle; a trace has waits for room only.
        on_chip_peak_pages: the most pages held in any cycle; None where there are none.
        on_chip_peak_empty_bytes: the most bytes empty in held pages in any cycle; likewise.
        spilled_bytes, fetched_bytes: of tiles of buffers that found no room on chip.
    """

    loaded_bytes: int
    stored_bytes: int
    on_chip_peak_bytes: int
    on_chip_peak_pages: int | None
    on_chip_peak_empty_bytes: int | None
    spilled_bytes: int
    fetched_bytes: int


@dataclass(frozen=True)
class RouteUse:
    """A channel between two sites.

    Attributes:
        channel: its name.
        source, target: the sites of its units, column and row.
        hop_cycles: from a send until the element can be seen, where no link holds it up.
        bytes: sent; None where no link of the route is limited, and nobody counts.
        links_cycles: its consumer waited for links that were taken, beyond the hop; part of the
            channel's ``empty_cycles``.
    """

    channel: str
    source: tuple[int, ...]
    target: tuple[int, ...]
    hop_cycles: int
    bytes: int | None
    links_cycles: int


@dataclass(frozen=True)
class LinkUse:
    """A link that something went over.

    Attributes:
        name: ``0,0 -> 1,0``, ``out of 0,0`` or ``into 0,0``.
        bytes: that went over it; what a Broadcast sends once for all its readers.
        bytes_per_cycle: that it could carry; None for any number.
        channels: whose elements went over it, by name.
    """

    name: str
    bytes: int
    bytes_per_cycle: int | None
    channels: tuple[str, ...]

    def share(self, cycles: int) -> float | None:
        """Return which part of what it could carry in ``cycles`` it did."""
        if self.bytes_per_cycle is None or not cycles:
            return None
        return self.bytes / (self.bytes_per_cycle * cycles)


@dataclass(frozen=True)
class NetworkUse:
    """A run's use of its network.

    Attributes:
        placement: the file that says where units are; None where they are put row by row.
        sites: that have units.
        most_units: of one site, those that the program names.
        routes: channels between two sites, in edge order.
        links: that were used, in their order.
    """

    placement: str | None
    sites: int
    most_units: int
    routes: tuple[RouteUse, ...]
    links: tuple[LinkUse, ...]

    @property
    def links_cycles(self) -> int:
        """Cycles of all consumers that waited for links."""
        return sum(route.links_cycles for route in self.routes)


_UNEVEN: Final = 1.5
"""So many times the mean of all channels is worth a sentence."""

_FEW: Final = 100
"""Fewer requests than that are uneven by chance."""


def bus_shares(bus: BusCycles) -> Iterator[tuple[BusUse, float]]:
    """Yield what there was of the cycles of data buses, and its percentage of them."""
    for use in BusUse:
        cycles = getattr(bus, use)
        if cycles:
            yield use, 100 * cycles / bus.total


def row_outcomes(counters: MemoryCounters) -> str:
    """Return how many requests found which row in their bank."""
    channels = counters.channels
    counted = {
        "row hits": sum(each.row_hits for each in channels),
        "misses": sum(each.row_misses for each in channels),
        "conflicts": sum(each.row_conflicts for each in channels),
    }
    whole = sum(counted.values())
    return ", ".join(
        f"{name} {count:,} ({100 * count / whole if whole else 0:.1f} %)"
        for name, count in counted.items()
    )


def uneven_channels(counters: MemoryCounters) -> str | None:
    """Return which channel served most and which least, where one has much more than the mean."""
    served = [channel.requests for channel in counters.channels]
    most, mean = max(served, default=0), sum(served) / max(1, len(served))
    if most < max(_FEW, _UNEVEN * mean):
        return None
    least = min(served)
    return (
        f"channel {served.index(most)} served {counted(most, 'request')}, {most / mean:.1f} "
        f"times the mean; "
        f"channel {served.index(least)} the fewest, {least:,}"
    )


_NUMBERS = 1 << 63
"""No count is as large."""


def as_document(counters: MemoryCounters) -> JsonObject:
    """Return ``counters`` in JSON's own types; numpy's numbers become numbers."""
    document: JsonObject = msgspec.to_builtins(counters, enc_hook=plain)
    return document


def counters_in(document: object, units: int) -> MemoryCounters:
    """Return the counters that ``as_document`` has made a document of.

    Args:
        document: any.
        units: of the program; clients are some of them.

    Raises:
        Refusal: it is none.
    """
    try:
        found = msgspec.convert(document, MemoryCounters)
    except msgspec.ValidationError as error:
        raise Refusal(f"counters: {error}") from None
    for where, number in _numbers(document, ""):
        if not 0 <= number < _NUMBERS:
            raise Refusal(f"counters: {where} is {number}: expected 0 to {_NUMBERS - 1}")
    for client in found.clients:
        if client.unit >= units:
            raise Refusal(f"counters: a client is unit {client.unit}: expected one below {units}")
    if found.periods and not found.period_cycles:
        raise Refusal("counters: period_cycles is 0: expected at least 1")
    return found


def _numbers(document: object, where: str) -> Iterator[tuple[str, int]]:
    """Yield all numbers, and where they are."""
    if isinstance(document, int):
        yield where, document
    elif isinstance(document, dict):
        for name, each in document.items():
            yield from _numbers(each, f"{where}.{name}".lstrip("."))
    elif isinstance(document, list | tuple):
        for place, each in enumerate(document):
            yield from _numbers(each, f"{where}[{place}]")

"""What a memory with channels and banks counts, and when: as data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

__all__ = ["BusCycles", "ChannelTraffic", "ClientTraffic", "MemoryCounters"]


@dataclass(frozen=True, slots=True)
class BusCycles:
    """Cycles of data buses, one bus per pseudo channel, by what happened in them.

    Each cycle up to the end of the last data is counted once.

    Attributes:
        data: carried data.
        refresh: rows were being refreshed.
        turnaround: the bus turned between reading and writing.
        window: requests waited outside of a full window, and none in it could go.
        conflict: requests waited, all of them in the window, for rows and command slots.
        idle: no request waited for a command.
    """

    data: int
    refresh: int
    turnaround: int
    window: int
    conflict: int
    idle: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True, slots=True)
class ChannelTraffic:
    """What a channel has carried.

    Attributes:
        reads, writes: requests served.
        row_hits: of them, those whose row was open.
        row_misses: those whose bank had no row open.
        row_conflicts: those whose bank had another row open.
        bus: of its pseudo channels together.
    """

    reads: int
    writes: int
    row_hits: int
    row_misses: int
    row_conflicts: int
    bus: BusCycles

    @property
    def requests(self) -> int:
        """Served, of both kinds."""
        return self.reads + self.writes


@dataclass(frozen=True, slots=True)
class ClientTraffic:
    """How the requests of a client fared; cycles are sums over its requests.

    Attributes:
        unit: its number.
        requests: served.
        row_hits, row_misses, row_conflicts: as of a channel.
        queued_cycles: waited outside of a channel's window.
        waiting_cycles: in the window, for the first command.
        serving_cycles: from there to the end of the data, or of the last command of a write.
    """

    unit: int
    requests: int
    row_hits: int
    row_misses: int
    row_conflicts: int
    queued_cycles: int
    waiting_cycles: int
    serving_cycles: int


@dataclass(frozen=True, slots=True)
class MemoryCounters:
    """What a memory has counted so far.

    Attributes:
        channels: in order.
        clients: in the order of their ports, readers first.
        period_cycles: that each of ``periods`` is long.
        periods: of the run so far, all channels together; the last one may not be over.
    """

    channels: tuple[ChannelTraffic, ...] = field(repr=False)
    clients: tuple[ClientTraffic, ...] = field(repr=False)
    period_cycles: int
    periods: tuple[BusCycles, ...] = field(repr=False)

    @property
    def bus(self) -> BusCycles:
        """Of all channels."""
        buses = [channel.bus for channel in self.channels]
        return BusCycles(
            *(sum(getattr(bus, each.name) for bus in buses) for each in fields(BusCycles))
        )

    @property
    def requests(self) -> int:
        """Served by all channels."""
        return sum(channel.requests for channel in self.channels)

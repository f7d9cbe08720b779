"""The memory behind the chip's pins: what the fabric asks of it, whatever stands in its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Final, Protocol, runtime_checkable

from fabric.graph.hardware.address_space import Burst
from fabric.timing.engine.unit import Unit


class OffChip(Protocol):
    """A memory that off-chip operators share.

    A unit hands over one burst at a time, at its own clock, and parks. Only when no unit can run is
    the memory told to advance: then it knows every burst of the cycles before the horizon. Units
    may still ask in the horizon's own cycle. The order of calls depends on the host. A memory may
    use clocks and ports of units, but not that order.
    """

    @property
    def pending(self) -> bool:
        """Whether a burst is under way."""
        ...

    @property
    def bytes_moved(self) -> int:
        """Bytes of all requests that the memory has taken, whole requests each."""
        ...

    @property
    def final_cycle(self) -> int | None:
        """The cycle in which it stops, once its clients have ended; None before.

        A memory that never outlasts its clients says None all along.
        """
        ...

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take ``burst`` at the clock of ``unit``, which has none under way.

        Raises:
            Refusal: the memory cannot serve it.
        """
        ...

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Go on to the first completion, or up to ``horizon_cycle``; called while one is pending.

        Returns:
            The units whose bursts are complete, in the order of the memory's ports; each has been
            ``answered``: its clock is the cycle in which it sees that, and what it waited counts.
        """
        ...

    def served(self, unit: Unit) -> int:
        """Return how many requests of the unit's burst under way have been taken."""
        ...


@runtime_checkable
class Counting(Protocol):
    """What a memory besides does that knows what became of its bandwidth."""

    def counters(self) -> MemoryCounters | None:
        """Return what it has counted so far."""
        ...


@runtime_checkable
class Foreseeing(Protocol):
    """What a memory besides does that knows how long it will be silent."""

    @property
    def silent_until(self) -> int:
        """A cycle up to which it completes none of the bursts that are under way.

        Bursts that are handed over later do not change that.
        """
        ...


def foreseeing(memory: OffChip | None) -> Foreseeing | None:
    """Return ``memory``, where it knows how long it will be silent."""
    itself: object = memory
    return itself if isinstance(itself, Foreseeing) else None


def counters_of(memory: OffChip) -> MemoryCounters | None:
    """Return what became of the bandwidth so far; None where the model does not count it."""
    return memory.counters() if isinstance(memory, Counting) else None


@runtime_checkable
class Prefetching(Protocol):
    """What a memory besides does that fetches what it knows it will be asked for."""

    @property
    def prefetches(self) -> bool:
        """Whether it does; else it is told nothing."""
        ...

    def announce(self, unit: Unit, bursts: Iterator[Burst]) -> None:
        """Know at the clock of ``unit`` which bursts it hands over next, one by one."""
        ...


def prefetching(memory: OffChip | None) -> Prefetching | None:
    """Return what stands behind ``memory``, where that fetches what it will be asked for."""
    behind = memory_behind(memory)
    return behind if isinstance(behind, Prefetching) and behind.prefetches else None


def memory_behind(memory: OffChip | None) -> object:
    """Return the memory itself, whatever stands for it."""
    behind: object = memory
    while isinstance(behind, StandIn):
        behind = behind.memory
    return behind


class StandIn:
    """Stands for a memory and says what that says; what differs is told by who extends it.

    Attributes:
        memory: what it stands for.
    """

    def __init__(self, memory: OffChip) -> None:
        """Stand for ``memory``."""
        self.memory: Final = memory

    @property
    def pending(self) -> bool:
        """See ``OffChip``, as all others."""
        return self.memory.pending

    @property
    def bytes_moved(self) -> int:
        """See ``OffChip``."""
        return self.memory.bytes_moved

    @property
    def final_cycle(self) -> int | None:
        """See ``OffChip``."""
        return self.memory.final_cycle

    def served(self, unit: Unit) -> int:
        """See ``OffChip``."""
        return self.memory.served(unit)

    def counters(self) -> MemoryCounters | None:
        """Return what became of the bandwidth so far; None where the model does not count it."""
        return counters_of(self.memory)


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

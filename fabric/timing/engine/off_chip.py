"""The interface of off-chip memories, and their counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Final, Protocol, runtime_checkable

from fabric.graph.hardware.address_space import Burst
from fabric.timing.engine.log import Log
from fabric.timing.engine.unit import Unit


class OffChip(Protocol):
    """A memory that off-chip operators share.

    A unit submits one burst at a time, at its own clock, and parks. The memory advances only when
    no unit can run. By that time it has all bursts of the cycles before the horizon, but units may
    still submit bursts in the cycle of the horizon. The order of calls depends on the host, so
    answers must depend only on clocks and ports of units.
    """

    @property
    def pending(self) -> bool:
        """Whether a burst is under way."""

    @property
    def bytes_moved(self) -> int:
        """Bytes of the requests that the memory has taken. Each request counts in full."""

    @property
    def final_cycle(self) -> int | None:
        """The cycle in which the memory stops; None until its clients have ended.

        Always None for a memory that stops with its last client.
        """

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take ``burst`` at the clock of ``unit``, which has no other burst under way.

        Raises:
            Refusal: the memory cannot serve it.
        """

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Advance to the first completion, or to ``horizon_cycle``; a burst is pending.

        Returns:
            The units with complete bursts, in the order of the memory's ports. Each was
            ``answered``, which sets its clock and counts its wait.
        """

    def served(self, unit: Unit) -> int:
        """Return how many requests of the unit's burst under way the memory has taken."""


@runtime_checkable
class Counting(Protocol):
    """A memory that counts the use of its bandwidth."""

    def counters(self) -> MemoryCounters | None:
        """Return the counters so far."""


def counters_of(memory: OffChip) -> MemoryCounters | None:
    """Return the counters so far; None if the model has none."""
    return memory.counters() if isinstance(memory, Counting) else None


@runtime_checkable
class Prefetching(Protocol):
    """A memory that fetches announced bursts ahead."""

    @property
    def prefetches(self) -> bool:
        """Whether it fetches ahead; else ``announce`` is not called."""

    def announce(self, unit: Unit, bursts: Iterator[Burst]) -> None:
        """Announce the next bursts of ``unit``, at its clock."""


def prefetching(memory: OffChip | None) -> Prefetching | None:
    """Return the memory without wrappers, if it fetches ahead."""
    behind: object = memory
    while isinstance(behind, StandIn):
        behind = behind.memory
    return behind if isinstance(behind, Prefetching) and behind.prefetches else None


class StandIn:
    """Wraps ``memory`` and returns its answers; subclasses override methods."""

    def __init__(self, memory: OffChip) -> None:
        self.memory: Final = memory

    @property
    def pending(self) -> bool:
        return self.memory.pending

    @property
    def bytes_moved(self) -> int:
        return self.memory.bytes_moved

    @property
    def final_cycle(self) -> int | None:
        return self.memory.final_cycle

    def served(self, unit: Unit) -> int:
        return self.memory.served(unit)

    def counters(self) -> MemoryCounters | None:
        return counters_of(self.memory)


class LoggedOffChip(StandIn):
    """Writes a row at the answer of each burst."""

    def __init__(self, memory: OffChip, request_bytes: int, log: Log) -> None:
        super().__init__(memory)
        self._request_bytes: Final = request_bytes
        self._log: Final = log
        self._under_way: dict[int, tuple[int, int]] = {}

    def submit(self, unit: Unit, burst: Burst) -> None:
        self.memory.submit(unit, burst)
        self._under_way[unit.index] = burst.requests(self._request_bytes), unit.now

    def advance(self, horizon_cycle: int) -> list[Unit]:
        done = self.memory.advance(horizon_cycle)
        self.write(done)
        return done

    def write(self, done: Iterable[Unit]) -> None:
        for unit in done:
            requests, submitted_cycle = self._under_way.pop(unit.index)
            self._log.burst(unit, requests, unit.now - submitted_cycle)


@dataclass(frozen=True, slots=True)
class BusCycles:
    """Cycles of data buses by their use. Each pseudo channel has one bus.

    Each cycle up to the end of the last data is counted once.

    Attributes:
        data: carried data.
        refresh: rows were being refreshed.
        turnaround: the bus turned between reading and writing.
        window: requests waited outside of a full window, and none in it could be served.
        conflict: all waiting requests were in the window, and waited for rows or command slots.
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
        """Sum of all cycles."""
        return sum(getattr(self, use.name) for use in fields(self))


@dataclass(frozen=True, slots=True)
class ChannelTraffic:
    """Requests that a channel of a memory with banks has served, and the use of its buses.

    Attributes:
        reads, writes: requests served.
        row_hits: requests to an open row.
        row_misses: requests to a bank without an open row.
        row_conflicts: requests to a bank with another row open.
        bus: sum of its pseudo channels.
    """

    reads: int
    writes: int
    row_hits: int
    row_misses: int
    row_conflicts: int
    bus: BusCycles

    @property
    def requests(self) -> int:
        """Requests served, reads and writes."""
        return self.reads + self.writes


@dataclass(frozen=True, slots=True)
class ClientTraffic:
    """Requests of a client; cycles are sums over its requests.

    Attributes:
        unit: its number.
        requests: served.
        row_hits, row_misses, row_conflicts: as in ``ChannelTraffic``.
        queued_cycles: waited outside of a channel's window.
        waiting_cycles: in the window, for the first command.
        serving_cycles: from the first command to the end of the data, or of the last command of a
            write.
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
    """Counters of a memory so far.

    Attributes:
        channels: in order.
        clients: in the order of their ports, readers first.
        period_cycles: the length of each of ``periods``.
        periods: bus cycles of all channels; the last period may be incomplete.
    """

    channels: tuple[ChannelTraffic, ...] = field(repr=False)
    clients: tuple[ClientTraffic, ...] = field(repr=False)
    period_cycles: int
    periods: tuple[BusCycles, ...] = field(repr=False)

    @property
    def bus(self) -> BusCycles:
        """Sum of all channels."""
        buses = [channel.bus for channel in self.channels]
        return BusCycles(
            *(sum(getattr(bus, use.name) for bus in buses) for use in fields(BusCycles))
        )

    @property
    def requests(self) -> int:
        """Requests served by all channels."""
        return sum(channel.requests for channel in self.channels)

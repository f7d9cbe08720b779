"""Observed channels and memories, which report to the observers of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.timing.engine.channel import Channel
from fabric.timing.engine.observed_channel import (
    NetworkedChannel,
    ObservedChannel,
    ObservedNetworkedChannel,
)
from fabric.timing.engine.off_chip import StandIn
from fabric.timing.engine.on_chip import OnChipMemory
from fabric.timing.engine.unit import Reading

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Burst
    from fabric.graph.hardware.latency import Hop
    from fabric.graph.values.value import Element
    from fabric.timing.engine.clock import VirtualClock
    from fabric.timing.engine.observer import Observer, Sent, Stamp, Taken, Transferred
    from fabric.timing.engine.off_chip import OffChip
    from fabric.timing.engine.unit import Unit


class Observation:
    """One run and its observers."""

    def __init__(self, observers: Sequence[Observer], units: tuple[Unit, ...]) -> None:
        """Begin a run with these ``units``.

        Raises:
            ConfigurationError: nothing is observed.
        """
        self.next_order: Final[Callable[[], int]] = count().__next__
        self._observers: Final = tuple(observers)
        for observer in observers:
            observer.begin(units, self.next_order)

    def channel(
        self,
        number: int,
        name: str,
        depth: int,
        producer: Unit,
        consumer: Unit,
        clock: VirtualClock,
        hop: Hop,
        *,
        opened: bool,
        shared: bool = False,
    ) -> Channel:
        """Return channel ``number``, a plain one if it is not observed.

        A channel that is not ``opened`` may be observed later; a ``shared`` one uses shared links.
        """
        observed = ObservedNetworkedChannel if shared else ObservedChannel
        channel = observed(
            name, depth, producer, consumer, clock, hop, number, self.next_order, opened=opened
        )
        if not opened or self._watch(channel):
            return channel
        plain = NetworkedChannel if shared else Channel
        return plain(name, depth, producer, consumer, clock, hop)

    def open(self, channel: Channel) -> None:
        """Open a channel and observe it."""
        channel.open()
        assert isinstance(channel, ObservedChannel)
        self._watch(channel)

    def _watch(self, channel: ObservedChannel) -> bool:
        asked = [(each, each.watch(channel)) for each in self._observers]
        told = [(each, transferred) for each, transferred in asked if transferred is not None]
        channel.tell(
            tuple(each for each, _ in told), _together([transferred for _, transferred in told])
        )
        return bool(told)

    def off_chip(self, memory: OffChip, request_bytes: int) -> ObservedOffChip:
        """Return an observed wrapper of ``memory``, whose requests move ``request_bytes`` each."""
        return ObservedOffChip(memory, request_bytes, self._observers, self.next_order)

    def reading(self, unit: Unit) -> Reading:
        """Return the clock of ``unit``, numbered among its operations."""
        return Reading.at(unit.now, self.next_order())

    def arrived(self, source: Channel, element: int) -> None:
        """Report a group whose first element is ``element`` of ``source``."""
        if isinstance(source, ObservedChannel):
            stamp = self.next_order(), source.consumer.now, 0
            for observer in self._observers:
                observer.arrived(source, stamp, element)

    def was_busy(self, unit: Unit, charged_cycles: int, cycles: int) -> None:
        """Report that ``unit`` was charged for the rest of ``cycles`` since an arrival."""
        stamp = self.next_order(), unit.now, charged_cycles
        for observer in self._observers:
            observer.was_busy(unit, stamp, cycles)

    def chose(self, unit: Unit) -> None:
        """Report that the work of ``unit`` depends on which input came first."""
        stamp = self.next_order(), unit.now, 0
        for observer in self._observers:
            observer.chose(unit, stamp)

    def finished(self, unit: Unit) -> None:
        """Report that the operator of ``unit`` has done its work."""
        stamp = self.next_order(), unit.now, 0
        for observer in self._observers:
            observer.finished(unit, stamp)

    def on_chip_memory(
        self, capacity_bytes: int | None, clock: VirtualClock
    ) -> ObservedOnChipMemory:
        """Return the on-chip memory."""
        return ObservedOnChipMemory(capacity_bytes, clock, self._observers, self.next_order)


def _together(told: Sequence[Transferred]) -> Transferred:
    if len(told) == 1:
        return told[0]

    def all_of_them(element: Element, sent: Sent, seen: Stamp, taken: Taken | None) -> None:
        for transferred in told:
            transferred(element, sent, seen, taken)

    return all_of_them


class ObservedOffChip(StandIn):
    """Wraps an off-chip memory; each burst is reported when it is complete."""

    def __init__(
        self,
        memory: OffChip,
        request_bytes: int,
        observers: Sequence[Observer],
        next_order: Callable[[], int],
    ) -> None:
        super().__init__(memory)
        self._request_bytes: Final = request_bytes
        self._observers: Final = observers
        self._next_order: Final = next_order
        self._under_way: dict[int, tuple[int, int, int]] = {}

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Submit ``burst`` and note its cycle."""
        self.memory.submit(unit, burst)
        requests = burst.requests(self._request_bytes)
        self._under_way[unit.index] = (self._next_order(), unit.now, requests)

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Advance the memory and report complete bursts."""
        done = self.memory.advance(horizon_cycle)
        for unit in done:
            order, submitted, requests = self._under_way.pop(unit.index)
            for observer in self._observers:
                observer.burst(unit, requests, (order, unit.now, unit.now - submitted))
        return done


class ObservedOnChipMemory(OnChipMemory):
    """An on-chip memory that reports its allocations."""

    def __init__(
        self,
        capacity_bytes: int | None,
        clock: VirtualClock,
        observers: Sequence[Observer],
        next_order: Callable[[], int],
    ) -> None:
        super().__init__(capacity_bytes, clock)
        self._observers: Final = observers
        self._next_order: Final = next_order

    @override
    async def allocate(
        self, unit: Unit, size_bytes: int, what: str, *, held_bytes: int = 0, spills: bool = False
    ) -> bool:
        before = unit.now
        given = await super().allocate(unit, size_bytes, what, held_bytes=held_bytes, spills=spills)
        if not given:
            return False
        room_bytes = self.room_bytes(size_bytes, held_bytes)
        stamp = self._next_order(), unit.now, unit.now - before
        for observer in self._observers:
            observer.allocated(unit, room_bytes, stamp)
        return True

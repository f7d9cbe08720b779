"""The parts of a machine that is watched: channels and memories that tell observers."""

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
    """One run, as its observers have it.

    Attributes:
        next_order: draws the next number for an operation, of whatever unit.
    """

    def __init__(self, observers: Sequence[Observer], units: tuple[Unit, ...]) -> None:
        """Begin a run with these ``units``.

        Raises:
            ConfigurationError: there is nothing an observer wants to know.
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
        """Return the channel ``number``, a plain one where nobody watches it.

        One that is not ``opened`` may be watched later; one that is ``shared`` goes over links of a
        network.
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
        """Open one that was not, and let it be watched."""
        channel.open()
        assert isinstance(channel, ObservedChannel)
        self._watch(channel)

    def _watch(self, channel: ObservedChannel) -> bool:
        """Ask who watches ``channel``; whether anybody does."""
        asked = [(each, each.watch(channel)) for each in self._observers]
        told = [(each, transferred) for each, transferred in asked if transferred is not None]
        channel.tell(
            tuple(each for each, _ in told), _together([transferred for _, transferred in told])
        )
        return bool(told)

    def off_chip(self, memory: OffChip, request_bytes: int) -> ObservedOffChip:
        """Return what stands for ``memory``, whose requests move ``request_bytes`` each."""
        return ObservedOffChip(memory, request_bytes, self._observers, self.next_order)

    def reading(self, unit: Unit) -> Reading:
        """Return the clock of ``unit``, as what it was at this place among its operations."""
        return Reading.at(unit.now, self.next_order())

    def arrived(self, source: Channel, element: int) -> None:
        """Tell that a group was taken up whose first element is ``element`` of ``source``."""
        if isinstance(source, ObservedChannel):
            stamp = self.next_order(), source.consumer.now, 0
            for observer in self._observers:
                observer.arrived(source, stamp, element)

    def was_busy(self, unit: Unit, charged_cycles: int, cycles: int) -> None:
        """Tell that ``unit`` was charged what was left of ``cycles`` since an arrival."""
        stamp = self.next_order(), unit.now, charged_cycles
        for observer in self._observers:
            observer.was_busy(unit, stamp, cycles)

    def chose(self, unit: Unit) -> None:
        """Tell that what ``unit`` does depends on which input came first."""
        stamp = self.next_order(), unit.now, 0
        for observer in self._observers:
            observer.chose(unit, stamp)

    def finished(self, unit: Unit) -> None:
        """Tell that the operator of ``unit`` has done its work."""
        stamp = self.next_order(), unit.now, 0
        for observer in self._observers:
            observer.finished(unit, stamp)

    def on_chip_memory(
        self, capacity_bytes: int | None, clock: VirtualClock
    ) -> ObservedOnChipMemory:
        """Return the on-chip memory."""
        return ObservedOnChipMemory(capacity_bytes, clock, self._observers, self.next_order)


def _together(told: Sequence[Transferred]) -> Transferred:
    """Return what calls all that are ``told``, at least one."""
    if len(told) == 1:
        return told[0]

    def all_of_them(element: Element, sent: Sent, seen: Stamp, taken: Taken | None) -> None:
        for transferred in told:
            transferred(element, sent, seen, taken)

    return all_of_them


class ObservedOffChip(StandIn):
    """Any off-chip memory; each burst is told of when it is complete."""

    def __init__(
        self,
        memory: OffChip,
        request_bytes: int,
        observers: Sequence[Observer],
        next_order: Callable[[], int],
    ) -> None:
        """Stand for ``memory``; operations get their numbers from ``next_order``."""
        super().__init__(memory)
        self._request_bytes: Final = request_bytes
        self._observers: Final = observers
        self._next_order: Final = next_order
        self._under_way: dict[int, tuple[int, int, int]] = {}

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Hand ``burst`` on and remember when."""
        self.memory.submit(unit, burst)
        requests = burst.requests(self._request_bytes)
        self._under_way[unit.index] = (self._next_order(), unit.now, requests)

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Let the memory advance and tell what is complete."""
        done = self.memory.advance(horizon_cycle)
        for unit in done:
            order, submitted, requests = self._under_way.pop(unit.index)
            for observer in self._observers:
                observer.burst(unit, requests, (order, unit.now, unit.now - submitted))
        return done


class ObservedOnChipMemory(OnChipMemory):
    """An on-chip memory that tells of the room it gives."""

    def __init__(
        self,
        capacity_bytes: int | None,
        clock: VirtualClock,
        observers: Sequence[Observer],
        next_order: Callable[[], int],
    ) -> None:
        """See ``OnChipMemory``; operations get their numbers from ``next_order``."""
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

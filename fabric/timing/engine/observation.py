"""Reports the events of a run to its observers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

from fabric.timing.engine.observer import Watched
from fabric.timing.engine.off_chip import StandIn
from fabric.timing.engine.unit import Reading

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Burst
    from fabric.timing.engine.channel import Channel
    from fabric.timing.engine.observer import Observer, Stamp
    from fabric.timing.engine.off_chip import OffChip
    from fabric.timing.engine.unit import Unit


class Observation:
    """One run and its observers."""

    def __init__(self, observers: Sequence[Observer], units: tuple[Unit, ...]) -> None:
        self.next_order: Final[Callable[[], int]] = count().__next__
        self._observers: Final = tuple(observers)
        for observer in observers:
            observer.begin(units, self.next_order)

    def watch(self, number: int, channel: Channel) -> None:
        """Observe channel ``number``, if any observer watches it."""
        log = Watched(
            number,
            channel.name,
            channel.producer,
            channel.consumer,
            channel.forward_cycles,
            channel.way,
            self.next_order,
        )
        if log.tell(self._observers):
            channel.log = log

    def reading(self, unit: Unit) -> Reading:
        """Return the clock of ``unit``, numbered among its operations."""
        return Reading.at(unit.now, self.next_order())

    def arrived(self, source: Channel, element: int) -> None:
        """Report a group that begins with ``element`` of ``source``."""
        if source.log is not None:
            stamp = self._stamp(source.consumer)
            for observer in self._observers:
                observer.arrived(source.log, stamp, element)

    def was_busy(self, unit: Unit, charged_cycles: int, cycles: int) -> None:
        """Report that ``unit`` was charged for the rest of ``cycles`` since an arrival."""
        stamp = self._stamp(unit, charged_cycles)
        for observer in self._observers:
            observer.was_busy(unit, stamp, cycles)

    def chose(self, unit: Unit) -> None:
        """Report that the work of ``unit`` depends on which input came first."""
        stamp = self._stamp(unit)
        for observer in self._observers:
            observer.chose(unit, stamp)

    def finished(self, unit: Unit) -> None:
        """Report that the operator of ``unit`` has done its work."""
        stamp = self._stamp(unit)
        for observer in self._observers:
            observer.finished(unit, stamp)

    def allocated(self, unit: Unit, room_bytes: int, waited: int) -> None:
        """Report that ``unit`` was given ``room_bytes`` on chip."""
        stamp = self._stamp(unit, waited)
        for observer in self._observers:
            observer.allocated(unit, room_bytes, stamp)

    def burst(self, unit: Unit, requests: int, order: int, waited: int) -> None:
        """Report that a burst of ``unit``, submitted as operation ``order``, is complete."""
        for observer in self._observers:
            observer.burst(unit, requests, (order, unit.now, waited))

    def _stamp(self, unit: Unit, cycles: int = 0) -> Stamp:
        return self.next_order(), unit.now, cycles


class ObservedOffChip(StandIn):
    """Wraps an off-chip memory; each burst is reported when it is complete."""

    def __init__(self, memory: OffChip, request_bytes: int, observation: Observation) -> None:
        super().__init__(memory)
        self._request_bytes: Final = request_bytes
        self._observation: Final = observation
        self._under_way: dict[int, tuple[int, int, int]] = {}

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Submit ``burst`` and note its cycle."""
        self.memory.submit(unit, burst)
        requests = burst.requests(self._request_bytes)
        self._under_way[unit.index] = (requests, self._observation.next_order(), unit.now)

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Advance the memory and report complete bursts."""
        done = self.memory.advance(horizon_cycle)
        for unit in done:
            requests, order, submitted_cycle = self._under_way.pop(unit.index)
            self._observation.burst(unit, requests, order, unit.now - submitted_cycle)
        return done

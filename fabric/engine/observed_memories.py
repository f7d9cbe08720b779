"""Memories that are watched: those of any other run, and afterwards who watches is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.engine.off_chip import StandIn
from fabric.engine.on_chip import OnChipMemory

if TYPE_CHECKING:
    from fabric.engine.clock import VirtualClock
    from fabric.engine.observer import Observer
    from fabric.engine.off_chip import Burst, OffChip
    from fabric.engine.unit import Unit

__all__ = ["ObservedOffChip", "ObservedOnChipMemory"]


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

"""Memories that are watched: those of any other run, and afterwards who watches is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.engine.hbm import Hbm
from fabric.engine.on_chip import OnChipMemory

if TYPE_CHECKING:
    from fabric.engine.clock import VirtualClock
    from fabric.engine.observer import Observer
    from fabric.engine.unit import Unit
    from fabric.hardware.description import HbmDescription

__all__ = ["ObservedHbm", "ObservedOnChipMemory"]


class ObservedHbm(Hbm):
    """An HBM that tells of each burst when it is complete."""

    def __init__(
        self,
        description: HbmDescription,
        readers: list[Unit],
        writers: list[Unit],
        observers: Sequence[Observer],
        next_order: Callable[[], int],
    ) -> None:
        """See ``Hbm``; operations get their numbers from ``next_order``."""
        super().__init__(description, readers, writers)
        self._observers: Final = observers
        self._next_order: Final = next_order
        self._under_way: dict[int, tuple[int, int, int]] = {}

    @override
    def submit(self, unit: Unit, requests: int) -> None:
        self._under_way[unit.index] = (self._next_order(), unit.now, requests)
        super().submit(unit, requests)

    def under_way(self, unit: int) -> int:
        """Return how many requests of the burst that a unit waits for have been served."""
        return self.served(unit, self._under_way[unit][2])

    @override
    def advance(self, horizon_cycle: int) -> list[tuple[Unit, int]]:
        done = super().advance(horizon_cycle)
        for unit, cycle in done:
            order, submitted, requests = self._under_way.pop(unit.index)
            for observer in self._observers:
                observer.burst(unit, requests, (order, cycle, cycle - submitted))
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
        self, unit: Unit, size_bytes: int, what: str, *, held_bytes: int = 0
    ) -> None:
        before = unit.now
        await super().allocate(unit, size_bytes, what, held_bytes=held_bytes)
        stamp = self._next_order(), unit.now, unit.now - before
        for observer in self._observers:
            observer.allocated(unit, size_bytes, stamp)

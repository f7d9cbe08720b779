"""On-chip memory: one capacity that all memory units allocate from, and its use over time.

What does not fit waits, served by (cycle, node); what can never fit is an error.
"""

from __future__ import annotations

import bisect
import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from fabric.engine.unit import Unit, Wait
from fabric.telling.causes import Operation
from fabric.telling.errors import CapacityError
from fabric.telling.wording import counted

if TYPE_CHECKING:
    from fabric.engine.clock import VirtualClock

__all__ = ["Allocation", "OnChipMemory"]

_FOLD: Final = 1 << 17
"""Ledger entries after which the past is folded into one level and one peak."""


class Allocation:
    """The on-chip memory of a buffer, until the last reader of the buffer is done.

    Attributes:
        memory: where the room is.
        owner: the unit that asked for it.
        size_bytes: how much.
        holders: references that are not done yet.
    """

    __slots__ = ("_done_cycle", "holders", "memory", "owner", "size_bytes")

    def __init__(self, memory: OnChipMemory, owner: Unit, size_bytes: int) -> None:
        """Stand for room that was allocated, with one holder."""
        self.memory: Final = memory
        self.owner: Final = owner
        self.size_bytes: Final = size_bytes
        self.holders = 1
        self._done_cycle = 0

    def share(self, more: int) -> None:
        """Count ``more`` holders."""
        self.holders += more

    def done(self, cycle: int) -> None:
        """Count one holder less; the last gives the room back at the latest of their cycles."""
        self._done_cycle = max(self._done_cycle, cycle)
        self.holders -= 1
        if not self.holders:
            self.memory.release(self.owner, self.size_bytes, self._done_cycle)


class _Ledger:
    """An amount over time, of which the most in any cycle is asked for."""

    def __init__(self, now: Callable[[], int]) -> None:
        """Begin with nothing; before the cycle ``now`` nothing is recorded any more."""
        self._now: Final = now
        self._changes: list[tuple[int, int]] = []
        self._fold_at = _FOLD
        self._level = 0
        self._peak = 0

    def record(self, cycle: int, change: int) -> None:
        """Count a change."""
        self._changes.append((cycle, change))
        if len(self._changes) >= self._fold_at:
            self._fold(before=self._now())

    def extend(self, changes: Iterable[tuple[int, int]]) -> None:
        """Count changes: cycles and amounts."""
        self._changes.extend(changes)
        if len(self._changes) >= self._fold_at:
            self._fold(before=self._now())

    @property
    def peak(self) -> int:
        """The most in any cycle so far."""
        self._fold(before=None)
        return self._peak

    @property
    def level(self) -> int:
        """What is left after all changes so far."""
        return self._level + sum(change for _, change in self._changes)

    def _fold(self, before: int | None) -> None:
        changes = sorted(self._changes)
        end = len(changes) if before is None else bisect.bisect_left(changes, (before,))
        levels = list(accumulate((change for _, change in changes[:end]), initial=self._level))
        self._peak = max(self._peak, *levels)
        self._level = levels[-1]
        self._changes = changes[end:]
        # What is ahead of the clock stays: it is sorted again when there is twice as much.
        self._fold_at = max(_FOLD, 2 * len(self._changes))


class OnChipMemory:
    """Room for tiles and buffers.

    Attributes:
        capacity_bytes: None for unlimited.
        held_by: bytes, by the unit that asked for them, where the capacity is limited.
        page_bytes: where set, it is counted how many pages of so many bytes would hold it all.
    """

    def __init__(self, capacity_bytes: int | None, clock: VirtualClock) -> None:
        self.capacity_bytes: Final = capacity_bytes
        self._clock = clock
        self._used_bytes = 0
        self.held_by: defaultdict[Unit, int] = defaultdict(int)
        self._releases: list[tuple[int, int]] = []
        self._waiting: list[tuple[int, int, Unit, int]] = []
        self.page_bytes: int | None = None
        self._bytes: Final = _Ledger(lambda: clock.now)
        self._pages: Final = _Ledger(lambda: clock.now)

    async def allocate(
        self, unit: Unit, size_bytes: int, what: str, *, held_bytes: int = 0
    ) -> None:
        """Take ``size_bytes`` at the unit's clock, or wait until they are free.

        Args:
            unit: who asks; cycles it waits are counted as ``capacity_cycles``.
            size_bytes: how much.
            what: names the buffer in an error.
            held_bytes: what the buffer has already, where it grows.

        Raises:
            CapacityError: the buffer is larger than the whole capacity.
        """
        if self.capacity_bytes is not None:
            total_bytes = held_bytes + size_bytes
            if total_bytes > self.capacity_bytes:
                # Others may be behind in their own time: what is free is known when they are not.
                await self._clock.reach(unit, unit.now)
                raise CapacityError(
                    f"{unit.name}: {what} takes {counted(total_bytes, 'byte')}: expected at most "
                    f"the on-chip capacity of {counted(self.capacity_bytes, 'byte')}, of which "
                    f"{self._free_bytes(unit.now):,} are free",
                    file=unit.place.file,
                    line=unit.place.line,
                )
            await self._wait_for_room(unit, size_bytes)
            self.held_by[unit] += size_bytes
        self._bytes.record(unit.now, size_bytes)
        if self.page_bytes is not None:
            # What grows fills its last page first.
            pages = _pages(held_bytes + size_bytes, self.page_bytes)
            self._pages.record(unit.now, pages - _pages(held_bytes, self.page_bytes))

    def release(self, owner: Unit, size_bytes: int, cycle: int) -> None:
        """Give back at ``cycle`` ``size_bytes`` that ``owner`` asked for."""
        self._bytes.record(cycle, -size_bytes)
        if self.page_bytes is not None:
            self._pages.record(cycle, -_pages(size_bytes, self.page_bytes))
        if self.capacity_bytes is not None:
            self.held_by[owner] -= size_bytes
            heapq.heappush(self._releases, (cycle, size_bytes))
            self._wake_first()

    def record(self, changes: Iterable[tuple[int, int]]) -> None:
        """Count what was allocated and given back elsewhere: cycles and bytes."""
        self._bytes.extend(changes)

    @property
    def requests(self) -> list[tuple[Unit, int]]:
        """Units that wait for room and the bytes they want, in the order they are served."""
        return [(unit, size_bytes) for _, _, unit, size_bytes in self._waiting]

    @property
    def peak_bytes(self) -> int:
        """The most bytes held in any cycle so far."""
        return self._bytes.peak

    @property
    def peak_pages(self) -> int | None:
        """The most pages held in any cycle so far; None where they are not counted."""
        return None if self.page_bytes is None else self._pages.peak

    @property
    def held_bytes(self) -> int:
        """The bytes held after all that was allocated and given back so far."""
        return self._bytes.level

    async def _wait_for_room(self, unit: Unit, size_bytes: int) -> None:
        request = (unit.now, unit.index, unit, size_bytes)
        bisect.insort(self._waiting, request, key=lambda entry: entry[:2])
        clock = self._clock
        while True:
            first = self._waiting[0] is request
            target = self._fits_at(size_bytes, unit.now) if first else None
            if target is None:
                await clock.park(unit, Wait(Operation.CAPACITY, (), unit.now))
                continue
            await clock.reach(unit, target)
            first = self._waiting[0] is request
            if first and clock.now >= target == self._fits_at(size_bytes, unit.now):
                break
        self._waiting.pop(0)
        unit.capacity_cycles += target - unit.now
        unit.now = target
        self._used_bytes += size_bytes
        self._wake_first()

    def _free_bytes(self, cycle: int) -> int:
        """Return how much is free at ``cycle``, before which nothing can happen any more."""
        assert self.capacity_bytes is not None
        released_bytes = sum(size_bytes for when, size_bytes in self._releases if when <= cycle)
        return self.capacity_bytes - self._used_bytes + released_bytes

    def _fits_at(self, size_bytes: int, cycle: int) -> int | None:
        """Return the first cycle from ``cycle`` on with room, by what is known so far."""
        cycle = max(cycle, self._clock.now)
        releases = self._releases
        while releases and releases[0][0] <= self._clock.now:
            self._used_bytes -= heapq.heappop(releases)[1]
        assert self.capacity_bytes is not None
        missing = self._used_bytes + size_bytes - self.capacity_bytes
        for released_cycle, released_bytes in sorted(releases):
            if missing <= 0 and released_cycle > cycle:
                break
            missing -= released_bytes
            cycle = max(cycle, released_cycle)
        return cycle if missing <= 0 else None

    def _wake_first(self) -> None:
        if self._waiting:
            self._clock.wake(self._waiting[0][2])


def _pages(size_bytes: int, page_bytes: int) -> int:
    return -(-size_bytes // page_bytes)

"""On-chip memory: one capacity that all memory units allocate from, and its use over time.

Allocations that do not fit wait in the order of cycle and node. Allocations that never fit are
errors. With pages, free, requested and held room is in bytes of whole pages.
"""

from __future__ import annotations

import bisect
import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from fabric.messages.causes import Operation
from fabric.messages.errors import CapacityError
from fabric.messages.text import counted
from fabric.timing.engine.unit import Unit, Wait

if TYPE_CHECKING:
    from fabric.graph.hardware.description import Pages
    from fabric.timing.engine.clock import VirtualClock
    from fabric.timing.engine.log import Log


class Allocation:
    """The on-chip memory of a buffer, until the last reader of the buffer has ended.

    Attributes:
        owner: the unit that allocated the room.
        holders: number of open references.
        spilled: off-chip addresses of spilled elements, by number.
    """

    __slots__ = ("_done_cycle", "holders", "memory", "owner", "size_bytes", "spilled")

    def __init__(
        self,
        memory: OnChipMemory,
        owner: Unit,
        size_bytes: int,
        spilled: dict[int, int] | None = None,
    ) -> None:
        self.memory: Final = memory
        self.owner: Final = owner
        self.size_bytes: Final = size_bytes
        self.holders = 1
        self.spilled: Final = spilled or {}
        self._done_cycle = 0

    def share(self, more: int) -> None:
        self.holders += more

    def done(self, cycle: int) -> None:
        """Remove a holder; the last one frees the room at the latest of their cycles."""
        self._done_cycle = max(self._done_cycle, cycle)
        self.holders -= 1
        if not self.holders:
            self.memory.release(self.owner, self.size_bytes, self._done_cycle)


class OnChipMemory:
    """Room for tiles and buffers.

    Attributes:
        capacity_bytes: None for unlimited.
        held_by: bytes by owner; empty if the capacity is unlimited.
        pages: None if room is allocated in bytes.
        spill_address: the next off-chip address; None without spilling. Addresses are not reused.
        reserved_bytes: room that buffers with spilling leave to other buffers.
    """

    def __init__(
        self,
        capacity_bytes: int | None,
        clock: VirtualClock,
        log: Log | None = None,
    ) -> None:
        self.capacity_bytes: Final = capacity_bytes
        self._log: Final = log
        self._clock = clock
        self._used_bytes = 0
        self.held_by: defaultdict[Unit, int] = defaultdict(int)
        self._releases: list[tuple[int, int]] = []
        self._waiting: list[tuple[int, int, Unit, int]] = []
        self.pages: Pages | None = None
        self.spill_address: int | None = None
        self.reserved_bytes = 0
        self._spilling: set[Unit] = set()
        self._spillable_bytes = 0
        self._spillable_releases: list[tuple[int, int]] = []
        self._bytes: Final = AmountOverTime(lambda: clock.now)
        self._paged_bytes: Final = AmountOverTime(lambda: clock.now)
        self._empty_bytes: Final = AmountOverTime(lambda: clock.now)

    async def allocate(
        self, unit: Unit, size_bytes: int, what: str, *, held_bytes: int = 0, spills: bool = False
    ) -> bool:
        """Take ``size_bytes`` at the unit's clock, or wait until they are free.

        ``what`` names the buffer in errors, and ``held_bytes`` is its size before it grows. If
        ``spills`` and the hardware spills, the unit does not wait.

        Returns:
            Whether there is room; else the tile has to be spilled.

        Raises:
            CapacityError: the buffer is larger than the whole capacity.
        """
        room_bytes, before_cycle = self.room_bytes(size_bytes, held_bytes), unit.now
        if self.capacity_bytes is not None:
            spills = spills and self.spill_address is not None
            if spills and room_bytes and not await self._finds_room(unit, room_bytes):
                return False
            if not spills and self._room(held_bytes + size_bytes) > self._limit_bytes:
                # The error states the free bytes, and units that are behind may still free some.
                await self._clock.reach(unit, unit.now)
                raise self._never_fits(unit, held_bytes + size_bytes, what)
            if room_bytes and not spills:
                await self._wait_for_room(unit, room_bytes)
            self.held_by[unit] += room_bytes
        self._count(unit.now, size_bytes, room_bytes)
        if self._log is not None:
            self._log.allocated(unit, room_bytes, unit.now - before_cycle)
        return True

    def release(self, owner: Unit, size_bytes: int, cycle: int) -> None:
        """Free an allocation of ``size_bytes`` of ``owner``, at ``cycle``."""
        room_bytes = self._room(size_bytes)
        self._count(cycle, -size_bytes, -room_bytes)
        if self.capacity_bytes is not None:
            self.held_by[owner] -= room_bytes
            heapq.heappush(self._releases, (cycle, room_bytes))
            if owner in self._spilling:
                heapq.heappush(self._spillable_releases, (cycle, room_bytes))
            self._wake_first()

    def room_bytes(self, size_bytes: int, held_bytes: int = 0) -> int:
        """Return the room that ``size_bytes`` more need; they first fill the last held page."""
        return self._room(held_bytes + size_bytes) - self._room(held_bytes)

    def record(self, changes: Iterable[tuple[int, int]]) -> None:
        """Count allocations and releases of the compiled loop, as cycles and bytes."""
        self._bytes.record(changes)

    @property
    def requests(self) -> list[tuple[Unit, int]]:
        """Waiting units and their bytes, in the order of service."""
        return [(unit, size_bytes) for _, _, unit, size_bytes in self._waiting]

    @property
    def peak_bytes(self) -> int:
        """The most bytes held in any cycle so far."""
        return self._bytes.peak

    @property
    def peak_pages(self) -> int | None:
        """The most pages held in any cycle so far; None without pages."""
        return None if self.pages is None else self._paged_bytes.peak // self.pages.page_bytes

    @property
    def peak_empty_bytes(self) -> int | None:
        """The most unused bytes of held pages in any cycle; None without pages."""
        return None if self.pages is None else self._empty_bytes.peak

    @property
    def enough_bytes(self) -> int:
        """The least capacity with which no unit would have waited so far."""
        if self.pages is None or self.peak_pages is None:
            return self.peak_bytes
        return self.pages.capacity_bytes(self.peak_pages)

    @property
    def held_bytes(self) -> int:
        """Bytes held after all changes so far."""
        return self._bytes.level

    async def _finds_room(self, unit: Unit, room_bytes: int) -> bool:
        await self._clock.reach(unit, unit.now)
        self._spilling.add(unit)
        releases = self._spillable_releases
        while releases and releases[0][0] <= unit.now:
            self._spillable_bytes -= heapq.heappop(releases)[1]
        most_bytes = self._limit_bytes - self.reserved_bytes
        is_behind = self._waiting and self._waiting[0][:2] < (unit.now, unit.index)
        if (
            is_behind
            or self._spillable_bytes + room_bytes > most_bytes
            or self._fits_at(room_bytes, unit.now) != unit.now
        ):
            return False
        self._used_bytes += room_bytes
        self._spillable_bytes += room_bytes
        return True

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
            await clock.reach(unit, target, operation=Operation.CAPACITY)
            first = self._waiting[0] is request
            is_turn = clock.stopping or clock.now >= target
            if first and is_turn and target == self._fits_at(size_bytes, unit.now):
                break
        self._waiting.pop(0)
        unit.capacity_cycles += target - unit.now
        unit.now = target
        self._used_bytes += size_bytes
        self._wake_first()

    def _free_bytes(self, cycle: int) -> int:
        released_bytes = sum(size_bytes for when, size_bytes in self._releases if when <= cycle)
        return self._limit_bytes - self._used_bytes + released_bytes

    def _fits_at(self, size_bytes: int, cycle: int) -> int | None:
        cycle = max(cycle, self._clock.now)
        releases = self._releases
        while releases and releases[0][0] <= self._clock.now:
            self._used_bytes -= heapq.heappop(releases)[1]
        missing = self._used_bytes + size_bytes - self._limit_bytes
        for released_cycle, released_bytes in sorted(releases):
            if missing <= 0 and released_cycle > cycle:
                break
            missing -= released_bytes
            cycle = max(cycle, released_cycle)
        return cycle if missing <= 0 else None

    def _wake_first(self) -> None:
        if self._waiting:
            self._clock.wake(self._waiting[0][2])

    def _count(self, cycle: int, size_bytes: int, room_bytes: int) -> None:
        self._bytes.record(((cycle, size_bytes),))
        if self.pages is not None:
            self._paged_bytes.record(((cycle, room_bytes),))
            self._empty_bytes.record(((cycle, room_bytes - size_bytes),))

    def _room(self, size_bytes: int) -> int:
        pages = self.pages
        return size_bytes if pages is None else pages.of(size_bytes) * pages.page_bytes

    @property
    def _limit_bytes(self) -> int:
        capacity_bytes, pages = self.capacity_bytes, self.pages
        assert capacity_bytes is not None
        return capacity_bytes if pages is None else pages.within(capacity_bytes) * pages.page_bytes

    def _never_fits(self, unit: Unit, size_bytes: int, what: str) -> CapacityError:
        assert self.capacity_bytes is not None
        free_bytes, pages = self._free_bytes(unit.now), self.pages
        takes, room = counted(size_bytes, "byte"), counted(self.capacity_bytes, "byte")
        if pages is not None:
            number = pages.within(self.capacity_bytes)
            takes = (
                f"{counted(pages.of(size_bytes), 'page')} of {counted(pages.page_bytes, 'byte')}"
            )
            room = f"{counted(number, 'page')} in {room}"
            free_bytes //= pages.page_bytes
        return CapacityError(
            f"{unit.name}: {what} takes {takes}: expected at most the on-chip capacity of {room}, "
            f"of which {free_bytes:,} are free",
            file=unit.place.file,
            line=unit.place.line,
        )


_FOLD: Final = 1 << 17
"""Number of changes after which they are folded into one level and one peak."""


class AmountOverTime:
    """An amount over time and its peak."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now: Final = now
        self._changes: list[tuple[int, int]] = []
        self._fold_at = _FOLD
        self._level = 0
        self._peak = 0

    def record(self, changes: Iterable[tuple[int, int]]) -> None:
        """Count changes, each a cycle and an amount."""
        self._changes.extend(changes)
        if len(self._changes) >= self._fold_at:
            self._fold(before=self._now())

    @property
    def peak(self) -> int:
        """The largest amount in any cycle so far."""
        self._fold(before=None)
        return self._peak

    @property
    def level(self) -> int:
        """The amount after all changes so far."""
        return self._level + sum(change for _, change in self._changes)

    def _fold(self, before: int | None) -> None:
        changes = sorted(self._changes)
        end = len(changes) if before is None else bisect.bisect_left(changes, (before,))
        levels = list(accumulate((change for _, change in changes[:end]), initial=self._level))
        self._peak = max(self._peak, *levels)
        self._level = levels[-1]
        self._changes = changes[end:]
        # Changes ahead of the clock are kept, and sorted again when there are twice as many.
        self._fold_at = max(_FOLD, 2 * len(self._changes))

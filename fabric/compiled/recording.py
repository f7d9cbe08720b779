"""What an operator sees while its behaviour is written down: ends, unit and memory that note it.

Its ``run`` goes on as far as an element, whose code it is then handed.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Awaitable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from typing_extensions import override

from fabric.compiled import columns as c
from fabric.compiled.codes import Codes, OpaqueTile
from fabric.engine.discard import DONE, Discard
from fabric.engine.off_chip import Burst
from fabric.engine.ports import Arrivals, Ports
from fabric.engine.unit import ComputeUnit, Unit, Wait
from fabric.telling.causes import Operation
from fabric.values.value import Element, Empty, Tile

if TYPE_CHECKING:
    from fabric.engine.channel import Channel

__all__ = ["Awaited", "Recording", "UnfitError"]


_LONGEST_STRETCH: Final = 10_000
"""Operations; a source that sends a million tiles is not written down."""


class UnfitError(Exception):
    """An operator does what cannot be written down."""


class Awaited(NamedTuple):
    """What an operator waits for.

    Attributes:
        kind: PEEK, POP, END or STARVE.
        port: of which input, where it is one.
        stops: where it waits for ever; see ``Wait.stops``.
    """

    kind: int
    port: int = 0
    stops: tuple[int, int] | None = None


@types.coroutine
def _answer(awaited: Awaited) -> Generator[Awaited, Any, Any]:
    return (yield awaited)


class Recording:
    """Notes what an operator does.

    Attributes:
        ports: what its ``run`` is given.
        operations: since the last element it was handed; rows of the table.
        memory: what it said it keeps, when a turn ended since then; None where none did.
        shown: by input, the value that was looked at last; the loop knows the number of no other.
    """

    def __init__(self, ports: Ports, codes: Codes) -> None:
        """Stand for the machine that ``ports`` are of."""
        self.codes: Final = codes
        self.operations: list[list[int]] = []
        self.memory: tuple[object, ...] | None = None
        self.shown: dict[int, object] = {}
        self._moves = 0
        self._repeats = False
        self._kept: list[weakref.ref[_Reading]] = []
        unit = _RecordedUnit(self, ports.unit)
        self.ports: Final = _RecordedPorts.of(self, ports, unit)

    def note(self, what: int, at: int = 0, amount: int = 0) -> None:
        """Note an operation without an element."""
        self._append([what, at, 0, -1, amount, -1])
        if what in (c.CHARGE, c.UNTIL, c.RESERVE, c.BURST):
            self.moved()

    def _append(self, operation: list[int]) -> None:
        self.operations.append(operation)
        if len(self.operations) > _LONGEST_STRETCH or abs(operation[c.AMOUNT]) > c.FAR:
            raise UnfitError

    def moved(self) -> None:
        """Know that the clock may have moved."""
        self._moves += 1

    def send(self, what: int, port: int, element: Element, asked: _Stamp | None = None) -> None:
        """Note that ``element`` is sent or put."""
        value, level = element
        amount, stamp = 0, -1
        if asked is not None:
            amount = asked.cycles
            stamp = -1 if asked.reading.moves == self._moves else self._number_of(asked)
        if isinstance(value, OpaqueTile):
            self.check_shown(value)
            row = [what, port, self.codes.same_kind(value, level), value.port, amount, stamp]
        else:
            row = [what, port, self.codes.code(element), -1, amount, stamp]
        self._append(row)
        self.moved()

    def check_shown(self, tile: OpaqueTile) -> None:
        """Make sure that the number of ``tile`` is the one that was looked at last.

        Raises:
            UnfitError: another element of that input has been looked at since.
        """
        shown = self.shown.get(tile.port)
        if not isinstance(shown, OpaqueTile) or shown.looked is not tile.looked:
            raise UnfitError

    def clock(self) -> _Stamp:
        """Return a reading of the clock."""
        latest = self._kept[-1]() if self._kept else None
        if latest is None or latest.moves != self._moves:
            number = len(self._kept) % c.STAMPS
            if len(self._kept) >= c.STAMPS and (old := self._kept[-c.STAMPS]()) is not None:
                old.number = -1
            latest = _Reading(number, self._moves)
            self.operations.append([c.NOTE, 0, 0, -1, 0, number])
            self._kept.append(weakref.ref(latest))
        return _Stamp(latest)

    def repeated(self, count: int) -> Iterator[int]:
        """Yield once and note that what was done then is done ``count`` times."""
        if self._repeats:
            raise UnfitError
        self._repeats = True
        operations, at = self.operations, len(self.operations)
        # Each time begins with another clock.
        self.moved()
        yield 0
        if operations is not self.operations:
            raise UnfitError
        self.note(c.REPEAT, len(operations) - at, count)
        self.moved()
        self._repeats = False

    def is_now(self, stamp: object) -> bool:
        """Whether ``stamp`` is what the clock says."""
        if not isinstance(stamp, _Stamp):
            return False
        return stamp.reading.moves == self._moves and not stamp.cycles

    def stretch(self) -> list[list[int]]:
        """Return the operations so far and begin anew; readings that nobody keeps are left out."""
        operations = self.operations
        if not any(row[0] == c.REPEAT for row in operations):
            used = {row[5] for row in operations if row[0] == c.SEND_AT}
            used.update(kept.number for each in self._kept if (kept := each()) is not None)
            operations = [row for row in operations if row[0] != c.NOTE or row[5] in used]
        self.operations = []
        self.moved()
        return operations

    def turned(self) -> tuple[object, ...] | None:
        """Return what is kept where a turn has ended since the last call; else None."""
        memory, self.memory = self.memory, None
        if memory is not None:
            memory = tuple(map(self.key, memory))
            for each in self._kept:
                if (kept := each()) is not None:
                    kept.number = -1
            self._kept = []
        return memory

    def key(self, kept: object) -> object:
        """Return what stands for ``kept`` in the name of a state."""
        if isinstance(kept, OpaqueTile):
            self.check_shown(kept)
        if isinstance(kept, Tile):
            return self.codes.key(kept)
        if isinstance(kept, _RecordedSource):
            return "input", kept.port
        if isinstance(kept, tuple | list):
            return type(kept).__name__, *map(self.key, kept)
        return kept

    @staticmethod
    def _number_of(stamp: _Stamp) -> int:
        if stamp.reading.number < 0:
            raise UnfitError
        return stamp.reading.number


class _Reading:
    """What the clock said, and where it is kept; -1 where something else is kept there now."""

    __slots__ = ("__weakref__", "moves", "number")

    def __init__(self, number: int, moves: int) -> None:
        self.number = number
        self.moves = moves


class _Stamp:
    """A reading of the clock, or some cycles after one."""

    __slots__ = ("cycles", "reading")

    def __init__(self, reading: _Reading, cycles: int = 0) -> None:
        self.reading = reading
        self.cycles = cycles

    def __add__(self, cycles: int) -> _Stamp:
        return _Stamp(self.reading, self.cycles + cycles)

    def __sub__(self, cycles: int) -> _Stamp:
        return self + -cycles


class _RecordedUnit(ComputeUnit):
    """Notes what is charged and computed."""

    __slots__ = ("_recording",)

    def __init__(self, recording: Recording, unit: Unit) -> None:
        self._recording = recording
        rate = unit.flops_per_cycle if isinstance(unit, ComputeUnit) else 0
        super().__init__(
            unit.name,
            unit.index,
            unit.place,
            flops_per_cycle=rate,
            bytes_per_cycle=unit.bytes_per_cycle,
        )

    @property
    def now(self) -> Any:
        return self._recording.clock()

    @now.setter
    def now(self, _: int) -> None: ...

    @override
    def charge(self, cycles: int) -> None:
        if type(cycles) is not int or cycles < 0:
            raise UnfitError
        if cycles:
            self._recording.note(c.CHARGE, amount=cycles)

    @override
    def compute(self, flops: int) -> int:
        if type(flops) is not int or flops < 0:
            raise UnfitError
        self._recording.note(c.COMPUTE, amount=flops)
        return -(-flops // self.flops_per_cycle)


class _RecordedSource:
    """Hands out what the operator is told is there."""

    def __init__(self, recording: Recording, port: int, channel: Channel) -> None:
        self.port = port
        self.producer = channel.producer
        self._recording = recording
        self._head: Element | None = None

    async def peek(self) -> Element | None:
        self._head = head = await _answer(Awaited(c.PEEK, self.port))
        if head is not None:
            self._recording.shown[self.port] = head[0]
        return self._head

    async def receive(self) -> Element | None:
        if await self.peek() is not None:
            self.take()
        return self._head

    def take(self) -> Element:
        self._recording.note(c.TAKE, self.port)
        assert self._head is not None
        return self._head


class _RecordedSink:
    """Notes what is sent."""

    def __init__(self, recording: Recording, port: int) -> None:
        self._recording = recording
        self._port = port

    def send(self, element: Element) -> Awaitable[None]:
        self._recording.send(c.SEND, self._port, element)
        return DONE

    def send_at(self, element: Element, requested_cycle: Any) -> Awaitable[None]:
        self._recording.send(c.SEND_AT, self._port, element, requested_cycle)
        return DONE

    def send_bare(self, level: int, empty_dimension: int) -> Awaitable[None]:
        return self.send((Empty(empty_dimension), level))

    def reserve(self) -> Awaitable[None]:
        self._recording.note(c.RESERVE, self._port)
        return DONE

    def put(self, element: Element) -> None:
        self._recording.send(c.PUT, self._port, element)


class _RecordedMemory:
    """Notes what is allocated on chip; there is no limit."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    async def allocate(
        self, _unit: Unit, size_bytes: int, _what: str, *, held_bytes: int = 0
    ) -> None:
        del held_bytes
        self._recording.note(c.HOLD, amount=size_bytes)

    def release(self, _owner: Unit, size_bytes: int, cycle: object) -> None:
        if not self._recording.is_now(cycle):
            raise UnfitError
        self._recording.note(c.HOLD, amount=-size_bytes)


class _RecordedOffChip:
    """Notes what is moved to and from the HBM, wherever it is there."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def submit(self, _unit: Unit, burst: Burst) -> None:
        self._recording.note(c.BURST, amount=self._recording.codes.burst(burst))


class _RecordedClock:
    """Lets an operator wait: for a burst, or for what never comes."""

    async def park(self, _unit: Unit, wait: Wait) -> None:
        if wait.operation is Operation.OFF_CHIP:
            return
        (source,) = wait.channels
        assert isinstance(source, _RecordedSource)
        await _answer(Awaited(c.STARVE, source.port, wait.stops))


class _RecordedArrivals(Arrivals):
    """Notes in which order inputs are to be read."""

    __slots__ = ("_recording",)

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording.ports)
        self._recording = recording

    @override
    async def show(self, source: Any) -> bool:
        if await source.peek() is None:
            return False
        self._recording.note(c.MARK, source.port)
        return True

    @override
    async def earliest(self) -> Any:
        port: int = await _answer(Awaited(c.POP))
        return self._recording.ports.inputs[port]

    @override
    def busy_until(self, cycles: int) -> None:
        self._recording.note(c.UNTIL, amount=cycles)


@dataclass(frozen=True)
class _RecordedPorts(Ports):
    """An operator's view of a machine that notes what it does."""

    recording: Recording

    @classmethod
    def of(cls, recording: Recording, ports: Ports, unit: Unit) -> Ports:
        """Return what stands for ``ports``."""
        # Any: the stand-ins are no channels.
        parts: dict[str, Any] = {**vars(ports), "recording": recording, "unit": unit}
        parts["inputs"] = tuple(
            _RecordedSource(recording, port, source) for port, source in enumerate(ports.inputs)
        )
        parts["outputs"] = tuple(
            sink if isinstance(sink, Discard) else _RecordedSink(recording, port)
            for port, sink in enumerate(ports.outputs)
        )
        parts["clock"] = _RecordedClock()
        parts["off_chip"] = _RecordedOffChip(recording)
        parts["on_chip"] = _RecordedMemory(recording)
        return cls(**parts)

    @override
    def turn(self, *memory: object) -> None:
        self.recording.memory = memory

    @override
    def times(self, count: int) -> Iterable[int]:
        if count > 0:
            yield from self.recording.repeated(count)

    @override
    def number(self, tile: Tile, below: int) -> int | None:
        if isinstance(tile, OpaqueTile):
            self.recording.check_shown(tile)
            self.recording.note(c.CHECK, tile.port, below)
            return 0
        return super().number(tile, below)

    @override
    def arrivals(self) -> Arrivals:
        return _RecordedArrivals(self.recording)

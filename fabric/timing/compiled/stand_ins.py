"""Stand-ins that record the operations of an operator's ``run``.

Replaced channel ends, unit and memories note the operations between two elements. ``run`` advances
until it awaits an element, and then receives one.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Awaitable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import index
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from typing_extensions import override

from fabric.graph.values.value import Element, Empty, Tile
from fabric.timing.compiled import world as c
from fabric.timing.compiled.codes import Codes, OpaqueNumber, OpaqueTile, UnfitError, Unreadable
from fabric.timing.engine.channel import DONE, Discard
from fabric.timing.engine.ports import Arrivals, Ports
from fabric.timing.engine.unit import ComputeUnit, Unit, Wait

if TYPE_CHECKING:
    from fabric.timing.engine.channel import Channel

_LONGEST_STRETCH: Final = 10_000
"""The most operations of a stretch that is recorded. A source of a million tiles has more."""


class Awaited(NamedTuple):
    """The element or the end that an operator waits for.

    Attributes:
        kind: PEEK, POP, END or STARVE.
        stops: ``Wait.stops`` of STARVE.
    """

    kind: int
    port: int = 0
    stops: tuple[int, int] | None = None


class Recording:
    """Records an operator.

    Attributes:
        operations: rows since the last element.
        memory: the memory stated by ``turn`` since the last element; None if no turn has ended.
        shown: by input, the last peeked value, the only one whose number the loop has.
    """

    def __init__(self, codes: Codes) -> None:
        self.codes: Final = codes
        self.operations: list[list[int]] = []
        self.memory: tuple[object, ...] | None = None
        self.shown: dict[int, object] = {}
        self._moves = 0
        self._latest: _Reading | None = None
        self._repeats = False
        self._has_notes = self._has_repeats = False
        self._kept: list[weakref.ref[_Reading]] = []

    def note(self, what: int, at: int = 0, amount: int = 0) -> None:
        """Note an operation without an element."""
        self._append(what, at, amount=amount)
        if what in (c.CHARGE, c.UNTIL, c.RESERVE):
            self.moved()

    def burst(self, rows: int, row_bytes: int, number: int | OpaqueNumber) -> None:
        """Note a burst; ``number`` is relative to the operator's tensor."""
        port = -1
        if rows * row_bytes > c.FAR:
            raise UnfitError
        if isinstance(number, OpaqueNumber):
            self.check_shown(number.tile)
            port, number = number.tile.port, 0
        size = self.codes.burst(rows, row_bytes)
        self._append(c.BURST, 0, index(number), port, size)
        self.moved()

    def _append(
        self, what: int, at: int, sends: int = 0, source: int = -1, amount: int = 0, stamp: int = -1
    ) -> None:
        self.operations.append([what, at, sends, source, amount, stamp])
        if len(self.operations) > _LONGEST_STRETCH or abs(amount) > c.FAR:
            raise UnfitError

    def moved(self) -> None:
        """Note that the clock may have moved."""
        self._moves += 1
        self._latest = None

    def send(self, what: int, port: int, element: Element, since: _Stamp | None = None) -> None:
        """Note that ``element`` is sent or put."""
        value, level = element
        amount, stamp = 0, -1
        if since is not None:
            amount, stamp = since.cycles, since.reading.number
            if stamp < 0:
                raise UnfitError
        if isinstance(value, OpaqueTile):
            self.check_shown(value)
            code, source = self.codes.same_kind(value, level), value.port
        else:
            code, source = self.codes.code(element), -1
        self._append(what, port, code, source, amount, stamp)
        self.moved()

    def check_shown(self, tile: OpaqueTile) -> None:
        """Raise UnfitError if another element of the tile's input was peeked since."""
        shown = self.shown.get(tile.port)
        if not isinstance(shown, OpaqueTile) or shown.looked is not tile.looked:
            raise UnfitError

    def clock(self) -> _Stamp:
        """Return a reading of the clock; raise UnfitError if the operator keeps too many."""
        latest = self._latest
        if latest is None:
            number = len(self._kept) % c.STAMPS
            if len(self._kept) >= c.STAMPS and self._kept[-c.STAMPS]() is not None:
                raise UnfitError
            latest = self._latest = _Reading(number, self._moves)
            self.operations.append([c.NOTE, 0, 0, -1, 0, number])
            self._has_notes = True
            self._kept.append(weakref.ref(latest))
        return _Stamp(latest)

    def repeated(self, count: int) -> Iterator[int]:
        """Yield once and note that the body is done ``count`` times."""
        if self._repeats:
            raise UnfitError
        self._repeats = True
        operations, at = self.operations, len(self.operations)
        # Each repetition begins with another clock.
        self.moved()
        yield 0
        if operations is not self.operations:
            raise UnfitError
        self.note(c.REPEAT, len(operations) - at, count)
        self._has_repeats = True
        self.moved()
        self._repeats = False

    def is_now(self, stamp: object) -> bool:
        if not isinstance(stamp, _Stamp):
            return False
        return stamp.reading.moves == self._moves and not stamp.cycles

    def stretch(self) -> list[list[int]]:
        """Return the operations so far without unused readings, and clear them."""
        operations = self.operations
        self.moved()
        if self._has_notes and not self._has_repeats:
            used = {row[5] for row in operations if row[0] == c.SEND_AT}
            used.update(kept.number for ref in self._kept if (kept := ref()) is not None)
            operations = [row for row in operations if row[0] != c.NOTE or row[5] in used]
        self.operations = []
        self._has_notes = self._has_repeats = False
        return operations

    def turned(self) -> tuple[object, ...] | None:
        """Return the memory if a turn has ended since the last call; else None."""
        memory, self.memory = self.memory, None
        if memory is not None:
            memory = tuple(map(self.key, memory))
            for ref in self._kept:
                if (kept := ref()) is not None:
                    kept.number = -1
            self._kept = []
        return memory

    def key(self, kept: object) -> object:
        """Return the key of ``kept`` in a state."""
        if isinstance(kept, OpaqueTile):
            self.check_shown(kept)
        if isinstance(kept, Tile):
            return self.codes.key(kept)
        if isinstance(kept, _RecordedSource):
            return "input", kept.port
        if isinstance(kept, np.ndarray):
            return kept.dtype, kept.shape, kept.tobytes()
        if isinstance(kept, list):
            # Most lists repeat one tile: a run of one object needs one key.
            runs = [list(run) for _, run in groupby(kept, id)]
            return "list", *((self.key(run[0]), len(run)) for run in runs)
        if isinstance(kept, tuple):
            return "tuple", *map(self.key, kept)
        return kept


class _Reading:
    """A clock reading; its number is -1 after the end of its turn."""

    __slots__ = ("__weakref__", "moves", "number")

    def __init__(self, number: int, moves: int) -> None:
        self.number = number
        self.moves = moves


class _Stamp(Unreadable):
    __slots__ = ("cycles", "reading")

    def __init__(self, reading: _Reading, cycles: int = 0) -> None:
        self.reading = reading
        self.cycles = cycles

    def __add__(self, cycles: int) -> _Stamp:
        return _Stamp(self.reading, self.cycles + cycles)

    def __sub__(self, cycles: int) -> _Stamp:
        return self + -cycles


@types.coroutine
def _answer(awaited: Awaited) -> Generator[Awaited, Any, Any]:
    return (yield awaited)


class _RecordedUnit(ComputeUnit):
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
            registers=unit.registers,
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
    """Stand-in for an input, which returns the elements that the operator receives."""

    def __init__(self, recording: Recording, port: int, channel: Channel) -> None:
        self.port: Final = port
        self.producer = channel.producer
        self._recording = recording
        self.head: Element | None = None

    async def peek(self) -> Element | None:
        self.head = head = await _answer(Awaited(c.PEEK, self.port))
        if head is not None:
            self._recording.shown[self.port] = head[0]
        return self.head

    async def receive(self) -> Element | None:
        if await self.peek() is not None:
            self._recording.note(c.TAKE, self.port, c.AT_ONCE)
        return self.head

    def take(self) -> Element:
        self._recording.note(c.TAKE, self.port)
        assert self.head is not None
        return self.head


class _RecordedSink:
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
    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    async def allocate(
        self, _unit: Unit, size_bytes: int, _what: str, *, held_bytes: int = 0, spills: bool = False
    ) -> bool:
        del held_bytes, spills
        self._recording.note(c.HOLD, amount=size_bytes)
        return True

    def release(self, _owner: Unit, size_bytes: int, cycle: object) -> None:
        if not self._recording.is_now(cycle):
            raise UnfitError
        self._recording.note(c.HOLD, amount=-size_bytes)


class _RecordedClock:
    async def park(self, _unit: Unit, wait: Wait) -> None:
        (source,) = wait.channels
        assert isinstance(source, _RecordedSource)
        await _answer(Awaited(c.STARVE, source.port, wait.stops))


class _RecordedArrivals(Arrivals):
    __slots__ = ("_inputs", "_recording")

    def __init__(self, recording: Recording, ports: Ports) -> None:
        super().__init__(ports)
        self._recording = recording
        self._inputs = ports.inputs

    @override
    async def show(self, source: Any) -> bool:
        if await source.peek() is None:
            return False
        self._recording.note(c.MARK, source.port)
        return True

    @override
    async def earliest(self) -> Any:
        port: int = await _answer(Awaited(c.POP))
        return self._inputs[port]

    @override
    def busy_until(self, cycles: int) -> None:
        self._recording.note(c.UNTIL, amount=cycles)


_SOMEWHERE: Final = object()
"""An off-chip region with unknown addresses."""


@dataclass(frozen=True)
class _RecordedPorts(Ports):
    recording: Recording = field(kw_only=True)

    @override
    async def burst(self, rows: int, row_bytes: int, number: int = 0) -> None:
        if rows and row_bytes:
            if self.region is None:
                raise UnfitError
            self.recording.burst(rows, row_bytes, number)

    @override
    def turn(self, *memory: object) -> None:
        self.recording.memory = memory

    @override
    def times(self, count: int) -> Iterable[int]:
        if count > 0:
            yield from self.recording.repeated(count)

    @override
    def number(self, tile: Tile, below: int) -> Any:
        if isinstance(tile, OpaqueTile):
            self.recording.check_shown(tile)
            self.recording.note(c.CHECK, tile.port, below)
            return OpaqueNumber(tile)
        return super().number(tile, below)

    @override
    def arrivals(self) -> Arrivals:
        return _RecordedArrivals(self.recording, self)


def recorded_ports(recording: Recording, ports: Ports) -> Ports:
    # Any: the stand-ins replace channels without being channels.
    parts: dict[str, Any] = {**vars(ports), "recording": recording}
    parts["unit"] = _RecordedUnit(recording, ports.unit)
    parts["inputs"] = tuple(
        _RecordedSource(recording, port, source) for port, source in enumerate(ports.inputs)
    )
    parts["outputs"] = tuple(
        sink if isinstance(sink, Discard) else _RecordedSink(recording, port)
        for port, sink in enumerate(ports.outputs)
    )
    parts["clock"] = _RecordedClock()
    # Operators of equal behaviour have tensors at different addresses.
    parts["off_chip"] = None
    parts["region"] = None if ports.region is None else _SOMEWHERE
    parts["on_chip"] = _RecordedMemory(recording)
    parts["log"] = None
    return _RecordedPorts(**parts)

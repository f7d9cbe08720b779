"""What an operator sees while its behaviour is written down: ends, unit and memory that note it.

Its ``run`` goes on as far as an element, whose code it is then handed.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Generator, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from fabric.compiled import columns as c
from fabric.compiled.codes import OpaqueNumber, OpaqueTile
from fabric.compiled.recording import Awaited, Input, Recording, UnfitError
from fabric.engine.channel import DONE, Discard
from fabric.engine.ports import Arrivals, Ports
from fabric.engine.unit import ComputeUnit, Unit, Wait
from fabric.values.value import Element, Empty, Tile

if TYPE_CHECKING:
    from fabric.engine.channel import Channel

__all__ = ["recorded_ports"]


@types.coroutine
def _answer(awaited: Awaited) -> Generator[Awaited, Any, Any]:
    return (yield awaited)


def recorded_ports(recording: Recording, ports: Ports) -> Ports:
    """Return what stands for ``ports`` and notes in ``recording`` what is done with it."""
    return _RecordedPorts.of(recording, ports, _RecordedUnit(recording, ports.unit))


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


class _RecordedSource(Input):
    """Hands out what the operator is told is there."""

    def __init__(self, recording: Recording, port: int, channel: Channel) -> None:
        super().__init__(port)
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
            self._recording.note(c.TAKE, self.port, c.AT_ONCE)
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
    """Lets an operator wait for what never comes."""

    async def park(self, _unit: Unit, wait: Wait) -> None:
        (source,) = wait.channels
        assert isinstance(source, _RecordedSource)
        await _answer(Awaited(c.STARVE, source.port, wait.stops))


class _RecordedArrivals(Arrivals):
    """Notes in which order inputs are to be read."""

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
"""A region of the off-chip memory, none of whose addresses is known."""


@dataclass(frozen=True)
class _RecordedPorts(Ports):
    """An operator's view of a machine that notes what it does."""

    recording: Recording = field(kw_only=True)

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
        # Operators that are alike have tensors in places of their own.
        parts["off_chip"] = None
        parts["region"] = None if ports.region is None else _SOMEWHERE
        parts["on_chip"] = _RecordedMemory(recording)
        parts["observation"] = None
        return cls(**parts)

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

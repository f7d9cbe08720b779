"""Reading several streams together, and saying where they differ.

A stream may close a group twice: a value that closes some dimensions, then a bare stop that closes
more of them (a Flatten leaves that behind where the last part of a group is empty). So two streams
of one structure need not carry equal stops: where they differ, the lower side has to go on with a
bare stop that closes just what its last element left open.
"""

from __future__ import annotations

from typing import Any, Final, Generic, Self

from fabric import Element, Empty, OperatorError, Ports, Sink, TupleType, Value
from operators.streams.operands import unpacked
from operators.streams.values import V

__all__ = ["Lockstep", "Track", "differ", "settle", "uneven"]


class Track:
    """Where an operator is in one of its inputs.

    Attributes:
        source: the input.
        element: the last one that was read; None before the first and at the end.
        stop: its level; -1 where there is none.
        level: the dimensions it closes outside of the operator's sub-tensors; 0 for none.
    """

    __slots__ = ("_inner", "_place", "element", "level", "source", "stop")

    def __init__(self, ports: Ports, port: int, inner: int = 0) -> None:
        """Stand before the first element of input ``port``.

        Args:
            ports: of the operator.
            port: which input.
            inner: dimensions of a sub-tensor, which the levels leave out.
        """
        self.source: Final = ports.inputs[port]
        self.element: Element | None = None
        self.stop = -1
        self.level = 0
        self._inner = inner
        self._place = [0] * len(ports.input_types[port].shape)

    def passed(self, element: Element | None) -> None:
        """Note that ``element``, or the end, comes next."""
        stop = self.stop
        if stop >= 0:
            place = self._place
            if stop:
                place[:stop] = [0] * stop
            place[stop] += 1
        self.element = element
        self.stop = stop = -1 if element is None else element[1]
        self.level = stop - self._inner

    @property
    def empty_dimension(self) -> int | None:
        """Which dimension outside of a sub-tensor a bare stop stands for; None for a value."""
        if self.element is None or not isinstance(self.element[0], Empty):
            return None
        return self.element[0].dimension - self._inner

    @property
    def described(self) -> str:
        """The element, where it stands in its tensor, who made it and what it closes."""
        producer = self.source.producer.name
        if self.element is None:
            return f"the end of {producer} at {self._place[::-1]}"
        value, stop = self.element
        what = str(value)
        if isinstance(value, Empty):
            what = f"an empty dimension {value.dimension}"
        closes = "1 dimension" if stop == 1 else f"{stop} dimensions"
        return f"{what} at {self._place[::-1]} of {producer} closes {closes}"


class Lockstep(Generic[V]):
    """The values of all inputs of an operator with the stop they share, to be iterated over.

    Their type is what ``infer`` has made sure of.
    """

    __slots__ = ("_adds", "_held", "_ports", "_sink", "_tracks", "_unpack")

    def __init__(
        self,
        ports: Ports,
        sink: Sink | None = None,
        *,
        adds: int = 0,
        held: bool = False,
        unpack: bool = True,
    ) -> None:
        """Stand before the first elements.

        Args:
            ports: of the operator.
            sink: where bare stops are passed on; where None, all of them are shown.
            adds: dimensions that the output has inside of those of the inputs; with -n, what is
                empty inside of the innermost n dimensions is shown.
            held: a bare stop keeps its slots until it is passed on, else until it goes.
            unpack: show the items of tuples in the place of the tuples.
        """
        self._ports = ports
        self._sink = sink
        self._adds = adds
        self._held = held
        self._unpack = unpack and any(
            isinstance(each.value, TupleType) for each in ports.input_types
        )
        self._tracks = [Track(ports, port) for port in range(len(ports.inputs))]

    def __aiter__(self) -> Self:
        """Go on with the next elements."""
        return self

    async def __anext__(self) -> tuple[list[V], int]:
        """Wait for the next element of every input; they keep their slots until ``take``.

        Raises:
            OperatorError: the structures differ, or one input ended before another.
        """
        tracks = self._tracks
        while True:
            # Any: whether the streams carry V was checked when the program was wired.
            values: list[Any]
            if len(tracks) == 1:
                element = await tracks[0].source.peek()
                if element is None:
                    raise StopAsyncIteration
                values, stop = [element[0]], element[1]
            else:
                for track in tracks:
                    track.passed(await track.source.peek())
                values = [track.element[0] for track in tracks if track.element is not None]
                if not values:
                    raise StopAsyncIteration
                if len(values) < len(tracks) or not _alike(values):
                    raise differ(self._ports, *tracks)
                stop = tracks[0].stop
                for track in tracks:
                    if track.stop != stop:
                        stop = await self._settle()
            first = values[0]
            if not isinstance(first, Empty) or not await self._passed_on(first, stop):
                return unpacked(values) if self._unpack else values, stop

    async def _passed_on(self, empty: Empty, stop: int) -> bool:
        """Pass on a bare stop; False where it is to be shown."""
        dimension = empty.dimension + self._adds
        if self._sink is None or dimension < 0:
            return False
        if not self._held:
            self.take()
        await self._sink.send_bare(stop + self._adds, dimension)
        if self._held:
            self.take()
        return True

    def take(self) -> None:
        """Dequeue the elements that were shown."""
        for source in self._ports.inputs:
            source.take()

    async def _settle(self) -> int:
        """Read on, where an element closes less than another, until all have closed as much."""
        tracks = self._tracks
        while True:
            low = min(tracks, key=lambda track: track.level)
            high = max(tracks, key=lambda track: track.level)
            if low.level == high.level:
                return low.level
            low.source.take()
            await _closing(self._ports, low, high)


def _alike(values: list[Value]) -> bool:
    """Whether none is a bare stop, or all are and stand for the same empty dimension."""
    first = values[0]
    if first.__class__ is Empty:
        return all(each.__class__ is Empty and each.dimension == first.dimension for each in values)
    return Empty not in map(type, values)


async def _closing(ports: Ports, low: Track, high: Track) -> Empty:
    """Peek the bare stop with which ``low`` has to go on, since ``high`` closes more.

    Raises:
        OperatorError: something else comes.
    """
    element = await low.source.peek()
    if element is not None:
        value = element[0]
        if isinstance(value, Empty) and value.dimension == low.stop:
            low.passed(element)
            return value
    raise differ(ports, *sorted((low, high), key=lambda track: ports.inputs.index(track.source)))


async def settle(
    ports: Ports, source: Track, guide: Track, sink: Sink | None = None, inner: int = 0
) -> None:
    """Read on after the ends of two sub-tensors, until both have closed as much.

    Args:
        ports: of the operator.
        source: where it is in one input.
        guide: where it is in the other.
        sink: where the bare stops of ``guide`` are passed on, if anywhere.
        inner: dimensions the output has inside of those of ``guide``.

    Raises:
        OperatorError: one closes more than the other.
    """
    while source.level != guide.level:
        low, high = (source, guide) if source.level < guide.level else (guide, source)
        bare = await _closing(ports, low, high)
        low.source.take()
        if low is guide and sink is not None:
            await sink.send_bare(low.stop + inner, bare.dimension + inner)


def differ(ports: Ports, *tracks: Track) -> OperatorError:
    """Return the error for inputs whose structures differ where ``tracks`` stand."""
    found = " and ".join(track.described for track in tracks)
    return uneven(ports, found, "equal structures")


def uneven(ports: Ports, found: str, expected: str) -> OperatorError:
    """Return the error for inputs whose structures are not as they should be."""
    unit = ports.unit
    element = ports.inputs[0].elements if ports.inputs else 0
    return OperatorError(
        f"{unit.name}: {found}: expected {expected}, at cycle {unit.now:,}, element {element:,}",
        operator=unit.name,
        cycle=unit.now,
        element=element,
        file=unit.place.file,
        line=unit.place.line,
    )

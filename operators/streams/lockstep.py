"""Several streams of one shape, read together."""

from __future__ import annotations

from typing import Any, Generic, Self

from fabric import TupleType
from fabric.extend import Empty, Ports, Sink, Value
from operators.streams.operands import unpacked
from operators.streams.track import Track, closing, differ
from operators.streams.values import V

__all__ = ["Lockstep"]


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
            held: a bare stop keeps its slots until it has been passed on.
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
                shown: list[Any] = unpacked(values) if self._unpack else values
                return shown, stop

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
            await closing(self._ports, low, high)


def _alike(values: list[Value]) -> bool:
    """Whether none is a bare stop, or all are and stand for the same empty dimension."""
    first = values[0]
    if first.__class__ is Empty:
        return all(each.__class__ is Empty and each.dimension == first.dimension for each in values)
    return Empty not in map(type, values)

"""The values of a stream, while the stops that no value carries go their way.

What an operator does with a bare stop is one of a few disciplines. It states its own where it
begins to read, and need not look at one again:

* pass on: ``Values`` and ``Lockstep`` send it to a sink and show only values;
* add levels: they do so with ``adds=n``, where each element becomes a tensor of n dimensions;
* fold: ``Lockstep`` with ``adds=-n``, where each group of n dimensions becomes an element. What is
  empty outside of groups is passed on; what is empty inside is shown, since it may close a group;
* renumber: ``send`` takes values and bare stops alike, for who changes all stops by one rule;
* follow: ``Guided``, where to each element of one stream belongs a group of another.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, Generic, Self, TypeVar

from fabric.extend import Empty, Sink, Source, Value

__all__ = ["Values", "send"]

V = TypeVar("V")


class Values(Generic[V]):
    """The values of one stream with their stops, to be iterated over.

    Their type is what ``infer`` has made sure of.
    """

    __slots__ = ("_adds", "_held", "_sink", "_source")

    def __init__(self, source: Source, sink: Sink, *, adds: int = 0, held: bool = False) -> None:
        """Stand before the first element.

        Args:
            source: the stream.
            sink: where bare stops are passed on.
            adds: dimensions that the output has inside of those of the source, at least 0.
            held: an element keeps its slot until ``take``, a bare stop until it is passed on; else
                elements are dequeued when they are shown.
        """
        self._source: Final = source
        self._sink: Final = sink
        self._adds: Final = adds
        self._held: Final = held

    def __aiter__(self) -> Self:
        """Go on with the next element."""
        return self

    async def __anext__(self) -> tuple[V, int]:
        """Wait for the next value; bare stops in front of it are passed on."""
        source, held = self._source, self._held
        while True:
            # Any: whether the stream carries V was checked when the program was wired.
            element: Any = await (source.peek() if held else source.receive())
            if element is None:
                raise StopAsyncIteration
            value, stop = element
            if not isinstance(value, Empty):
                return value, stop
            await self._sink.send_bare(stop + self._adds, value.dimension + self._adds)
            if held:
                source.take()

    def take(self) -> None:
        """Dequeue the value that was shown."""
        self._source.take()


def send(sink: Sink, value: Value, stop: int) -> Awaitable[None]:
    """Send a value with its stop, or a bare stop."""
    if isinstance(value, Empty):
        return sink.send_bare(stop, value.dimension)
    return sink.send((value, stop))

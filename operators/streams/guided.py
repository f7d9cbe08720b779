"""A stream whose elements each belong to a group of another stream, read together."""

from __future__ import annotations

from typing import Any, Final, Generic, Self

from fabric.extend import Empty, Ports, Sink
from operators.streams.track import Track, closing, differ
from operators.streams.values import V

__all__ = ["Guided"]


class Guided(Generic[V]):
    """The values of one input, to be iterated over while a group of another is read for each.

    A bare stop of the one, outside of groups, belongs to an equal one of the other. The reader
    tells ``groups`` of every element of a group that it has passed, the last one included.

    Their type is what ``infer`` has made sure of.
    """

    __slots__ = ("_begun", "_groups", "_held", "_inner", "_one_group", "_ports", "_sink", "_values")

    def __init__(
        self,
        ports: Ports,
        values: Track,
        groups: Track,
        sink: Sink | None = None,
        *,
        inner: int = 0,
        held: bool = False,
    ) -> None:
        """Stand before the first value.

        Args:
            ports: of the operator.
            values: one input.
            groups: the other.
            sink: where bare stops of ``groups`` that are outside of groups are passed on, if
                anywhere.
            inner: dimensions that the output has inside of the outer ones, which both inputs have.
            held: an element keeps its slot until ``take``, a bare stop until it is passed on; else
                elements are dequeued when they are shown.
        """
        self._ports: Final = ports
        self._values: Final = values
        self._groups: Final = groups
        self._sink: Final = sink
        self._inner: Final = inner
        self._held: Final = held
        # Where there is one group in all, nothing is left outside of it to agree on.
        self._one_group: Final = not groups.outer_dimensions
        self._begun = False

    @property
    def memory(self) -> tuple[object, ...]:
        """All of what was read that what comes has to do with."""
        return self._values.memory, self._groups.memory, self._begun

    def __aiter__(self) -> Self:
        """Go on with the next value."""
        return self

    async def __anext__(self) -> V:
        """Wait for the next value; bare stops in front of it are passed on.

        Raises:
            OperatorError: the structures differ.
        """
        values, groups = self._values, self._groups
        source, held = values.source, self._held
        while True:
            if values.level != groups.level and not self._one_group:
                await self._settle()
            # Any: whether the stream carries V was checked when the program was wired.
            element: Any = await (source.peek() if held else source.receive())
            if element is None:
                await self._end()
                raise StopAsyncIteration
            values.passed(element)
            value = element[0]
            if not isinstance(value, Empty):
                if self._begun and self._one_group:
                    raise differ(self._ports, values, groups)
                self._begun = True
                return value  # type: ignore[no-any-return]
            if not self._one_group:
                await self._pass_on()
            if held:
                source.take()

    def take(self) -> None:
        """Dequeue the value that was shown."""
        self._values.source.take()

    async def _pass_on(self) -> None:
        """Read the bare stop of the groups that belongs to that of the values."""
        values, groups = self._values, self._groups
        groups.passed(await groups.source.receive())
        if groups.empty_dimension != values.empty_dimension:
            raise differ(self._ports, values, groups)
        await self._send()

    async def _settle(self) -> None:
        """Read on, where one side closes less than the other, until both have closed as much."""
        values, groups = self._values, self._groups
        while values.level != groups.level:
            low, high = sorted((values, groups), key=lambda track: track.level)
            await closing(self._ports, low, high)
            low.source.take()
            if low is groups:
                await self._send()

    async def _send(self) -> None:
        """Pass on the bare stop at which the groups stand."""
        empty = self._groups.empty_dimension
        if self._sink is not None and empty is not None:
            inner = self._inner
            await self._sink.send_bare(self._groups.level + inner, empty + inner)

    async def _end(self) -> None:
        """Make sure that there is no group left, either."""
        values, groups = self._values, self._groups
        groups.passed(await groups.source.peek())
        if groups.element is not None:
            values.passed(None)
            raise differ(self._ports, values, groups)

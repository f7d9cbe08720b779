"""The end of a channel that a checked operator writes: what it sends is what it promised.

Source of the nesting rule: Streaming Tensor Programs, section 3.1; bare stops are this project's.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable
from typing import Final

from fabric.engine.assumed_sink import AssumedSink
from fabric.engine.calls import Calls
from fabric.engine.channel import Channel
from fabric.engine.discard import Discard
from fabric.engine.reading import as_cycle
from fabric.telling.errors import Refusal
from fabric.values.fit import described, element_misfit, freeze
from fabric.values.stream_type import StreamType
from fabric.values.value import Element, Empty

__all__ = ["CheckedSink"]


class CheckedSink:
    """Stands before a channel and refuses what is no element of its stream.

    Elements are numbered from 0, bare stops among them.
    """

    __slots__ = (
        "_calls",
        "_functional",
        "_last",
        "_name",
        "_reserved",
        "_sent",
        "_sink",
        "_type",
    )

    def __init__(
        self,
        sink: Channel | AssumedSink | Discard,
        name: str,
        stream_type: StreamType,
        calls: Calls,
        *,
        functional: bool,
    ) -> None:
        """Stand before ``sink``, called ``name``; ``calls`` are those of its unit."""
        self._sink: Final = sink
        self._name: Final = name
        self._type: Final = stream_type
        self._calls: Final = calls
        self._functional: Final = functional
        self._sent = 0
        self._reserved = 0
        # The level of the last stop: nothing is open below it. Before the first element nothing is.
        self._last = stream_type.rank

    def send(self, element: Element) -> Awaitable[None]:
        """See ``Channel.send``."""
        self._calls.begin("send")
        return self._calls.hold(self._send(element))

    async def _send(self, element: object) -> None:
        self._calls.awaited()
        element = self._checked(element)
        value, stop = element
        if isinstance(value, Empty):
            await self._sink.send_bare(stop, value.dimension)
        else:
            await self._sink.send(element)

    def send_at(self, element: Element, requested_cycle: int) -> Awaitable[None]:
        """See ``Channel.send_at``."""
        self._calls.begin("send_at")
        return self._calls.hold(self._send_at(element, requested_cycle))

    async def _send_at(self, element: object, requested_cycle: object) -> None:
        self._calls.awaited()
        try:
            cycle = as_cycle(requested_cycle)
        except TypeError:
            raise self._refusal(
                f"is asked for at cycle {described(requested_cycle)}: expected an integer"
            ) from None
        element = self._checked(element)
        if isinstance(element[0], Empty):
            raise Refusal(f"a bare stop is sent on {self._name} by send_at: expected send_bare")
        await self._sink.send_at(element, cycle)

    def send_bare(self, level: int, empty_dimension: int) -> Awaitable[None]:
        """See ``Channel.send_bare``."""
        self._calls.begin("send_bare")
        return self._calls.hold(self._send((Empty(empty_dimension), level)))

    def reserve(self) -> Awaitable[None]:
        """See ``Channel.reserve``."""
        self._calls.begin("reserve")
        return self._calls.hold(self._reserve())

    async def _reserve(self) -> None:
        self._calls.awaited()
        await self._sink.reserve()
        self._reserved += 1

    def put(self, element: Element) -> None:
        """See ``Channel.put``."""
        self._calls.end()
        self._calls.check_task()
        if not self._reserved:
            raise self._refusal("is put without a slot: expected `await reserve()` before")
        element = self._checked(element)
        self._reserved -= 1
        self._sink.put(element)

    def close(self) -> None:
        """Refuse: a stream ends where its operator does.

        Raises:
            Refusal: always.
        """
        raise Refusal(f"{self._name} is closed by its operator: expected the end of run() to do so")

    def finish(self) -> None:
        """Close the channel: the operator has ended.

        Raises:
            Refusal: a dimension is still open.
        """
        rank = self._type.rank
        if self._last != rank:
            raise Refusal(
                f"{self._name} ends after element {self._sent - 1:,}, which has a stop of level "
                f"{self._last}: expected level {rank}, which closes the dimensions of "
                f"{self._type}",
                counted=True,
            )
        self._sink.close()

    def _checked(self, element: object) -> Element:
        """Return ``element``, which nobody changes any more and which fits.

        Raises:
            Refusal: it does not.
        """
        if type(element) is not tuple or len(element) != 2:
            raise self._refusal(
                f"is {described(element)}: expected a tuple (value, level of the stop)"
            )
        value, stop = element
        if type(stop) is not int:
            stop = self._level(stop)
        element = value, stop
        wrong = element_misfit(element, self._last, self._type, self._functional)
        if wrong is not None:
            raise self._refusal(wrong)
        freeze(value, sent=True)
        self._last = stop
        self._sent += 1
        return value, stop

    def _level(self, stop: object) -> int:
        if not isinstance(stop, bool):
            try:
                return operator.index(stop)  # type: ignore[arg-type]
            except TypeError:
                pass
        raise self._refusal(f"has a stop of level {described(stop)}: expected an integer")

    def _refusal(self, what: str) -> Refusal:
        return Refusal(f"element {self._sent:,} of {self._name} {what}", counted=True)

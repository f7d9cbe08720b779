"""Ends of channels whose stream the program has stated the shape of: they count its groups."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from fabric.graph.values.dims import Claim
from fabric.graph.values.value import Element, Empty
from fabric.timing.engine.channel import Channel

__all__ = ["AssumedSink"]


class AssumedSink:
    """Stands before a channel and compares the sizes of groups with what the program says of them.

    A size that is a number is compared when its group closes; one that other streams decide when
    the run is over, and then ``sizes`` has the smallest and the largest group.

    Attributes:
        channel: it.
        claims: what the program says.
        sizes: by dimension, the smallest and the largest group that has closed.
    """

    __slots__ = ("_counts", "_groups", "_numbers", "channel", "claims", "sizes")

    def __init__(self, channel: Channel, claims: tuple[Claim, ...], rank: int) -> None:
        """Stand before ``channel``, whose stream has rank ``rank``."""
        self.channel: Final = channel
        self.claims: Final = claims
        self.sizes: dict[int, tuple[int, int]] = {}
        self._counts = [0] * (rank + 1)
        self._groups = [0] * (rank + 1)
        self._numbers = {
            claim.dimension: claim for claim in claims if isinstance(claim.assumed, int)
        }

    def send(self, element: Element) -> Awaitable[None]:
        """See ``Channel.send``."""
        self._count(element)
        return self.channel.send(element)

    def send_at(self, element: Element, requested_cycle: int) -> Awaitable[None]:
        """See ``Channel.send_at``."""
        self._count(element)
        return self.channel.send_at(element, requested_cycle)

    def send_bare(self, level: int, empty_dimension: int) -> Awaitable[None]:
        """See ``Channel.send_bare``."""
        self._count((Empty(empty_dimension), level))
        return self.channel.send_bare(level, empty_dimension)

    def reserve(self) -> Awaitable[None]:
        """See ``Channel.reserve``."""
        return self.channel.reserve()

    def put(self, element: Element) -> None:
        """See ``Channel.put``."""
        self._count(element)
        self.channel.put(element)

    def close(self) -> None:
        """See ``Channel.close``."""
        self.channel.close()

    def finish(self) -> None:
        """Close the outermost dimension, which no stop closes.

        Raises:
            ProgramError: it has not the size the program says.
        """
        self._close(len(self._counts) - 1)

    def count_sent(
        self, counts: list[int], groups: list[int], sizes: list[tuple[int, int]]
    ) -> None:
        """Take over what was counted elsewhere, by dimension."""
        self._counts, self._groups = counts, groups
        self.sizes = {dimension: size for dimension, size in enumerate(sizes) if groups[dimension]}

    @property
    def expected(self) -> list[int | None]:
        """By dimension, the size that each group has to have; None where it is not a number."""
        claims = [self._numbers.get(dimension) for dimension in range(len(self._counts))]
        return [
            each.assumed if each is not None and isinstance(each.assumed, int) else None
            for each in claims
        ]

    def _count(self, element: Element) -> None:
        value, stop = element
        counts = self._counts
        empty = 0
        if value.__class__ is Empty:
            empty = value.dimension
        else:
            counts[0] += 1
        for dimension in range(min(stop, len(counts) - 1)):
            # Inside an empty dimension there are no groups to close.
            if dimension >= empty or counts[dimension]:
                self._close(dimension)
                counts[dimension + 1] += 1

    def _close(self, dimension: int) -> None:
        size = self._counts[dimension]
        self._counts[dimension] = 0
        self._groups[dimension] += 1
        low, high = self.sizes.get(dimension, (size, size))
        self.sizes[dimension] = min(low, size), max(high, size)
        claim = self._numbers.get(dimension)
        if claim is not None and size != claim.assumed:
            outermost = dimension == len(self._counts) - 1
            assert isinstance(claim.assumed, int)
            raise claim.refuted_by(
                size, claim.assumed, None if outermost else self._groups[dimension]
            )

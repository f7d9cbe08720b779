"""Transfers over shared links: when each of them is through."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import counted
from fabric.timing.network.shares import PIECE_BITS, TICK_BITS, drain

__all__ = ["Transfers"]

_MOST: Final = 2**20
"""Bytes a cycle that a link can be given."""

_MOST_BYTES: Final = 2**34
"""Of one transfer."""


class Transfers:
    """Transfers that begin in known cycles and share links, max-min fair, as long as they last.

    A transfer is under way on all of its links at once, at one rate. How long its head takes over
    the route is no part of this: add ``Route.cycles``.
    """

    def __init__(
        self, capacities: Sequence[float | Fraction | None], *, lanes: int | None = None
    ) -> None:
        """Begin with no transfer.

        Args:
            capacities: bytes a cycle of each link, by its number; None for any number.
            lanes: how many transfers a source has under way at once, as a router's virtual
                channels: those that began first, and a later one has what earlier ones leave. None
                for any number, which share alike.

        Raises:
            ConfigurationError: a link carries nothing, or there is no lane.
        """
        for link, capacity in enumerate(capacities):
            if capacity is not None and not 0 < capacity <= _MOST:
                raise ConfigurationError(
                    f"link {link}: bytes a cycle are {capacity}: expected more than 0 and at "
                    f"most {_MOST}, or None"
                )
        if lanes is not None and lanes < 1:
            raise ConfigurationError(f"lanes is {lanes}: expected at least 1")
        unit = 1 << (PIECE_BITS - TICK_BITS)
        self._capacities: Final = [
            0 if capacity is None else max(1, int(capacity * unit)) for capacity in capacities
        ]
        self._lanes: Final = lanes or 0
        self._starts: Final[list[int]] = []
        self._sizes: Final[list[int]] = []
        self._links: Final[list[int]] = []
        self._first_link: Final = [0]
        self._sources: Final[list[int]] = []

    def add(self, start_cycle: float, size_bytes: int, links: Sequence[int], source: int) -> int:
        """Add a transfer and return its number.

        Args:
            start_cycle: when its first byte is ready.
            size_bytes: at least 1.
            links: which it takes, at least one, each once.
            source: a number from 0 on, the same for all that one injector sends.

        Raises:
            ConfigurationError: it has no link, one that there is not, or no byte.
        """
        if not 1 <= size_bytes <= _MOST_BYTES or start_cycle < 0 or source < 0:
            raise ConfigurationError(
                f"a transfer of {counted(size_bytes, 'byte')} at cycle {start_cycle} from source "
                f"{source}: expected 1 to {_MOST_BYTES} bytes, and a cycle and a source from 0 on"
            )
        known = len(self._capacities)
        if not links or min(links) < 0 or max(links) >= known or len({*links}) < len(links):
            raise ConfigurationError(
                f"a transfer takes links {list(links)}: expected at least one, each once, of "
                f"{known}"
            )
        self._starts.append(int(start_cycle * (1 << TICK_BITS)))
        limiting = [link for link in links if self._capacities[link]]
        self._sizes.append(size_bytes << PIECE_BITS if limiting else 0)
        self._links.extend(limiting)
        self._first_link.append(len(self._links))
        self._sources.append(source)
        return len(self._starts) - 1

    def finish_cycles(self) -> list[float]:
        """Return when the last byte of each transfer is through, in the order they were added."""
        count = len(self._starts)
        if not count:
            return []
        starts = np.array(self._starts, np.int64)
        finish = np.zeros(count, np.int64)
        drain.over(
            order=np.argsort(starts, kind="stable").astype(np.int64),
            start=starts,
            left=np.array(self._sizes, np.int64),
            first_link=np.array(self._first_link, np.int64),
            links=np.array(self._links, np.int64),
            capacity=np.array(self._capacities, np.int64),
            source=np.array(self._sources, np.int64),
            finish=finish,
            rate=np.zeros(count, np.int64),
            rank=np.zeros(count, np.int64),
            active=np.zeros(count, np.int64),
            room=np.zeros(len(self._capacities), np.int64),
            users=np.zeros(len(self._capacities), np.int64),
            share=np.zeros(len(self._capacities), np.int64),
            listed=np.zeros(len(self._capacities), np.int64),
            until=np.zeros(len(self._capacities), np.int64),
            members=np.zeros(len(self._links), np.int64),
            at_source=np.zeros(max(self._sources) + 1, np.int64),
        )(self._lanes)
        cycles: list[float] = (finish / (1 << TICK_BITS)).tolist()
        return cycles

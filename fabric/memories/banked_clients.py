"""Clients of the banked memory: what each has asked for, and what is fetched ahead of that.

A client hands over one tile after the other, and not more requests beyond the tile that it has
asked for than may be fetched ahead: the next part of a tile begins when there is room for it. To
the loop a client has a port for each part that may be under way at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from fabric.engine.off_chip import Burst
from fabric.engine.unit import Unit
from fabric.hardware.banked import BankedDescription
from fabric.telling.errors import Refusal

__all__ = ["Client", "Part", "Tile", "most_ports"]


def most_ports(description: BankedDescription) -> int:
    """Return how many parts a unit that reads has under way at most.

    Of those fetched ahead each has a request at least. The tile that is asked for has one, or two
    where room ended within it.
    """
    ahead_requests = description.prefetch_requests
    return ahead_requests + 2 if ahead_requests else 1


class Tile:
    """A burst that has begun.

    Attributes:
        burst: that it is.
        requests: of the burst.
        begun: as many of them have a port.
        ports: of its parts.
    """

    def __init__(self, burst: Burst, requests: int) -> None:
        self.burst: Final = burst
        self.requests: Final = requests
        self.begun = 0
        self.ports: Final[list[int]] = []


class Part(NamedTuple):
    """Consecutive requests of a tile.

    Attributes:
        port: that hands them over.
        tile: whose they are.
        first: how many of the tile's are before them.
        requests: how many they are.
        cycle: in which the first bundle of them is handed over.
    """

    port: int
    tile: Tile
    first: int
    requests: int
    cycle: int


class Client:
    """A unit and its ports.

    Attributes:
        unit: the client.
        ports: of the loop.
        asked: the tile that it waits for.
    """

    def __init__(self, unit: Unit, ports: range, description: BankedDescription) -> None:
        self.unit: Final = unit
        self.ports: Final = ports
        self.asked: Tile | None = None
        self._description: Final = description
        self._announced: Iterator[Burst] = iter(())
        self._ahead: Final[deque[Tile]] = deque()
        self._room_requests = 0
        self._parts = 0
        self._free_cycle = 0

    def announce(self, bursts: Iterator[Burst]) -> list[Part]:
        """Know which bursts are asked for next; return the parts that begin now.

        All that was announced before has been asked for.
        """
        self._announced = bursts
        self._room_requests = self._description.prefetch_requests
        return list(self._begin_ahead())

    def ask(self, burst: Burst) -> list[Part]:
        """Ask for ``burst``, and return the parts that begin now.

        Raises:
            Refusal: another one was announced.
        """
        requests = burst.requests(self._description.request_bytes)
        if not self._ahead:
            # Nothing was announced: there is always room for a part of what was.
            self.asked = Tile(burst, requests)
            return [self._begin(self.asked, requests)]
        expected = self._ahead[0].burst
        if burst != expected:
            raise Refusal(f"{burst} is asked for: expected {expected}, as announced")
        self._room_requests += requests
        begun = list(self._begin_ahead())
        self.asked = self._ahead.popleft()
        return begun

    def _begin_ahead(self) -> Iterator[Part]:
        """Begin what there is room for."""
        while self._room_requests:
            if not self._ahead or self._ahead[-1].begun == self._ahead[-1].requests:
                burst = next(self._announced, None)
                if burst is None:
                    return
                self._ahead.append(Tile(burst, burst.requests(self._description.request_bytes)))
            tile = self._ahead[-1]
            requests = min(self._room_requests, tile.requests - tile.begun)
            self._room_requests -= requests
            yield self._begin(tile, requests)

    def _begin(self, tile: Tile, requests: int) -> Part:
        """Begin so many requests of a tile, behind all that have begun before."""
        port = self.ports[self._parts % len(self.ports)]
        self._parts += 1
        cycle = max(self.unit.now + 1, self._free_cycle)
        self._free_cycle = cycle - (-requests // self._description.requests_per_bundle)
        part = Part(port, tile, tile.begun, requests, cycle)
        tile.begun += requests
        tile.ports.append(port)
        return part

"""Address generators: addresses for a RandomOffChipLoad, from selectors, indices and lengths.

Source: the authors' artifact (its address generators); not in the paper's tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import Selector, SelectorType, ShapeError, Stream, StreamType, Tile
from fabric.extend import Operator, Ports, Rates, Wiring, Work, check_same_shape
from operators.sources import mean_of_metadata
from operators.streams.reading import Lockstep, Types, Values
from operators.tiles.integers import INTEGER, check_integers, count_in, integer


@dataclass(frozen=True)
class ExpertAddresses(Operator):
    """For every one-hot selector, emit the addresses of all tiles of the expert it names.

    Expert e has the tiles ``e * tiles`` to ``(e + 1) * tiles - 1``.

    Shapes:
        selectors: [D_a, ..., D_0], one-hot; output: [D_a, ..., D_0, tiles, 1] of 1x1 tiles.

    Attributes:
        tiles: tiles of an expert, at least 1.

    Example:
        >>> with Program("example") as program:
        ...     route = Selectors(np.array([[1], [0]]), width=2)()
        ...     places = ExpertAddresses(2)(route)
        ...     weights = RandomOffChipLoad(np.ones((128, 64)), tile=(32, 64))(places)
        ...     Consumer()(weights)
        >>> print(weights.type)
        [1, 2, 2, 1] of 32x64 bfloat16
        >>> print(simulate(program).off_chip_traffic_bytes)
        16384
    """

    conducted = turns = True

    tiles: int

    def __call__(self, selectors: Stream) -> Stream:
        return self.wire(selectors)[0]

    @override
    def infer(self, wiring: Wiring, selectors: Stream) -> Types:
        value = selectors.value
        if self.tiles < 1 or not isinstance(value, SelectorType) or value.hits != 1:
            raise ShapeError(
                f"ExpertAddresses({self.tiles}) is steered by {selectors}: "
                "expected at least 1 tile and one-hot selectors"
            )
        return (StreamType((*selectors.shape, self.tiles, 1), INTEGER),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work()

    @override
    async def run(self, ports: Ports) -> None:
        sink, tiles = ports.sink, self.tiles
        async for selector, stop in Values[Selector](ports.source, sink, adds=2):
            first = selector.hits[0] * tiles
            for number in range(tiles - 1):
                await sink.send((integer(first + number), 1))
            await sink.send((integer(first + tiles - 1), stop + 2))
            ports.turn()


@dataclass(frozen=True)
class CacheReadAddresses(Operator):
    """For every request, emit the addresses of the tiles in its cache.

    Request r starts at tile ``r * stride``.

    Shapes:
        requests, lengths (in tiles): [D_a, ..., D_0] of 1x1 tiles; output: [D_a, ..., D_0, n] of
        1x1 tiles, n ragged.

    Timing:
        The first two addresses of a request are visible together. Each further address is visible
        a cycle after the address before it. The next request does not wait for the addresses.

    Attributes:
        stride: number of tiles from the start of a request's cache to the start of the next.

    Example:
        >>> with Program("example") as program:
        ...     requests, lengths = Metadata(np.array([0, 1]))(), Metadata(np.array([3, 1]))()
        ...     places = CacheReadAddresses(stride=4)(requests, lengths)
        ...     Consumer()(RandomOffChipLoad(np.ones((128, 64)), tile=(16, 64))(places))
        >>> print(places.type)
        [1, 2, D_cache_read_addresses_1~] of 1x1 uint64
        >>> print(simulate(program).off_chip_traffic_bytes)
        8192
    """

    conducted = turns = True

    stride: int

    def __call__(self, requests: Stream, lengths: Stream) -> Stream:
        return self.wire(requests, lengths)[0]

    @override
    def infer(self, wiring: Wiring, requests: Stream, lengths: Stream) -> Types:
        check_integers("CacheReadAddresses", requests, lengths)
        check_same_shape("CacheReadAddresses", requests, lengths)
        if self.stride < 0:
            raise ShapeError(
                f"CacheReadAddresses has a stride of {self.stride} tiles: expected at least 0"
            )
        mean = mean_of_metadata(lengths)
        tiles = wiring.symbol(f"D_{wiring.node_name}", ragged=True, size=mean)
        return (StreamType((*requests.shape, tiles), INTEGER),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(closing=())  # a length may be 0

    @override
    async def run(self, ports: Ports) -> None:
        sink = ports.sink
        inputs = Lockstep[Tile](ports, sink, adds=1)
        async for (request, length), stop in inputs:
            inputs.take()
            first = count_in(request, "a request") * self.stride
            count, start = count_in(length, "a length"), ports.now
            if not count:
                await sink.send_bare(stop + 1, 0)
            for number in range(count):
                level = stop + 1 if number == count - 1 else 0
                await sink.send_at((integer(first + number), level), start + number)
            ports.turn()


@dataclass(frozen=True)
class FilterLastTile(Operator):
    """For every length n, emit n - 1 selectors of stream 1 and then one of stream 0.

    Shapes:
        lengths: [D_a, ..., D_0] of 1x1 tiles; output: [D_a, ..., D_0, n] of selectors, n ragged.

    Example:
        >>> with Program("example") as program:
        ...     route = FilterLastTile()(Metadata(np.array([3, 1]))())
        ...     Consumer()(route)
        >>> print(route.type)
        [1, 2, D_filter_last_tile_1~] of selector of 2
        >>> print(simulate(program).elements)
        6
    """

    conducted = turns = True

    def __call__(self, lengths: Stream) -> Stream:
        return self.wire(lengths)[0]

    @override
    def infer(self, wiring: Wiring, lengths: Stream) -> Types:
        check_integers("FilterLastTile", lengths)
        mean = mean_of_metadata(lengths)
        tiles = wiring.symbol(f"D_{wiring.node_name}", ragged=True, size=mean)
        return (StreamType((*lengths.shape, tiles), SelectorType(2, hits=1)),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(closing=())  # a length may be 0

    @override
    async def run(self, ports: Ports) -> None:
        sink = ports.sink
        last, other = Selector((0,), 2), (Selector((1,), 2), 0)
        async for length, stop in Values[Tile](ports.source, sink, adds=1):
            count = count_in(length, "a length")
            for _ in ports.times(count - 1):
                await sink.send(other)
            if count:
                await sink.send((last, stop + 1))
            else:
                await sink.send_bare(stop + 1, 0)
            ports.turn()

"""Intersect and Union: join two streams that are sorted by coordinate.

Source: The Sparse Abstract Machine (Hsu et al., ASPLOS 2023, arXiv 2208.14610), its intersecter and
its unioner; not in the paper's tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from fabric import ShapeError, Stream, StreamType, Tile, TupleType
from fabric.extend import (
    Empty,
    Operator,
    Ports,
    Rates,
    Value,
    ValueType,
    Wiring,
    Work,
    drop,
    filled,
    is_static,
    items_of,
    kept_as,
    number_in,
    same,
)
from operators.streams.reading import (
    Track,
    Types,
    check_number,
    check_static,
    closing,
    differ,
    new_tile,
)
from operators.tiles.integers import is_integer


@dataclass(frozen=True)
class _MergeJoin(Operator):
    secondary_outputs = (0, 1, 2)
    no_order = "coordinates decide which tiles it passes on"

    def __call__(self, left: Stream, right: Stream) -> tuple[Stream, Stream, Stream]:
        coordinates, of_left, of_right = self.wire(left, right)
        return coordinates, of_left, of_right

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        name = type(self).__name__
        for stream in inputs:
            value = stream.value
            first = value.items[0] if isinstance(value, TupleType) else value
            if not stream.rank or not is_integer(first):
                raise ShapeError(
                    f"{name} is given {stream}: expected rank 1 or more, and elements that are "
                    "coordinates (1x1 tiles of integers) or tuples that begin with a coordinate"
                )
        left, right = inputs
        outer = zip(left.shape[:-1], right.shape[:-1], strict=False)
        if left.rank != right.rank or any(same(a, b) is False for a, b in outer):
            raise ShapeError(
                f"{name} is given {left} and {right}: expected the same outer dimensions"
            )
        joined = (*left.shape[:-1], wiring.symbol(f"D_{wiring.node_name}", ragged=True))
        coordinate = left.value.items[0] if isinstance(left.value, TupleType) else left.value
        payloads = (wiring.renewed_value(_payload_type(stream.value)) for stream in inputs)
        return tuple(StreamType(joined, value) for value in (coordinate, *payloads))

    @override
    async def run(self, ports: Ports) -> None:
        left, right = _Fiber(ports, 0), _Fiber(ports, 1)
        while True:
            await left.look()
            await right.look()
            if left.element is None and right.element is None:
                return
            if left.element is None or right.element is None:
                raise differ(ports, left, right)
            if left.is_outside or right.is_outside:
                empty = left.element[0]
                if not isinstance(empty, Empty) or empty != right.element[0]:
                    raise differ(ports, left, right)
                left.source.take()
                right.source.take()
                await _close(ports, left, right, empty.dimension)
            else:
                await self._join(ports, left, right)

    async def _join(self, ports: Ports, left: _Fiber, right: _Fiber) -> None:
        """Walk through one group of each side."""
        left.open()
        right.open()
        has_closed = False
        while (coordinate := _lower(left, right)) is not None:
            at_left, at_right = left.coordinate == coordinate, right.coordinate == coordinate
            of_left = left.take() if at_left else None
            of_right = right.take() if at_right else None
            has_closed = left.coordinate is None and right.coordinate is None
            stop = await _settle(ports, left, right) if has_closed else 0
            pair = self._joined(ports, of_left, of_right)
            if pair is None:
                has_closed = False
            else:
                for sink, value in zip(ports.outputs, pair, strict=True):
                    await sink.send((value, stop))
            ports.unit.charge(1)
            for fiber, was_taken in ((left, at_left), (right, at_right)):
                if was_taken and fiber.coordinate is not None:
                    await fiber.look()
                    fiber.read()
        if not has_closed:
            await _close(ports, left, right, 0)

    def _joined(
        self, ports: Ports, left: _Item | None, right: _Item | None
    ) -> tuple[Value, Value, Value] | None:
        """Return the output for a coordinate of one or both sides; None to send nothing."""
        raise NotImplementedError


@dataclass(frozen=True)
class Intersect(_MergeJoin):
    """The coordinates that two sorted streams have in common, with the payloads of both.

    Within a group coordinates ascend, without repetitions; anything else is an error. If a stream
    has coordinates alone, they are its payload. Several payloads form a tuple. A payload may be an
    address: a RandomOffChipLoad behind the join then loads only the common tiles.

    Shapes:
        left: [D_a, ..., D_1, n~] of coordinates, or of tuples (coordinate, payload, ...); right:
        [D_a, ..., D_1, m~] of the same; outputs: three streams [D_a, ..., D_1, k~], of coordinates,
        left payloads and right payloads. Outputs may stay unread. A group without a match is empty.

    Timing:
        One comparison per cycle, as in SAM. The lower coordinate is taken, or both if they are
        equal. When one group has ended, the rest of the other is taken. So a group takes one cycle
        for each distinct coordinate. A match leaves in the cycle of its comparison. If a group
        does not end with a match, a bare stop ends it, which takes a slot but no cycle.

    Example:
        >>> with Program("example") as program:
        ...     left, right = RaggedIntegers([[1, 4, 6], []])(), RaggedIntegers([[0, 4], [3]])()
        ...     coordinates, _, _ = Intersect()(left, right)
        ...     Consumer()(coordinates)
        >>> print(coordinates.type)
        [1, 2, D_intersect_1~] of 1x1 uint64
        >>> print(simulate(program).cycles)
        7
    """

    conducted = True

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(closing=())  # the number of matches depends on the data

    @override
    def _joined(
        self, ports: Ports, left: _Item | None, right: _Item | None
    ) -> tuple[Value, Value, Value] | None:
        if left is None or right is None:
            for item in (left, right):
                if item is not None:
                    drop(item[1], ports.unit.now)
            return None
        return left[0], left[1], right[1]


@dataclass(frozen=True)
class Union(_MergeJoin):
    """All coordinates of two sorted streams; a filler replaces a payload that a stream lacks.

    Within a group coordinates ascend, without repetitions; anything else is an error. If a stream
    has coordinates alone, they are its payload. Several payloads form a tuple.

    Shapes:
        left: [D_a, ..., D_1, n~] of coordinates, or of tuples (coordinate, payload, ...); right:
        [D_a, ..., D_1, m~] of the same; outputs: three streams [D_a, ..., D_1, k~], of coordinates,
        left payloads and right payloads. Outputs may stay unread. Payloads have static sizes.

    Timing:
        One comparison per cycle, as in Intersect. So a group takes one cycle for each distinct
        coordinate. A coordinate leaves in the cycle of its comparison.

    Attributes:
        filler: the number that fills the tile in place of a missing payload.

    Example:
        >>> with Program("example") as program:
        ...     left, right = RaggedIntegers([[1, 4, 6], []])(), RaggedIntegers([[0, 4], [3]])()
        ...     coordinates, _, _ = Union()(left, right)
        ...     Consumer()(coordinates)
        >>> print(coordinates.type)
        [1, 2, D_union_1~] of 1x1 uint64
        >>> print(simulate(program).elements)
        11
    """

    conducted = True

    filler: float = 0.0

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> Types:
        outputs = super().infer(wiring, *inputs)
        for stream in inputs:
            payload = _payload_type(stream.value)
            for tile in payload.items if isinstance(payload, TupleType) else (payload,):
                fills = "Union fills missing payloads of"
                dtype = check_static(fills, stream, tile).dtype
                check_number(fills, stream, self.filler, dtype)
        return outputs

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        counts = [stream.count for stream in inputs]
        longer = max(counts) if all(map(is_static, counts)) else counts[0]
        return Work(cycles=longer - 1, needs="any")

    @override
    def _joined(
        self, ports: Ports, left: _Item | None, right: _Item | None
    ) -> tuple[Value, Value, Value] | None:
        either = left or right
        assert either is not None
        payloads = (
            self._filled(ports, _payload_type(each.value)) if item is None else item[1]
            for item, each in zip((left, right), ports.input_types, strict=True)
        )
        of_left, of_right = payloads
        return either[0], of_left, of_right

    def _filled(self, ports: Ports, value: ValueType) -> Value:
        if isinstance(value, TupleType):
            return tuple(self._filled(ports, item) for item in value.items)
        tile = new_tile(value)
        if ports.functional or is_integer(value):
            tile.data = filled((tile.rows, tile.cols), self.filler, kept_as(tile.dtype))
        return tile


_Item = tuple[Tile, Value]
"""A coordinate and its payload."""


class _Fiber(Track):
    """One side of a join.

    Attributes:
        coordinate: the coordinate of the current element; None if its group has ended.
    """

    __slots__ = ("_latest", "_ports", "coordinate")

    def __init__(self, ports: Ports, port: int) -> None:
        super().__init__(ports, port, 1)
        self._ports = ports
        self._latest: int | None = None
        self.coordinate: int | None = None

    async def look(self) -> None:
        self.passed(await self.source.peek())

    def open(self) -> None:
        """Begin a group with the element that was looked at."""
        self._latest = None
        self.read()

    def read(self) -> None:
        """Read the coordinate of the element that was looked at; a bare stop ends the group."""
        if self.element is None or self.is_outside:
            raise self._ports.failure(f"{self.described}: expected the rest of a group")
        value = self.element[0]
        if isinstance(value, Empty):
            self.source.take()
            self.coordinate = None
            return
        coordinate = number_in(_item(value)[0])
        if self._latest is not None and coordinate <= self._latest:
            raise self._ports.failure(
                f"coordinate {coordinate:,} of {self.source.producer.name} comes after "
                f"{self._latest:,} in one group: expected coordinates that ascend, each once"
            )
        self._latest = self.coordinate = coordinate

    def take(self) -> _Item:
        """Take the value that was read; the group has ended if the value closes it."""
        assert self.element is not None
        value, stop = self.element
        self.source.take()
        if stop:
            self.coordinate = None
        return _item(value)


def _item(value: Value) -> _Item:
    if isinstance(value, Tile):
        return value, value
    coordinate, *rest = items_of(value)
    assert isinstance(coordinate, Tile)
    return coordinate, rest[0] if len(rest) == 1 else tuple(rest)


def _payload_type(value: ValueType) -> ValueType:
    if not isinstance(value, TupleType):
        return value
    rest = value.items[1:]
    return rest[0] if len(rest) == 1 else TupleType(rest)


def _lower(left: _Fiber, right: _Fiber) -> int | None:
    """Return the lower of the two current coordinates; None if both groups have ended."""
    coordinates = (left.coordinate, right.coordinate)
    return min((coordinate for coordinate in coordinates if coordinate is not None), default=None)


async def _settle(ports: Ports, left: _Fiber, right: _Fiber) -> int:
    """Read the side with the lower stop until both stops are equal; return the common stop."""
    while left.stop != right.stop:
        low, high = (left, right) if left.stop < right.stop else (right, left)
        await closing(ports, low, high)
        low.source.take()
    return left.stop


async def _close(ports: Ports, left: _Fiber, right: _Fiber, dimension: int) -> None:
    """Send a bare stop for ``dimension`` once both sides have closed it."""
    stop = await _settle(ports, left, right)
    for sink in ports.outputs:
        await sink.send_bare(stop, dimension)

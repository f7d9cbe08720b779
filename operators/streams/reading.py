"""Readers of one or several streams, and helpers for elements, bare stops and checks of inputs.

An operator handles bare stops by one of five disciplines, which its reader implements:

* pass on: ``Values`` and ``Lockstep`` send bare stops to a sink and return only values;
* add levels: the same with ``adds=n``, if each element becomes a tensor of n dimensions;
* fold: ``Lockstep`` with ``adds=-n``, if each group becomes an element. Bare stops inside groups
  are returned, since they may close a group;
* renumber: ``send`` takes values and bare stops, if one rule changes all stops;
* follow: ``Guided``, if a group of one stream belongs to each element of another.

Two streams of one structure may carry different stops: a stream may close some dimensions with a
value, and further ones with a bare stop (for example after a Flatten, if the last part of a group
is empty). So the stream with the lower stop has to continue with a bare stop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from functools import lru_cache
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar

import numpy as np

from fabric import (
    Layout,
    OperatorError,
    Selector,
    ShapeError,
    Stream,
    StreamType,
    Tile,
    TileType,
    TupleType,
)
from fabric.extend import (
    Element,
    Empty,
    Ports,
    Sink,
    Source,
    TrackedArray,
    Unit,
    Value,
    ValueType,
    carried,
    check_converts,
    check_same_shape,
    dtype_name,
    is_static,
    items_of,
    tracks_errors,
)

Orders: TypeAlias = tuple[Layout | str, ...]
"""The layout of each stream, or the reason, in words, why it has none."""

Types: TypeAlias = tuple[StreamType, ...]

V = TypeVar("V")


def check_inputs(name: str, inputs: tuple[Stream, ...]) -> None:
    """Refuse inputs that ``name`` cannot read element by element."""
    if not inputs:
        raise ShapeError(f"{name} is given no stream: expected at least one")
    for other in inputs[1:]:
        check_same_shape(name, inputs[0], other)


def check_static(what: str, stream: Stream, value: ValueType) -> TileType:
    """Return ``value``, a type in ``stream``; refuse it unless it is a tile of a static size."""
    if isinstance(value, TileType) and is_static(value.rows) and is_static(value.cols):
        return value
    raise ShapeError(f"{what} {stream}: expected tiles of a static size")


def tile_of(stream: Stream | StreamType) -> TileType:
    """Return the type of the tiles of ``stream``, which ``infer`` has checked."""
    assert isinstance(stream.value, TileType)
    return stream.value


def new_tile(value: ValueType, data: np.ndarray | None = None) -> Tile:
    """Return a tile of type ``value``, a tile type with a static size."""
    assert isinstance(value, TileType)
    assert isinstance(value.rows, int)
    assert isinstance(value.cols, int)
    return Tile(value.rows, value.cols, value.dtype, data)


def check_number(what: str, stream: Stream, number: float, dtype: np.dtype) -> None:
    """Refuse a ``number`` that elements of ``dtype`` do not hold."""
    try:
        _check_converts(number, dtype)
    except ValueError as error:
        held = f"expected a number that {dtype_name(dtype)} holds"
        raise ShapeError(f"{what} {stream} with {number}: {held}") from error


@lru_cache(typed=True)
def _check_converts(number: float, dtype: np.dtype) -> None:
    """Check a conversion; cached for programs with thousands of equal numbers."""
    check_converts(np.array(number), dtype)


def unpacked(values: Iterable[Value]) -> list[Value]:
    """Return ``values`` with each tuple replaced by its items."""
    flat: list[Value] = []
    for value in values:
        if value.__class__ is tuple:
            flat += unpacked(items_of(value))
        else:
            flat.append(value)
    return flat


def unpacked_types(types: Iterable[ValueType]) -> tuple[ValueType, ...]:
    """Return ``types`` with each tuple replaced by its items."""
    flat: list[ValueType] = []
    for value_type in types:
        if isinstance(value_type, TileType) or not isinstance(value_type, TupleType):
            flat.append(value_type)
        else:
            flat += unpacked_types(value_type.items)
    return tuple(flat)


def load_cycles(unit: Unit, value: Value) -> int:
    """Return the cycles for loading the tiles of ``value`` that are in a memory unit."""
    if isinstance(value, Tile):
        return unit.transfer(value.size_bytes) if value.in_memory else 0
    if value.__class__ is tuple:
        return sum([load_cycles(unit, item) for item in items_of(value)])
    return 0


def charged(unit: Unit, cycles: int) -> int:
    """Return the cycles to charge for an element that takes ``cycles``.

    A unit with registers takes some cycles more, until it knows the cost of the element.
    """
    return cycles + unit.registers.cost_cycles if cycles else 0


def placed(value: Value, *, in_memory: bool) -> Value:
    """Return ``value`` with ``in_memory`` set in all its tiles."""
    if isinstance(value, Tile):
        return value.placed(in_memory=in_memory)
    if value.__class__ is tuple:
        return tuple([placed(item, in_memory=in_memory) for item in items_of(value)])
    return value


def tracked_as(value: Value, operands: Iterable[Value]) -> Value:
    """Return ``value`` with the rounding errors of ``operands``, if the function dropped them."""
    if not tracks_errors():
        return value
    if isinstance(value, Tile):
        if value.data is None or isinstance(value.data, TrackedArray):
            return value
        data = carried(
            value.data, [operand.data for operand in operands if isinstance(operand, Tile)]
        )
        return value.with_data(data, value.in_memory)
    if value.__class__ is tuple:
        return tuple([tracked_as(item, operands) for item in items_of(value)])
    return value


def size_bytes(value: Value) -> int:
    if isinstance(value, Tile | Selector):
        return value.size_bytes
    return 1 if isinstance(value, bool) else sum(map(size_bytes, items_of(value)))


class Values(Generic[V]):
    """An iterator over the values of one stream with their stops."""

    __slots__ = ("_adds", "_held", "_sink", "_source")

    def __init__(self, source: Source, sink: Sink, *, adds: int = 0, held: bool = False) -> None:
        """Pass bare stops on to ``sink``.

        ``adds`` is the number of inner dimensions that only the output has. If ``held``, an element
        keeps its slot until ``take``, and a bare stop until it is passed on. Otherwise elements are
        dequeued when they are returned.
        """
        self._source: Final = source
        self._sink: Final = sink
        self._adds: Final = adds
        self._held: Final = held

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[V, int]:
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
        self._source.take()


def send(sink: Sink, value: Value, stop: int) -> Awaitable[None]:
    """Send a value with its stop, or a bare stop."""
    if isinstance(value, Empty):
        return sink.send_bare(stop, value.dimension)
    return sink.send((value, stop))


class Lockstep(Generic[V]):
    """An iterator over the values of all inputs of an operator with their common stop."""

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
        """Start before the first elements.

        Args:
            ports: the ports of the operator.
            sink: receives the bare stops; if None, bare stops are returned.
            adds: the number of inner dimensions that only the output has. With -n, the output lacks
                n inner dimensions, and bare stops inside these dimensions are returned.
            held: a bare stop keeps its slots until it has been passed on.
            unpack: replace each tuple by its items.
        """
        self._ports = ports
        self._sink = sink
        self._adds = adds
        self._held = held
        self._unpack = unpack and any(
            isinstance(stream.value, TupleType) for stream in ports.input_types
        )
        self._tracks = [Track(ports, port) for port in range(len(ports.inputs))]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[list[V], int]:
        """Wait for the next element of every input; the elements keep their slots until ``take``.

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
        """Pass on a bare stop, unless the operator receives it; return whether it was passed on."""
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
        """Dequeue the elements that were returned last."""
        for source in self._ports.inputs:
            source.take()

    async def _settle(self) -> int:
        """Read the inputs with lower stops until all have closed the same dimensions."""
        tracks = self._tracks
        while True:
            low = min(tracks, key=lambda track: track.level)
            high = max(tracks, key=lambda track: track.level)
            if low.level == high.level:
                return low.level
            low.source.take()
            await closing(self._ports, low, high)


def _alike(values: list[Value]) -> bool:
    """Whether no value is a bare stop, or all are, for the same empty dimension."""
    first = values[0]
    if first.__class__ is Empty:
        return all(
            value.__class__ is Empty and value.dimension == first.dimension for value in values
        )
    return Empty not in map(type, values)


class Guided(Generic[V]):
    """An iterator over the values of an input; for each value, the operator reads a group.

    The groups come from another input. For each bare stop of the values, the groups' input has an
    equal bare stop outside of any group. The operator calls ``groups.passed`` for every element of
    a group, including the last one.
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
        """Pass bare stops outside of groups on to ``sink``; drop them if it is None.

        ``inner`` is the number of the output's dimensions inside the dimensions that both inputs
        have. If ``held``, an element keeps its slot until ``take``, and a bare stop until it is
        passed on. Otherwise elements are dequeued when they are returned.
        """
        self._ports: Final = ports
        self._values: Final = values
        self._groups: Final = groups
        self._sink: Final = sink
        self._inner: Final = inner
        self._held: Final = held
        # With a single group, no stop outside the group has to be matched.
        self._one_group: Final = not groups.outer_dimensions
        self._begun = False

    @property
    def memory(self) -> tuple[object, ...]:
        """The state that later elements depend on."""
        return self._values.memory, self._groups.memory, self._begun

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> V:
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
        self._values.source.take()

    async def _pass_on(self) -> None:
        """Read the groups' bare stop that belongs to the values' bare stop."""
        values, groups = self._values, self._groups
        groups.passed(await groups.source.receive())
        if groups.empty_dimension != values.empty_dimension:
            raise differ(self._ports, values, groups)
        await self._send()

    async def _settle(self) -> None:
        """Read the side with the lower stop until both have closed the same dimensions."""
        values, groups = self._values, self._groups
        while values.level != groups.level:
            low, high = sorted((values, groups), key=lambda track: track.level)
            await closing(self._ports, low, high)
            low.source.take()
            if low is groups:
                await self._send()

    async def _send(self) -> None:
        empty = self._groups.empty_dimension
        if self._sink is not None and empty is not None:
            inner = self._inner
            await self._sink.send_bare(self._groups.level + inner, empty + inner)

    async def _end(self) -> None:
        values, groups = self._values, self._groups
        groups.passed(await groups.source.peek())
        if groups.element is not None:
            values.passed(None)
            raise differ(self._ports, values, groups)


class Track:
    """The position of an operator in one of its inputs.

    Attributes:
        element: the last element that was read; None before the first and at the end.
        stop: the number of dimensions that the element closes; -1 without an element.
        level: the number of closed dimensions outside of sub-tensors; below 0 in a sub-tensor.
    """

    __slots__ = ("_inner", "_place", "element", "level", "port", "source", "stop")

    def __init__(self, ports: Ports, port: int, inner: int = 0) -> None:
        """Start before the first element of an input with sub-tensors of ``inner`` dimensions."""
        self.port: Final = port
        self.source: Final = ports.inputs[port]
        self.element: Element | None = None
        self.stop = -1
        self.level = 0
        self._inner = inner
        self._place = [0] * len(ports.input_types[port].shape)

    def passed(self, element: Element | None) -> None:
        """Move to ``element``; None is the end."""
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
    def memory(self) -> tuple[int, int | None]:
        """The last stop, and its empty dimension.

        The place is left out, since only errors use it.
        """
        return self.stop, self.empty_dimension

    @property
    def outer_dimensions(self) -> int:
        return len(self._place) - self._inner

    @property
    def is_outside(self) -> bool:
        """Whether the element is a bare stop outside of a sub-tensor."""
        dimension = self.empty_dimension
        return dimension is not None and dimension >= 0

    @property
    def empty_dimension(self) -> int | None:
        """The empty dimension of a bare stop, outside of a sub-tensor; None for a value."""
        if self.element is None or not isinstance(self.element[0], Empty):
            return None
        return self.element[0].dimension - self._inner

    @property
    def described(self) -> str:
        producer = self.source.producer.name
        if self.element is None:
            return f"the end of {producer} at {self._place[::-1]}"
        value, stop = self.element
        what = str(value)
        if isinstance(value, Empty):
            what = f"an empty dimension {value.dimension}"
        closes = "1 dimension" if stop == 1 else f"{stop} dimensions"
        return f"{what} at {self._place[::-1]} of {producer} closes {closes}"


async def closing(ports: Ports, low: Track, high: Track) -> None:
    """Peek the bare stop with which ``low`` has to continue, since ``high`` closes more.

    The bare stop closes the next open dimension of ``low``.
    """
    element = await low.source.peek()
    if element is not None:
        value = element[0]
        if isinstance(value, Empty) and value.dimension == low.stop:
            low.passed(element)
            return
    raise differ(ports, low, high)


def differ(ports: Ports, *tracks: Track) -> OperatorError:
    """Return the error for inputs with different structures at ``tracks``."""
    in_order = sorted(tracks, key=lambda track: track.port)
    found = " and ".join(track.described for track in in_order)
    return ports.failure(f"{found}: expected equal structures")

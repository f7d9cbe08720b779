"""Sources of fixed integers and selectors, and a Consumer of unused streams.

Metadata and Consumer: the authors' artifact (its metadata generator and its consumer context).
Selectors: Streaming Tensor Programs, arXiv 2511.07776v2, section 3.1 (selector streams).
RaggedIntegers: not in the paper; the same section defines ragged dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

# Any: users' lists hold anything until they are checked.
from typing import Annotated, Any

import numpy as np
from typing_extensions import override

from fabric import Selector, SelectorType, ShapeError, Stream, StreamType
from fabric.extend import Bounds, Empty, Operator, Ports, Rates, Wiring, Work, drop
from operators.streams.reading import Types
from operators.tiles.grid import positions
from operators.tiles.integers import INTEGER, MOST, integer


@dataclass(frozen=True)
class Metadata(Operator):
    """Emit every number of ``values``.

    Shapes:
        output: [1, *values.shape] of 1x1 tiles.

    Timing:
        Element k, counted from 0, is visible in cycle max(k, 1), or later if the channel is full.

    Attributes:
        values: integers of at least 0.

    Example:
        >>> with Program("example") as program:
        ...     lengths = Metadata(np.array([5, 0, 3]))()
        ...     Consumer()(lengths)
        >>> print(lengths.type)
        [1, 3] of 1x1 uint64
        >>> print(simulate(program).cycles)
        4
    """

    conducted = True

    values: np.ndarray

    def __call__(self) -> Stream:
        return self.wire()[0]

    @override
    def infer(self, wiring: Wiring) -> Types:
        values = self.values
        if not values.ndim or not np.issubdtype(values.dtype, np.integer):
            raise ShapeError(
                f"Metadata is given an array {list(values.shape)} of {values.dtype}: "
                "expected integers in at least one dimension"
            )
        if values.size and int(values.min()) < 0:
            raise ShapeError(f"Metadata is given {int(values.min())}: expected no number below 0")
        return (StreamType((1, *values.shape), INTEGER),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work()

    @override
    async def run(self, ports: Ports) -> None:
        sink, start = ports.sink, ports.start
        numbers = self.values.reshape(math.prod(self.values.shape)).tolist()
        for cycle, (_, stop, empty_dimension) in enumerate(positions(self.values.shape)):
            if empty_dimension is not None:
                await sink.send_bare(stop, empty_dimension)
            else:
                await sink.send_at((integer(numbers[cycle]), stop), start + cycle)


def mean_of_metadata(stream: Stream) -> Fraction | None:
    """Return the mean of the integers of ``stream`` if a Metadata emits them, otherwise None."""
    source = stream.node.operator if stream.node is not None else None
    if not isinstance(source, Metadata):
        return None
    return Fraction(sum(source.values.ravel().tolist()), max(1, source.values.size))


@dataclass(frozen=True)
class RaggedIntegers(Operator):
    """Emit the numbers of ``lists``.

    Shapes:
        output: [1, len(lists), n] of 1x1 tiles, n ragged.

    Timing:
        One cycle per element.

    Attributes:
        lists: each integer is at least 0; a list may be empty.

    Example:
        >>> with Program("example") as program:
        ...     places = RaggedIntegers([[0, 3], [], [7]])()
        ...     Consumer()(places)
        >>> print(places.type)
        [1, 3, D_ragged_integers_1~] of 1x1 uint64
        >>> print(simulate(program).elements)
        3
    """

    conducted = True

    lists: Sequence[Sequence[int]]

    def __call__(self) -> Stream:
        return self.wire()[0]

    @override
    def infer(self, wiring: Wiring) -> Types:
        lists: Sequence[Sequence[Any]] = self.lists
        for place, numbers in enumerate(lists):
            for number in numbers:
                whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
                if not whole or not 0 <= number <= MOST:
                    raise ShapeError(
                        f"RaggedIntegers is given {number!r} in list {place}: "
                        f"expected integers from 0 to {MOST:,}"
                    )
        mean = Fraction(sum(map(len, lists)), max(1, len(lists)))
        length = wiring.symbol(f"D_{wiring.node_name}", ragged=True, size=mean)
        return (StreamType((1, len(lists), length), INTEGER),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(cycles=outputs[0].count - 1)

    @override
    async def run(self, ports: Ports) -> None:
        sink, unit, lists = ports.sink, ports.unit, self.lists
        if not lists:
            await sink.send_bare(2, 1)
        for number, numbers in enumerate(lists):
            closing = 2 if number == len(lists) - 1 else 1
            if not numbers:
                await sink.send_bare(closing, 0)
            for place, each in enumerate(numbers):
                await sink.send((integer(each), closing if place == len(numbers) - 1 else 0))
                unit.charge(1)


@dataclass(frozen=True)
class Selectors(Operator):
    """Emit one selector for every row of ``choice``, one per cycle.

    Shapes:
        output: [1, *choice.shape[:-1]] of selectors.

    Timing:
        One cycle per element.

    Attributes:
        choice: integers [..., k]; each row has the k different streams that a selector names.
        width: number of streams to select from.

    Example:
        >>> with Program("example") as program:
        ...     route = Selectors(np.array([[0, 2], [1, 2]]), width=3)()
        ...     Consumer()(route)
        >>> print(route.type)
        [1, 2] of selector of 3
        >>> print(simulate(program).cycles)
        3
    """

    conducted = True

    choice: np.ndarray
    width: Annotated[int, Bounds(0)]

    def __call__(self) -> Stream:
        return self.wire()[0]

    @override
    def infer(self, wiring: Wiring) -> Types:
        choice = self.choice
        if choice.ndim < 2 or not np.issubdtype(choice.dtype, np.integer):
            raise ShapeError(
                f"Selectors is given an array {list(choice.shape)} of {choice.dtype}: "
                "expected integers [..., k]"
            )
        if choice.size and not 0 <= int(choice.min()) <= int(choice.max()) < self.width:
            raise ShapeError(
                f"Selectors names streams {int(choice.min())} to {int(choice.max())}: "
                f"expected 0 to {self.width - 1}"
            )
        ascending = np.sort(choice, axis=-1)
        twice = np.argwhere(ascending[..., 1:] == ascending[..., :-1])
        if len(twice):
            place = tuple(twice[0].tolist())
            raise ShapeError(
                f"Selectors names stream {ascending[place]} twice in row {list(place[:-1])}: "
                "expected each stream at most once"
            )
        return (StreamType((1, *choice.shape[:-1]), SelectorType(self.width, choice.shape[-1])),)

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(cycles=outputs[0].count - 1)

    @override
    async def run(self, ports: Ports) -> None:
        sink, unit = ports.sink, ports.unit
        shape = self.choice.shape[:-1]
        rows = self.choice.reshape(math.prod(shape), self.choice.shape[-1])
        for number, (_, stop, empty_dimension) in enumerate(positions(shape)):
            if empty_dimension is not None:
                await sink.send_bare(stop, empty_dimension)
                continue
            hits = tuple(sorted(rows[number].tolist()))
            await sink.send((Selector(hits, self.width), stop))
            unit.charge(1)


@dataclass(frozen=True)
class Consumer(Operator):
    """Dequeue every element of a stream.

    Shapes:
        source: [D_a, ..., D_0] of anything.

    Timing:
        One cycle per element.

    Example:
        >>> with Program("example") as program:
        ...     Consumer()(Metadata(np.arange(100))())
        >>> print(simulate(program).cycles)
        101
    """

    conducted = turns = carries_numbers = True

    def __call__(self, source: Stream) -> None:
        self.wire(source)

    @override
    def infer(self, wiring: Wiring, source: Stream) -> Types:
        return ()

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        return Work(cycles=inputs[0].count, last_cycles=1)

    @override
    async def run(self, ports: Ports) -> None:
        while (element := await ports.source.receive()) is not None:
            drop(element[0], ports.unit.now)
            if not isinstance(element[0], Empty):
                ports.unit.charge(1)
            ports.turn()

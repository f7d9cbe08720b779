"""Streams for tests: nested lists in and out, drawn by hypothesis, many small cases in one program.

A tensor of d dimensions is a nested list; ``encode`` makes stream elements of it and ``decode``
turns them back. What a test draws is a string of bytes, from which ``Choices`` takes one decision
after the other: that is cheap, and hypothesis shrinks it well, 0 being always the simplest choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np
from typing_extensions import override

from fabric import (
    Dim,
    Program,
    Report,
    Selector,
    Stream,
    StreamType,
    Tile,
    TileType,
    simulate,
)
from fabric.extend import Element, Empty, Ports, ValueType, Wiring
from fabric.graph.values.dims import symbol
from tests.bases import Sink, Source
from tests.definitions import at_depth
from tests.own import Anything

__all__ = [
    "FLOAT",
    "NUMBER",
    "Case",
    "Choices",
    "Collect",
    "Drawn",
    "Emit",
    "decode",
    "draw",
    "encode",
    "number_in",
    "ragged",
    "run_cases",
    "selector",
    "tile",
]

T = TypeVar("T")

NUMBER = Anything()
"""The type of values an operator does not look at: plain numbers, in these tests."""

_DEPTHS = (2, 1, 3, 1000)
_GAPS = ((0,), (1,), (0, 0, 5), (7, 0), (3,))

FLOAT = TileType(1, 1, np.dtype(np.float32))


def encode(tensor: Any, dims: int, late: Callable[[], bool] = lambda: False) -> list[Element]:
    """Return the stream of a tensor of ``dims`` dimensions.

    Args:
        tensor: nested lists.
        dims: at least 1.
        late: asked for every part that is not empty whether a bare stop of its own closes it.
    """
    elements: list[Element] = []
    for part in tensor:
        elements += _closed(part, dims - 1, late)
    return elements


def _closed(part: Any, dims: int, late: Callable[[], bool]) -> list[Element]:
    if not dims:
        return [(part, 0)]
    elements = [element for inner in part for element in _closed(inner, dims - 1, late)]
    if not elements or late():
        return [*elements, (Empty(dims - 1), dims)]
    value, _ = elements.pop()
    return [*elements, (value, dims)]


def decode(elements: Sequence[Element], dims: int) -> Any:
    """Return the tensor of ``dims`` dimensions that a stream carries; the stream is well formed."""
    parts: list[list[Any]] = [[] for _ in range(dims)]
    for value, stop in elements:
        first = 0
        if isinstance(value, Empty):
            first = value.dimension
            assert stop > first, f"{value} with a stop of {stop}"
        else:
            parts[0].append(value)
        assert stop < dims, f"a stop of {stop} in {dims} dimensions"
        assert not any(parts[:first]), f"{value} inside of an open dimension"
        for level in range(first, stop):
            parts[level + 1].append(parts[level])
            parts[level] = []
    assert not any(parts[:-1]), "the stream ends inside of a dimension"
    return parts[-1]


class Choices:
    """Decisions taken from bytes; once they are used up, the simplest."""

    def __init__(self, data: bytes) -> None:
        """Take decisions from ``data``."""
        self._left = iter(data)

    def below(self, bound: int) -> int:
        """Return a number from 0 to ``bound`` - 1."""
        return next(self._left, 0) % bound

    def pick(self, options: Sequence[T]) -> T:
        """Return one of ``options``, the first being the simplest."""
        return options[self.below(len(options))]

    def maybe(self) -> bool:
        """Return whether; a third of the time."""
        return self.below(3) == 2


@dataclass
class Drawn:
    """A tensor that was drawn, and what is known of its shape."""

    tensor: Any
    shape: tuple[Dim, ...]

    @property
    def dims(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)


@cache
def ragged(number: int) -> Dim:
    """Return a symbol for a ragged dimension."""
    return symbol(f"R{number}", ragged=True)


def draw(
    choices: Choices,
    dims: int,
    value: Callable[[int], Any] = lambda number: number,
    *,
    fixed: Sequence[int | None] = (),
    first: int = 0,
) -> Drawn:
    """Draw a tensor, some dimensions of size 0 and some ragged.

    Args:
        choices: what to draw from.
        dims: how many dimensions.
        value: from the number of a value to the value.
        fixed: sizes of the innermost dimensions, None where they are drawn.
        first: number of the first ragged symbol; tensors that share symbols share sizes.
    """
    given = [None] * (dims - len(fixed)) + list(fixed)
    sizes: list[int | None] = []
    for size in given:
        drawn = choices.pick((2, 1, 3, 0, None, 2, 4, 1)) if size is None else size
        sizes.append(drawn if sizes or drawn is not None else 2)
    count = iter(range(1 << 30))

    def part(axis: int) -> Any:
        if axis == dims:
            return value(next(count))
        size = sizes[axis]
        return [part(axis + 1) for _ in range(choices.below(4) if size is None else size)]

    shape = tuple(ragged(first + axis) if size is None else size for axis, size in enumerate(sizes))
    return Drawn(part(0), shape)


@dataclass(frozen=True)
class Emit(Source):
    """Send elements, charging ``gaps`` in turn before each."""

    type: StreamType
    elements: Sequence[Element]
    gaps: Sequence[int] = (0,)

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (self.type,)

    @override
    async def run(self, ports: Ports) -> None:
        gaps = self.gaps
        for number, (value, stop) in enumerate(self.elements):
            ports.unit.charge(gaps[number % len(gaps)])
            if isinstance(value, Empty):
                await ports.sink.send_bare(stop, value.dimension)
            else:
                await ports.sink.send((value if ports.functional else _without_data(value), stop))


def _without_data(value: Any) -> Any:
    """Return what stands for ``value`` in timing mode, where only integers have data."""
    if isinstance(value, Tile) and value.dtype.kind not in "biu":
        value = copy(value)
        value.data = None
        return value
    return tuple(map(_without_data, value)) if type(value) is tuple else value


@dataclass(frozen=True)
class Collect(Sink):
    """Keep the elements of a stream in ``seen``, charging ``gaps`` in turn after each."""

    seen: list[Any]
    gaps: Sequence[int] = (1,)

    @override
    async def run(self, ports: Ports) -> None:
        gaps = self.gaps
        while (element := await ports.source.receive()) is not None:
            self.seen.append(element)
            ports.unit.charge(gaps[len(self.seen) % len(gaps)])


@dataclass
class Case:
    """Operators on drawn streams.

    Attributes:
        choices: what further decisions are taken from: latencies, depths, late closings.
        inputs: the tensors and the types of their values.
        wire: from the input streams to the outputs.
        expected: the tensors of the outputs, by the definition.
        plain: from a value of an output to what ``expected`` has in its place.
        normal: applied to both tensors of each output before they are compared.
        shallow: channels may be; else they hold everything.
        stores: what is stored in the end, by name.
    """

    choices: Choices
    inputs: Sequence[tuple[Drawn, ValueType]]
    wire: Callable[..., Stream | Sequence[Stream]]
    expected: Sequence[Any]
    plain: Callable[[Any], Any] = lambda value: value
    normal: Callable[[Any], Any] = lambda tensor: tensor
    shallow: bool = True
    stores: Mapping[str, Any] = field(default_factory=dict)


def run_cases(cases: Sequence[Case], mode: str = "functional") -> Report:
    """Run all cases in one program and compare each output with its definition."""
    depths: dict[str, int] = {}
    seen: list[list[tuple[int, list[Element]]]] = []
    with Program("cases", mode=mode) as program:
        for case in cases:
            before = len(program.nodes)
            seen.append(_wired(case))
            for name, wanted in case.stores.items():
                output: dict[str, Any] = {name: lambda wanted=wanted: wanted}
                program.expect(**output)
            for node in program.nodes[before:]:
                for port in range(len(node.inputs)):
                    depth = case.choices.pick(_DEPTHS) if case.shallow else _DEPTHS[-1]
                    depths[f"{node.name}.{port}"] = depth
    report = simulate(program, depths=depths)
    assert (report.status, report.error) == ("completed", None)
    if mode == "functional":
        assert report.verified is not False, report.warnings
        for case, outputs in zip(cases, seen, strict=True):
            _compare(case, outputs)
    return report


def _wired(case: Case) -> list[tuple[int, list[Element]]]:
    choices = case.choices
    streams = [
        Emit(
            StreamType(drawn.shape, value),
            encode(drawn.tensor, drawn.dims, choices.maybe),
            choices.pick(_GAPS),
        )()
        for drawn, value in case.inputs
    ]
    outputs = case.wire(*streams)
    result = []
    for stream in (outputs,) if isinstance(outputs, Stream) else outputs:
        elements: list[Element] = []
        Collect(elements, choices.pick(_GAPS))(stream)
        result.append((len(stream.shape), elements))
    return result


def _compare(case: Case, outputs: Sequence[tuple[int, list[Element]]]) -> None:
    found = [at_depth(case.plain, dims, decode(elements, dims)) for dims, elements in outputs]
    expected = list(map(case.normal, case.expected))
    assert expected == list(map(case.normal, found)), (
        f"{[(drawn.shape, drawn.tensor) for drawn, _ in case.inputs]}"
    )


def tile(number: int) -> Tile:
    """Return the 1x1 tile that carries ``number``."""
    return Tile(1, 1, FLOAT.dtype, np.array([[number]], FLOAT.dtype))


def number_in(value: Tile) -> Any:
    """Return the number a 1x1 tile carries; None for padding."""
    assert value.data is not None
    return value.data[0, 0].item() if value.valid_rows else None


def selector(width: int) -> Callable[[Any], Selector]:
    """Return what makes selectors of ``width`` out of sets."""
    return lambda hits: Selector(tuple(sorted(hits)), width)

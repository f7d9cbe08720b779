"""Streams for tests: nested lists drawn by hypothesis, with many small cases in one program.

A tensor of d dimensions is a nested list; ``encode`` makes stream elements from it, and ``decode``
reverses this. A test draws a string of bytes, from which ``Choices`` takes one decision after
another. This is fast, and hypothesis shrinks it well, because 0 is always the simplest choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np
from typing_extensions import override

import fabric as fab
from fabric.extend import Element, Empty, Ports, ValueType, Wiring
from fabric.graph.values.dims import symbol
from tests.bases import Sink, Source
from tests.definitions import at_depth
from tests.own import Anything

T = TypeVar("T")

NUMBER = Anything()
"""The type of values that an operator does not read: plain numbers, in these tests."""

_DEPTHS = (2, 1, 3, 1000)
_GAPS = ((0,), (1,), (0, 0, 5), (7, 0), (3,))

FLOAT = fab.TileType(1, 1, np.dtype(np.float32))


def encode(tensor: Any, dims: int, late: Callable[[], bool] = lambda: False) -> list[Element]:
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
    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def below(self, bound: int) -> int:
        return next(self._left, 0) % bound

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def maybe(self) -> bool:
        return self.below(3) == 2


@dataclass
class Drawn:
    tensor: Any
    shape: tuple[fab.Dim, ...]

    @property
    def dims(self) -> int:
        return len(self.shape)


@cache
def ragged(number: int) -> fab.Dim:
    return symbol(f"R{number}", ragged=True)


def draw(
    choices: Choices,
    dims: int,
    value: Callable[[int], Any] = lambda number: number,
    *,
    fixed: Sequence[int | None] = (),
    first: int = 0,
) -> Drawn:
    wanted_sizes = [None] * (dims - len(fixed)) + list(fixed)
    sizes: list[int | None] = []
    for size in wanted_sizes:
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
    type: fab.StreamType
    elements: Sequence[Element]
    gaps: Sequence[int] = (0,)

    @override
    def infer(self, wiring: Wiring, *inputs: fab.Stream) -> tuple[fab.StreamType, ...]:
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
    if isinstance(value, fab.Tile) and value.dtype.kind not in "biu":
        value = copy(value)
        value.data = None
        return value
    return tuple(map(_without_data, value)) if type(value) is tuple else value


@dataclass(frozen=True)
class Collect(Sink):
    seen: list[Any]
    gaps: Sequence[int] = (1,)

    @override
    async def run(self, ports: Ports) -> None:
        gaps = self.gaps
        self.seen.clear()
        while (element := await ports.source.receive()) is not None:
            self.seen.append(element)
            ports.unit.charge(gaps[len(self.seen) % len(gaps)])


@dataclass
class Case:
    choices: Choices
    inputs: Sequence[tuple[Drawn, ValueType]]
    wire: Callable[..., fab.Stream | Sequence[fab.Stream]]
    expected: Sequence[Any]
    plain: Callable[[Any], Any] = lambda value: value
    normal: Callable[[Any], Any] = lambda tensor: tensor
    shallow: bool = True
    stores: Mapping[str, Any] = field(default_factory=dict)


def run_cases(cases: Sequence[Case], mode: str = "functional") -> fab.Report:
    depths: dict[str, int] = {}
    seen: list[list[tuple[int, list[Element]]]] = []
    with fab.Program("cases", mode=mode) as program:
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
    report = fab.simulate(program, depths=depths)
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
            fab.StreamType(drawn.shape, value),
            encode(drawn.tensor, drawn.dims, choices.maybe),
            choices.pick(_GAPS),
        )()
        for drawn, value in case.inputs
    ]
    outputs = case.wire(*streams)
    result = []
    for stream in (outputs,) if isinstance(outputs, fab.Stream) else outputs:
        elements: list[Element] = []
        Collect(elements, choices.pick(_GAPS))(stream)
        result.append((len(stream.shape), elements))
    return result


def _compare(case: Case, outputs: Sequence[tuple[int, list[Element]]]) -> None:
    results = [at_depth(case.plain, dims, decode(elements, dims)) for dims, elements in outputs]
    expected = list(map(case.normal, case.expected))
    assert expected == list(map(case.normal, results)), (
        f"{[(drawn.shape, drawn.tensor) for drawn, _ in case.inputs]}"
    )


def tile(number: int) -> fab.Tile:
    return fab.Tile(1, 1, FLOAT.dtype, np.array([[number]], FLOAT.dtype))


def number_in(value: fab.Tile) -> Any:
    assert value.data is not None
    return value.data[0, 0].item() if value.valid_rows else None


def selector(width: int) -> Callable[[Any], fab.Selector]:
    return lambda hits: fab.Selector(tuple(sorted(hits)), width)

"""Types of a program's streams compared with the elements that a run carried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from fabric import Dim, Program, TileType, TupleType
from fabric.analysis.symbolic.substitution import Substitution
from fabric.extend import BufferReference, BufferType, Element
from fabric.graph.values.dims import is_ragged
from fabric.graph.values.expression import Symbol
from fabric.graph.values.stream_type import ValueType
from tests import definitions
from tests.operators.driving import Collect, decode

Sizes = dict[Symbol, "int | Fraction"]


class Watched:
    def __init__(self, program: Program) -> None:
        self._seen: list[tuple[str, tuple[Dim, ...], ValueType, list[Element]]] = []
        with program:
            for node in tuple(program.nodes):
                for stream in node.outputs:
                    elements: list[Element] = []
                    Collect(elements, (0,))(stream)
                    self._seen.append((stream.name, stream.shape, stream.value, elements))

    def sizes(self) -> Sizes:
        measured: defaultdict[Dim, dict[str, list[int]]] = defaultdict(dict)
        for name, dim, sizes in self._dims():
            if sizes:
                measured[dim][name] = sizes
        true_sizes: Sizes = {}
        for dim, places in measured.items():
            if isinstance(dim, Symbol):
                true_sizes[dim] = _size(dim, places)
        at = Substitution(true_sizes)
        for dim, places in measured.items():
            wanted = at.dim(dim)
            assert isinstance(wanted, int | Fraction), f"no stream shows {dim} of {places}"
            for name, sizes in places.items():
                assert (name, dim, _size(dim, {name: sizes})) == (name, dim, wanted)
        return true_sizes

    def _dims(self) -> Iterator[tuple[str, Dim, list[int]]]:
        for name, shape, value, elements in self._seen:
            tensor = decode(elements, len(shape))
            yield from _groups(name, shape, [tensor])
            yield from _inside(name, value, definitions.leaves(tensor, len(shape)))


def _groups(name: str, shape: tuple[Dim, ...], tensors: list[Any]) -> Iterator[Any]:
    for axis, dim in enumerate(shape):
        yield f"{name} axis {axis}", dim, list(map(len, tensors))
        tensors = [part for tensor in tensors for part in tensor]


def _inside(name: str, value: ValueType, elements: list[Any]) -> Iterator[Any]:
    if isinstance(value, TileType):
        yield f"{name} rows", value.rows, [tile.rows for tile in elements]
        yield f"{name} cols", value.cols, [tile.cols for tile in elements]
    elif isinstance(value, TupleType):
        for place, item in enumerate(value.items):
            yield from _inside(f"{name} item {place}", item, [each[place] for each in elements])
    elif isinstance(value, BufferType):
        dims = len(value.shape)
        buffers = [_buffer(buffer) for buffer in elements]
        yield from _groups(f"{name} buffer", value.shape, buffers)
        tiles = [tile for buffer in buffers for tile in definitions.leaves(buffer, dims)]
        yield from _inside(f"{name} buffer", value.tile, tiles)


def _buffer(buffer: BufferReference) -> Any:
    (tensor,) = decode([*buffer.elements], buffer.rank + 1)
    return tensor


def _size(dim: Dim, places: dict[str, list[int]]) -> int | Fraction:
    if is_ragged(dim):
        means = {name: Fraction(sum(sizes), len(sizes)) for name, sizes in places.items()}
    else:
        for name, sizes in places.items():
            assert len(set(sizes)) == 1, f"{name} is {dim}, and has groups of {sizes}"
        means = {name: Fraction(sizes[0]) for name, sizes in places.items()}
    assert len(set(means.values())) == 1, f"{dim} is not of one size: {means}"
    (mean, *_) = means.values()
    return int(mean) if mean.denominator == 1 else mean

"""Random well-typed programs, each with its definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import operators as op
from fabric import Program, SelectorType, Stream, StreamType, Tile, TileType
from fabric.extend import Element
from tests import definitions
from tests.operators.driving import Choices, Collect, Emit, draw, encode, ragged, selector

VALUE = TileType(1, 1, np.dtype(np.float64))

_LARGE = 150
"""A stream with more elements is not enlarged."""


@dataclass
class Meant:
    stream: Stream
    tensor: Any

    @property
    def dims(self) -> int:
        return len(self.stream.shape)

    @property
    def size(self) -> int:
        return len(definitions.leaves(self.tensor, self.dims))


class Random:
    def __init__(self, choices: Choices, *, functional: bool, operators: int = 30) -> None:
        self._choices = choices
        self._functional = functional
        self._live: list[Meant] = []
        self._has_padding = False
        self.ends: list[tuple[list[Element], int, Any]] = []
        steps: tuple[Callable[[Meant], Iterator[Meant]], ...] = (
            self._flatten,
            self._reshape,
            self._promote,
            self._repeat,
            self._double,
            self._accumulate_and_expand,
            self._scan,
            self._route,
            self._deal,
            self._buffer,
            self._nested_expand,
            self._begin,
            self._split,
            self._retile,
            self._join,
            self._scatter,
        )
        with Program("random") as self.program:
            for _ in range(1 + choices.below(2)):
                self._source()
            sources = len(self.program.nodes)
            for _ in range(operators):
                if len(self.program.nodes) - sources > operators - 6:
                    break
                at = choices.below(len(self._live))
                step = choices.pick(steps)
                self._live[at : at + 1] = step(self._live[at])
            for each in self._live:
                seen: list[Element] = []
                Collect(seen, choices.pick(((1,), (0,), (9, 0))))(each.stream)
                self.ends.append((seen, each.dims, each.tensor))

    def _source(self) -> None:
        choices = self._choices
        first = 10 * len(self.program.nodes)
        drawn = draw(choices, 1 + choices.below(3), float, first=first)
        if not definitions.leaves(drawn.tensor, drawn.dims) and choices.below(4):
            drawn = draw(choices, 1 + choices.below(3), float, first=first)
        made = definitions.map_values(self._tile, drawn.dims, drawn.tensor)
        elements = encode(made, drawn.dims, choices.maybe)
        emit = Emit(StreamType(drawn.shape, VALUE), elements, choices.pick(((0,), (1,), (0, 20))))
        self._live.append(Meant(emit(), drawn.tensor))

    def _tile(self, number: float) -> Tile:
        return Tile(1, 1, VALUE.dtype, np.array([[number]]) if self._functional else None)

    def _flatten(self, of: Meant) -> Iterator[Meant]:
        if of.dims < 2:
            yield of
            return
        inner = self._choices.below(of.dims - 1)
        tensor = definitions.flatten(inner, inner + 1, of.dims, of.tensor)
        yield Meant(op.Flatten(inner, inner + 1)(of.stream), tensor)

    def _reshape(self, of: Meant) -> Iterator[Meant]:
        chunk = 1 + self._choices.below(3)
        if of.dims > 4:
            yield of
            return
        data, _ = op.Reshape(chunk, pad=0.0)(of.stream)
        self._has_padding = True
        yield Meant(data, definitions.reshape(chunk, 0, 0.0, of.dims, of.tensor))

    def _promote(self, of: Meant) -> Iterator[Meant]:
        if of.dims > 4:
            yield of
            return
        inside = self._choices.below(of.dims + 1)
        yield Meant(op.Promote(inside)(of.stream), definitions.promote(inside, of.dims, of.tensor))

    def _repeat(self, of: Meant) -> Iterator[Meant]:
        if of.dims > 4 or of.size > _LARGE:
            yield of
            return
        count = 1 + self._choices.below(3)
        yield Meant(op.Repeat(count)(of.stream), definitions.repeat(count, of.dims, of.tensor))

    def _double(self, of: Meant) -> Iterator[Meant]:
        if self._choices.maybe():
            joined = op.Map(op.Add())(
                op.Zip()(of.stream, op.Map(op.Maximum())(of.stream, of.stream))
            )
        else:
            joined = op.Map(op.Add())(of.stream, of.stream)
        yield Meant(joined, definitions.map_values(lambda value: value + value, of.dims, of.tensor))

    def _accumulate_and_expand(self, of: Meant) -> Iterator[Meant]:
        if of.dims < 2:
            yield of
            return
        rank = 1 + self._choices.below(of.dims - 1)
        sums = Meant(
            op.Accum(op.Sum(), rank)(of.stream),
            definitions.accum(lambda a, b: a + b, 0.0, of.dims, rank, of.tensor),
        )
        if self._choices.maybe():
            yield sums
            return
        ones = sums
        for _ in range(rank):
            ones = Meant(op.Promote(0)(ones.stream), definitions.promote(0, ones.dims, ones.tensor))
        spread = definitions.expand(rank, of.dims, ones.tensor, of.tensor)
        total = definitions.map_values(lambda a, b: a + b, of.dims, of.tensor, spread)
        yield Meant(op.Map(op.Add())(of.stream, op.Expand(rank)(ones.stream, of.stream)), total)

    def _scan(self, of: Meant) -> Iterator[Meant]:
        if of.dims < 2:
            yield of
            return
        rank = 1 + self._choices.below(of.dims - 1)
        tensor = definitions.scan(lambda a, b: a + b, 0.0, of.dims, rank, of.tensor)
        yield Meant(op.Scan(op.Sum(), rank)(of.stream), tensor)

    def _route(self, of: Meant) -> Iterator[Meant]:
        choices = self._choices
        rank = choices.below(of.dims)
        width = 1 + choices.below(3)
        steered = of.dims - rank
        if of.dims > 4 or of.size > _LARGE:
            yield of
            return
        sets = definitions.at_depth(
            lambda _: {each for each in range(width) if choices.below(2)}, steered, of.tensor
        )
        made = definitions.map_values(selector(width), steered, sets)
        kind = StreamType(of.stream.shape[:steered], SelectorType(width))
        selectors = Emit(kind, encode(made, steered, choices.maybe))()
        parts = op.Partition(width, rank)(of.stream, selectors)
        doubled = [op.Map(op.Add())(part, part) for part in parts]

        def routed(part: Any, hits: set[int]) -> Any:
            return [definitions.map_values(twice, rank, part)] * len(hits)

        tensor = definitions.at_depth(routed, steered, of.tensor, sets)
        yield Meant(op.Reassemble(rank)(doubled, selectors), tensor)

    def _deal(self, of: Meant) -> Iterator[Meant]:
        consumers = 1 + self._choices.below(2)
        tensors = definitions.parallelize(consumers, of.tensor)
        streams = op.Parallelize(consumers, of.dims - 1)(of.stream)
        for stream, tensor in zip(streams, tensors, strict=True):
            yield Meant(stream, tensor)

    def _buffer(self, of: Meant) -> Iterator[Meant]:
        if not 2 <= of.dims <= 4 or of.size > _LARGE:
            yield of
            return
        buffers = op.Bufferize(1)(of.stream)
        count = 1 + self._choices.below(2)
        if self._choices.maybe():
            buffers = op.Promote(0)(buffers)
            outer = definitions.at_depth(lambda group: [group], of.dims - 1, of.tensor)
        else:
            outer = of.tensor
        dims = len(buffers.shape)
        once = definitions.streamify(outer, dims, 1, (count,), None)
        left, right = op.Streamify((count,))(buffers), op.Streamify((count,))(buffers)
        total = definitions.map_values(lambda value: value + value, dims + 2, once)
        yield Meant(op.Map(op.Add())(left, right), total)

    def _nested_expand(self, of: Meant) -> Iterator[Meant]:
        if of.dims > 3 or of.size > _LARGE // 4:
            yield of
            return
        guide = op.Repeat(2)(op.Repeat(2)(of.stream))
        inner = op.Expand(1)(op.Promote(0)(of.stream), op.Repeat(2)(of.stream))
        tensor = definitions.repeat(2, of.dims + 1, definitions.repeat(2, of.dims, of.tensor))
        yield Meant(op.Expand(1)(op.Promote(0)(inner), guide), tensor)

    def _begin(self, of: Meant) -> Iterator[Meant]:
        inner = [dim for dim in of.stream.shape[1:] if isinstance(dim, int) and dim > 0]
        if len(inner) + 1 < of.dims or of.size > _LARGE:
            yield of
            return
        count = 1 + self._choices.below(3)
        tensor = definitions.initial(5.0, count, inner, of.tensor, keep=False)
        yield Meant(op.Initial(5, count)(of.stream), tensor)

    def _split(self, of: Meant) -> Iterator[Meant]:
        chunk = 1 + self._choices.below(3)
        # SplitRows would also drop the padding of an earlier Reshape.
        if of.dims > 4 or self._has_padding:
            yield of
            return
        tensor = definitions.reshape(chunk, 0, None, of.dims, of.tensor)
        padded = Meant(op.Reshape(chunk, pad=0.0)(of.stream)[0], tensor)
        for each in self._moved(padded):
            valid = definitions.flat_map(
                lambda value: [] if value is None else [value], each.dims, each.tensor
            )
            yield Meant(op.FlatMap(op.SplitRows(valid_only=True))(each.stream), valid)

    def _retile(self, of: Meant) -> Iterator[Meant]:
        if of.dims < 2:
            yield of
            return
        rank = 1 + self._choices.below(of.dims - 1)
        groups = definitions.at_depth(
            lambda part: definitions.leaves(part, rank), of.dims - rank, of.tensor
        )
        for each in self._moved(Meant(op.Accum(op.RetileRow(), rank)(of.stream), groups)):
            rows = definitions.flat_map(lambda tile: tile, each.dims, each.tensor)
            yield Meant(op.FlatMap(op.SplitRows())(each.stream), rows)

    def _join(self, of: Meant) -> Iterator[Meant]:
        choices, dims = self._choices, of.dims
        if dims < 2 or of.size > _LARGE:
            yield of
            return
        left = definitions.at_depth(lambda group: [*range(len(group))], dims - 1, of.tensor)
        right = definitions.at_depth(
            lambda group: [each for each in range(len(group) + 2) if choices.below(2)],
            dims - 1,
            of.tensor,
        )
        numbered = op.Zip()(self._integers(left, of.stream.shape), of.stream)
        shape = (*of.stream.shape[:-1], ragged(10 * len(self.program.nodes)))
        joins: tuple[op.Intersect | op.Union, ...] = (op.Intersect(), op.Union(7.0))
        join = choices.pick(joins)
        _, kept, _ = join(numbered, self._integers(right, shape))

        def pair(coordinate: int, value: Any) -> tuple[int, Any]:
            return coordinate, value

        pairs = (
            definitions.map_values(pair, dims, left, of.tensor),
            definitions.map_values(pair, dims, right, right),
        )
        if isinstance(join, op.Union):
            yield Meant(kept, definitions.union(7.0, dims, *pairs)[1])
        else:
            yield Meant(kept, definitions.intersect(dims, *pairs)[1])

    def _scatter(self, of: Meant) -> Iterator[Meant]:
        choices, dims = self._choices, of.dims
        if dims < 2 or of.size > _LARGE:
            yield of
            return
        rank = 1 + choices.below(dims - 1)
        places = definitions.map_values(lambda _: choices.below(3), dims, of.tensor)
        addresses = self._integers(places, of.stream.shape)
        scatter = op.Scatter(3, rank=rank, banks=1 + choices.below(2), width=1 + choices.below(3))
        tensor = definitions.scatter(3, "add", 0.0, dims, rank, places, of.tensor)
        yield Meant(scatter(addresses, of.stream), tensor)

    def _integers(self, tensor: Any, shape: tuple[Any, ...]) -> Stream:
        made = definitions.map_values(op.integer, len(shape), tensor)
        elements = encode(made, len(shape), self._choices.maybe)
        return Emit(StreamType(shape, op.INTEGER), elements)()

    def _moved(self, of: Meant) -> Iterator[Meant]:
        steps = (lambda each: iter((each,)), self._flatten, self._promote, self._repeat,
                 self._route, self._deal, self._expand)  # fmt: skip
        yield from self._choices.pick(steps)(of)

    def _expand(self, of: Meant) -> Iterator[Meant]:
        choices = self._choices
        if of.dims > 4 or of.size > _LARGE // 4:
            yield of
            return
        guide = definitions.map_values(lambda _: [0.0] * choices.below(4), of.dims, of.tensor)
        shape = (*of.stream.shape, ragged(10 * len(self.program.nodes)))
        made = definitions.map_values(self._tile, of.dims + 1, guide)
        reference = Emit(StreamType(shape, VALUE), encode(made, of.dims + 1, choices.maybe))()
        ones = definitions.promote(0, of.dims, of.tensor)
        tensor = definitions.expand(1, of.dims + 1, ones, guide)
        yield Meant(op.Expand()(op.Promote(0)(of.stream), reference), tensor)


def twice(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(twice, value))
    return None if value is None else value + value

"""Pairs the tiles that a stream carried with the tiles that the program expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fabric.graph.arguments.described import refuse
from fabric.graph.values.value import Element, Empty, Tile
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.stream import Stream
from fabric.messages.place import Place
from fabric.messages.text import counted
from fabric.timing.engine.observer import Observer, Transferred, Watched

Index = tuple[int, ...]


class SentTiles(Observer):
    """Keeps the elements of expected streams, by node and port."""

    def __init__(self, plan: Plan) -> None:
        self.kept: dict[tuple[int, int], list[Element]] = {}
        self._edges = {
            number: (edge.producer.index, edge.output)
            for number, edge in enumerate(plan.edges)
            if edge.output in edge.producer.expected
        }

    @property
    def watches(self) -> bool:
        return bool(self._edges)

    def watch(self, channel: Watched) -> Transferred | None:
        stream = self._edges.get(channel.number)
        if stream is None:
            return None
        kept = self.kept[stream] = []
        return lambda element, *_: kept.append(element)

    def left_over(self, channel: Watched, element: Element, *_: object) -> None:
        if channel.number in self._edges:
            self.kept[self._edges[channel.number]].append(element)


class Pair(NamedTuple):
    """Found and expected arrays: of an output, or of each tile of a stream.

    Attributes:
        indices: the index of each found tile in its stream, outermost dimension first.
        misfit: a sentence about a tile or an empty tensor that is missing or extra, or a tile of
            another size; None if all fit.
    """

    found: list[Any]
    wanted: list[Any]
    indices: list[Index] | None = None
    misfit: str | None = None


def tiles_of(stream: Stream, sent: Sequence[Element], given: object, place: Place) -> Pair:
    """Return the ``sent`` tiles with the ``given`` tiles, which are expected at ``place``."""
    dims = len(stream.shape)
    items, leaves = dict(_sent_items(sent, dims)), dict(_leaves(stream, given, (), place))
    tiles = {index: tile for index, tile in items.items() if tile is not None}
    wanted = [array for index, array in leaves.items() if len(index) == dims]
    pair = Pair([tile.data for tile in tiles.values()], wanted, [*tiles])
    if [*items] != [*leaves]:
        return pair._replace(misfit=_misfit(items, leaves, dims))
    trimmed = []
    for (index, tile), numbers, array in zip(tiles.items(), pair.found, pair.wanted, strict=True):
        shape, valid = np.shape(array), (tile.valid_rows, tile.valid_cols)
        fits = [size in sizes for size, *sizes in zip(shape, numbers.shape, valid, strict=False)]
        if len(shape) != 2 or not all(fits):
            size = " x ".join(map(str, shape)) or "one number"
            misfit = (
                f"tile {list(index)} is {tile.rows} x {tile.cols}, valid {valid[0]} x {valid[1]}: "
                f"expected {size}"
            )
            return pair._replace(misfit=misfit)
        trimmed.append(numbers[: shape[0], : shape[1]])
    return pair._replace(found=trimmed)


def _sent_items(sent: Sequence[Element], dims: int) -> Iterator[tuple[Index, Tile | None]]:
    """Yield the tiles by index, and None for each empty tensor."""
    index = [0] * dims
    for value, stop in sent:
        if isinstance(value, Tile):
            yield tuple(index), value
        elif isinstance(value, Empty):
            yield tuple(index[: dims - 1 - value.dimension]), None
        index[dims - 1 - stop] += 1
        index[dims - stop :] = [0] * stop


def _leaves(stream: Stream, given: Any, at: Index, place: Place) -> Iterator[tuple[Index, Any]]:
    if len(at) == len(stream.shape):
        yield at, given
        return
    try:
        parts = list(given)
    except TypeError:
        refuse(
            f"expect of {stream.name} returns {type(given).__name__} at {list(at)}: expected "
            f"{counted(len(stream.shape), 'dimension')} of tiles, as {stream} has",
            place=place,
        )
    if not parts:
        yield at, None
    for number, part in enumerate(parts):
        yield from _leaves(stream, part, (*at, number), place)


def _misfit(found: Mapping[Index, object], wanted: Mapping[Index, object], dims: int) -> str:
    differing = [index for index in (*found, *wanted) if (index in found) != (index in wanted)]
    index = max(differing, key=len)
    what = "a tile" if len(index) == dims else "an empty tensor"
    if index in found:
        return f"has {what} {list(index)}: expected none there"
    return f"lacks {what} {list(index)}: expected one there"

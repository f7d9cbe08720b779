"""The tiles that a stream carried beside those expected, and how often numbers were rounded."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fabric.graph.values.block_scaled import BLOCK, block_format, numbers_of
from fabric.graph.values.fit import unit_of
from fabric.graph.values.stream_type import BufferType, TileType, TupleType, ValueType
from fabric.graph.values.value import Element, Tile
from fabric.graph.wiring.elaborate import Plan
from fabric.graph.wiring.mistakes import off_chip_tensor_of, rounded_in
from fabric.graph.wiring.operator import Node
from fabric.graph.wiring.stream import Stream
from fabric.messages.telling.errors import ProgramError
from fabric.messages.telling.place import Place
from fabric.messages.telling.wording import counted
from fabric.timing.engine.observer import Observer, Sent, Stamp, Transferred, Watched

__all__ = ["EXACT", "Roundings", "SentTiles", "least_unit", "roundings_of", "tiles_of", "worse"]

Index = tuple[int, ...]

_SUMS: Final = 2.0**-20
"""Units below this are of types that sums are kept in, which round at each summand."""

_LONG: Final = 16
"""So many units the sum of some thousand products is off by, at most."""


class SentTiles(Observer):
    """Keeps the elements of the streams that a program expects.

    Attributes:
        kept: by node and port.
    """

    def __init__(self, plan: Plan) -> None:
        """Watch the channels behind these streams."""
        self.kept: dict[tuple[int, int], list[Element]] = {}
        self._edges = {
            number: (edge.producer.index, edge.output)
            for number, edge in enumerate(plan.edges)
            if edge.output in edge.producer.expected
        }

    @property
    def watches(self) -> bool:
        """Whether there is such a stream."""
        return bool(self._edges)

    def watch(self, channel: Watched) -> Transferred | None:
        """Return what keeps the elements of a stream that is expected."""
        stream = self._edges.get(channel.number)
        if stream is None:
            return None
        kept = self.kept[stream] = []
        return lambda element, *_: kept.append(element)

    def left_over(
        self,
        channel: Watched,
        element: Element,
        sent: Sent,  # noqa: ARG002 - the fact counts
        seen: Stamp | None,  # noqa: ARG002 - the fact counts
        cycle: int,  # noqa: ARG002 - the fact counts
    ) -> None:
        """Keep what the reader did not want: it was sent all the same."""
        if channel.number in self._edges:
            self.kept[self._edges[channel.number]].append(element)


class Tiles(NamedTuple):
    """The tiles of a stream, found and wanted.

    Attributes:
        found, wanted: their numbers, one array a tile, of equal shapes unless there is a misfit.
        indices: where each tile found is in the stream, outermost dimension first.
        misfit: the first tile that only one of them has, or that differs in size; None without.
    """

    found: list[np.ndarray]
    wanted: list[Any]
    indices: list[Index]
    misfit: str | None


def tiles_of(stream: Stream, sent: Sequence[Element], given: object, place: Place) -> Tiles:
    """Return the tiles that were ``sent`` beside those that ``expect`` at ``place`` was given.

    Raises:
        ProgramError: what was given is not nested as deeply as the stream is.
    """
    tiles = list(_found(sent, len(stream.shape)))
    leaves = list(_leaves(stream, given, (), place))
    indices, found = [index for index, _ in tiles], [tile for _, tile in tiles]
    others, wanted = [index for index, _ in leaves], [array for _, array in leaves]
    if indices != others:
        return Tiles([_numbers(each) for each in found], wanted, indices, _misfit(indices, others))
    arrays = []
    for index, tile, array in zip(indices, found, wanted, strict=True):
        numbers, shape = _numbers(tile), np.shape(array)
        valid = (tile.valid_rows, tile.valid_cols)
        known = [
            shape[axis] in (numbers.shape[axis], valid[axis]) for axis in range(len(shape[:2]))
        ]
        if len(shape) != 2 or not all(known):
            size = " x ".join(map(str, shape)) or "one number"
            misfit = (
                f"tile {list(index)} is {tile.rows} x {tile.cols}, {valid[0]} x {valid[1]} of it "
                f"valid: expected {size}"
            )
            return Tiles([_numbers(each) for each in found], wanted, indices, misfit)
        arrays.append(numbers[: shape[0], : shape[1]])
    return Tiles(arrays, wanted, indices, None)


def _numbers(tile: Tile) -> np.ndarray:
    assert tile.data is not None
    return tile.data if block_format(tile.dtype) is None else numbers_of(tile.data)


def _found(sent: Sequence[Element], dims: int) -> Iterator[tuple[Index, Tile]]:
    """Yield the tiles with their places; an empty part of the stream has none."""
    index = [0] * dims
    for value, stop in sent:
        if isinstance(value, Tile):
            yield tuple(index), value
        index[dims - 1 - stop] += 1
        index[dims - stop :] = [0] * stop


def _leaves(stream: Stream, given: Any, at: Index, place: Place) -> Iterator[tuple[Index, Any]]:
    if len(at) == len(stream.shape):
        yield at, given
        return
    try:
        parts = list(given)
    except TypeError:
        raise ProgramError(
            f"expect of {stream.name} returns {type(given).__name__} at {list(at)}: expected "
            f"{counted(len(stream.shape), 'dimension')} of tiles, as {stream} has",
            file=place.file,
            line=place.line,
        ) from None
    for number, part in enumerate(parts):
        yield from _leaves(stream, part, (*at, number), place)


def _misfit(found: list[Index], wanted: list[Index]) -> str:
    others = set(wanted)
    more = next((index for index in found if index not in others), None)
    if more is not None:
        return f"has a tile {list(more)}: expected none there"
    missing = next(index for index in wanted if index not in set(found))
    return f"has no tile {list(missing)}: expected one there"


class Roundings(NamedTuple):
    """Roundings one after the other, on the way that has most.

    Attributes:
        unit: of the narrowest type on the way: from 1 to the next number; 0 where nothing rounds.
        times: so many roundings of that unit add as much; those of wider types hardly count.
        step: of the block-scaled types that numbers are rounded to on the way, from an element to
            the next one, as a part of it; of several the root of the sum of the squares. 0 without.
        ties: the share of numbers that are so close to the middle of two elements that what was
            rounded before decides which of them they become.
    """

    unit: float
    times: float
    step: float = 0.0
    ties: float = 0.0

    @property
    def variance(self) -> float:
        """The square of what they come to: roundings are independent, so their squares add."""
        return self.times * self.unit**2

    def then(self, unit: float, more: int) -> Roundings:
        """Return these and ``more`` of ``unit``."""
        if not unit or not more:
            return self
        widest = max(unit, self.unit)
        times = (self.variance + more * unit**2) / widest**2
        return self._replace(unit=widest, times=times)

    def to_blocks(self, step: float) -> Roundings:
        """Return these and a rounding to a block-scaled type.

        Whoever computes what is expected rounds to that type, too. The two differ only where
        numbers are at a tie, and what is exact has none that would be decided in two ways.
        """
        # A number that differs is in every sum over its block, and is so much of it at the root of
        # the mean square.
        before = math.sqrt(self.variance) + self.step * min(1.0, math.sqrt(BLOCK) * self.ties)
        if not before:
            return self
        ties = min(1.0, self.ties + before / (step / 2))
        return self._replace(step=math.hypot(self.step, step), ties=ties)


EXACT: Final = Roundings(0.0, 0.0)


def least_unit(unit: float) -> float:
    """Return what counts as the unit of a type, whose own is ``unit``: of a sum where it is one."""
    return unit * _LONG if unit < _SUMS else unit


def roundings_of(plan: Plan) -> dict[Node, Roundings]:
    """Return what the numbers that each node of ``plan`` sends or stores have gone through.

    What is written to off-chip memory and read again there has come the whole way. Of a circle
    each operator counts once: how often data go round it is not known.
    """
    known: dict[Node, Roundings] = {}
    before = _before(plan)
    entered: set[Node] = set()
    for last in plan.nodes:
        waiting = [last]
        while waiting:
            node = waiting[-1]
            missing = [each for each in before[node] if each not in entered]
            if node not in entered and missing:
                entered.add(node)
                waiting += missing
                continue
            entered.add(node)
            waiting.pop()
            if node not in known:
                come = [known[each] for each in before[node] if each in known]
                known[node] = _through(node, max(come, key=worse, default=EXACT))
    return known


def worse(roundings: Roundings) -> tuple[float, float, float]:
    """Return a key by which one way is worse than another."""
    return roundings.step, roundings.ties, roundings.variance


def _through(node: Node, come: Roundings) -> Roundings:
    if not node.outputs or node.operator.off_chip == "write":
        return come
    dtypes = [each for output in node.outputs for each in _dtypes(output.value)]
    count = rounded_in(node.operator)
    come = come.then(least_unit(max(map(unit_of, dtypes), default=0.0)), count)
    steps = [form.step for each in dtypes if (form := block_format(each)) is not None]
    # What is read from memory in a block-scaled type has its form from whoever wrote it.
    is_read = node.operator.off_chip is not None
    return come.to_blocks(max(steps)) if steps and count and not is_read else come


def _dtypes(value: ValueType) -> Iterator[np.dtype]:
    match value:
        case TileType():
            yield value.dtype
        case TupleType():
            for item in value.items:
                yield from _dtypes(item)
        case BufferType():
            yield value.tile.dtype


def _before(plan: Plan) -> dict[Node, list[Node]]:
    """Return the nodes whose numbers each node reads, in edge order, those in memory last."""
    before: dict[Node, list[Node]] = defaultdict(list)
    writers: dict[int, list[Node]] = defaultdict(list)
    readers: list[tuple[Node, int]] = []
    for edge in plan.edges:
        # What is no float number is not rounded: choices, counts, addresses.
        if any(unit_of(each) or block_format(each) for each in _dtypes(edge.type.value)):
            before[edge.consumer].append(edge.producer)
    for node in plan.nodes:
        if node.operator.off_chip is None:
            continue
        tensor = off_chip_tensor_of(node)
        if tensor is None or tensor.source is None:
            continue
        if node.operator.off_chip == "write":
            writers[id(tensor.source)].append(node)
        else:
            readers.append((node, id(tensor.source)))
    for node, source in readers:
        before[node] += writers[source]
    return before

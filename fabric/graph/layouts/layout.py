"""Layouts of streams: loops over the coordinates of a tensor, in a normal form.

Source: StreamTensor, arXiv 2509.13694v2, the itensor type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fabric.graph.arguments.checks import Bounds
from fabric.graph.arguments.described import Described, checked, refuse
from fabric.messages.errors import FabricError, ShapeError
from fabric.messages.text import counted


@dataclass(frozen=True)
class Layout(Described):
    """The tiles of a tensor in the order in which a stream carries them.

    A nest of loops walks over the tensor, and each round of the innermost loop is one tile of the
    stream. Several loops may move along one dimension.

    Attributes:
        shape: the size of the tensor, in elements.
        tile: the size of one tile, in all dimensions of the tensor. The last dimension is the
            tile's columns, the other dimensions are its rows.
        trips: the number of trips of each loop, outermost first.
        steps: how many elements each loop moves in one trip.
        map: the dimension of the tensor that each loop moves along; None if the loop repeats the
            tiles of its inner loops.
        start: the first element; zeros by default.

    Example:
        >>> by_columns = Layout.tiled((8, 8), tile=(4, 2), order=(1, 0))
        >>> print(by_columns)
        8x8 in tiles of 4x2, [4, 2] steps [2, 4] -> (1, 0)
        >>> by_columns.offsets()[:3].tolist()
        [[0, 0], [4, 0], [0, 2]]
    """

    refusal: ClassVar[type[FabricError]] = ShapeError

    shape: tuple[Annotated[int, Bounds(1)], ...]
    tile: tuple[Annotated[int, Bounds(1)], ...]
    trips: tuple[Annotated[int, Bounds(1)], ...]
    steps: tuple[Annotated[int, Bounds(1)], ...]
    map: tuple[Annotated[int, Bounds(0)] | None, ...]
    start: tuple[Annotated[int, Bounds(0)], ...] = ()

    def __post_init__(self) -> None:
        """Check that the loops stay inside the tensor."""
        super().__post_init__()
        rank = len(self.shape)
        if not self.start:
            object.__setattr__(self, "start", (0,) * rank)
        what = f"Layout of {_sizes(self.shape)}"
        if len(self.tile) != rank or len(self.start) != rank:
            what += f" has tiles of {_sizes(self.tile)} and starts at {self.start}"
            refuse(f"{what}: expected {counted(rank, 'dimension')} in each", ShapeError)
        if not len(self.trips) == len(self.steps) == len(self.map):
            what = f"trips {list(self.trips)}, steps {list(self.steps)} and map {self.map}"
            refuse(f"Layout has {what}: expected three lists of one length", ShapeError)
        if any(dim is not None and dim >= rank for dim in self.map):
            what += f" has the map {self.map}"
            refuse(f"{what}: expected dimensions below {rank}", ShapeError)
        reached = ends(rank, self.tile, self.start, self.loops)
        for dim, (end, size) in enumerate(zip(reached, self.shape, strict=True)):
            if end > size:
                what = f"Layout ({self}) ends after element {end - 1} of dimension {dim}"
                refuse(f"{what}: expected at most {size - 1}", ShapeError)

    @classmethod
    @checked
    def tiled(
        cls, shape: tuple[int, ...], tile: tuple[int, ...], order: tuple[int, ...] | None = None
    ) -> Layout:
        """Return all tiles of a tensor, each once.

        Args:
            shape: the size of the tensor, in elements.
            tile: the size of one tile; it divides the shape.
            order: the dimensions that the loops move along, outermost first; None for 0, 1, ...

        Raises:
            ShapeError: the tiles do not divide the tensor, or ``order`` does not name each of its
                dimensions once.
        """
        dims = tuple(range(len(shape))) if order is None else tuple(order)
        if len(tile) != len(shape) or any(a % b for a, b in zip(shape, tile, strict=False)):
            refuse(
                f"Layout.tiled: {_sizes(shape)} in tiles of {_sizes(tile)}: "
                "expected tiles that divide the shape",
                ShapeError,
            )
        if sorted(dims) != list(range(len(shape))):
            refuse(
                f"Layout.tiled: order is {list(dims)}: "
                f"expected each dimension of {_sizes(shape)} once",
                ShapeError,
            )
        trips = tuple(shape[dim] // tile[dim] for dim in dims)
        return cls(tuple(shape), tuple(tile), trips, tuple(tile[dim] for dim in dims), dims)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops, outermost first."""
        return tuple(map(Loop, self.trips, self.steps, self.map))

    @property
    def count(self) -> int:
        """The number of tiles in the stream."""
        return math.prod(self.trips)

    @property
    def rereads(self) -> bool:
        """Whether a loop of more than one trip repeats tiles."""
        return any(loop.dim is None and loop.trips > 1 for loop in self.loops)

    @property
    def rows(self) -> int:
        """Rows of one tile."""
        return math.prod(self.tile[:-1])

    @property
    def cols(self) -> int:
        """Columns of one tile."""
        return math.prod(self.tile[-1:])

    def offsets(self) -> NDArray[np.int64]:
        """Return the first element of each tile: [count, dimensions]."""
        offsets = np.array([self.start], np.int64)
        for trips, step, dim in self.loops:
            moves = np.zeros((trips, len(self.shape)), np.int64)
            if dim is not None:
                moves[:, dim] = np.arange(trips) * step
            offsets = (offsets[:, None] + moves).reshape(-1, len(self.shape))
        return offsets

    @classmethod
    def of_loops(
        cls, shape: Sequence[int], tile: Sequence[int], start: Sequence[int], loops: Sequence[Loop]
    ) -> Layout:
        """Return the layout with ``loops``, outermost first."""
        trips, steps = tuple(loop.trips for loop in loops), tuple(loop.step for loop in loops)
        dims = tuple(loop.dim for loop in loops)
        return cls(tuple(shape), tuple(tile), trips, steps, dims, tuple(start))

    def nested(self, loops: Sequence[Loop]) -> Layout:
        """Return the layout with other loops over the same tiles."""
        return Layout.of_loops(self.shape, self.tile, self.start, loops)

    def canonical(self) -> Layout:
        """Return the layout with the fewest loops that gives the same tiles in the same order.

        Two layouts with equal ``shape`` and ``tile`` have the same order if and only if their
        canonical layouts are equal.
        """
        return self.nested(merged(self.loops))

    def same_order(self, other: Layout) -> bool:
        """Whether ``other`` has the same tiles in the same order."""
        return self.canonical() == other.canonical()

    def cut(self, inside: int) -> tuple[tuple[Loop, ...], tuple[Loop, ...]] | None:
        """Return the loops as an outer nest and an inner nest, which has ``inside`` tiles.

        At most one loop is split into two. None if the loops cannot be cut so.
        """
        loops = self.loops
        inner: tuple[Loop, ...] = ()
        for at in reversed(range(len(loops))):
            if inside == 1:
                return loops[: at + 1], inner
            trips, step, dim = loops[at]
            if trips % inside == 0 and trips > inside:
                step_outside = 1 if dim is None else step * inside
                outer = (*loops[:at], Loop(trips // inside, step_outside, dim))
                return outer, (Loop(inside, step, dim), *inner)
            if inside % trips:
                return None
            inner = (loops[at], *inner)
            inside //= trips
        return None if inside > 1 else ((), inner)

    def again(self, times: int) -> Layout:
        """Return the layout with each tile ``times`` times in a row."""
        return self if times == 1 else self.nested((*self.loops, Loop(times, 1, None)))

    def __str__(self) -> str:
        steps = [step if dim is not None else 1 for _, step, dim in self.loops]
        again = ["again" if trips > 1 else "-" for trips in self.trips]
        dims = ", ".join(
            word if dim is None else str(dim) for dim, word in zip(self.map, again, strict=True)
        )
        from_start = f" from {self.start}" if any(self.start) else ""
        return (
            f"{_sizes(self.shape)} in tiles of {_sizes(self.tile)}, "
            f"{list(self.trips)} steps {steps} -> ({dims}){from_start}"
        )


Orders: TypeAlias = tuple[Layout | str, ...]
"""The layout of each stream, or the reason why it is unknown."""


def common_order(streams: Orders) -> Layout | str:
    """Return the order that all streams have, or the reason why it is unknown."""
    first = streams[0]
    for other in streams[1:]:
        if isinstance(first, str) or isinstance(other, str):
            return other if isinstance(first, Layout) else first
        if not other.same_order(first):
            return f"it joins ({first}) with ({other})"
    return first


def _sizes(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "one element"


class Loop(NamedTuple):
    """One loop of the nest of a ``Layout``: ``trips`` steps along a dimension.

    Attributes:
        step: how many elements a trip moves; ignored if ``dim`` is None.
        dim: the dimension of the tensor; None if the loop repeats the tiles of its inner loops.
    """

    trips: int
    step: int
    dim: int | None


def merged(loops: Iterable[Loop]) -> tuple[Loop, ...]:
    """Return the nest with the fewest loops that visits the same elements in the same order."""
    nest: list[Loop] = []
    for trips, step, dim in loops:
        if trips == 1:
            continue
        inner = Loop(trips, 1 if dim is None else step, dim)
        while nest and _continues(nest[-1], inner):
            inner = inner._replace(trips=inner.trips * nest.pop().trips)
        nest.append(inner)
    return tuple(nest)


def _continues(outer: Loop, inner: Loop) -> bool:
    if outer.dim is None or inner.dim is None:
        return outer.dim is inner.dim
    return outer.dim == inner.dim and outer.step == inner.trips * inner.step


def ends(rank: int, tile: Sequence[int], start: Sequence[int], loops: Iterable[Loop]) -> list[int]:
    """Return the first element after all visited elements, for each dimension."""
    behind = [start[dim] + tile[dim] for dim in range(rank)]
    for trips, step, dim in loops:
        if dim is not None:
            behind[dim] += (trips - 1) * step
    return behind

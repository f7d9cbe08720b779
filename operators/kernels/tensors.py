"""Tensors while a model is planned: their sources, and the views through which calls read them.

A view-like call of a model (permute, reshape, slice, expand) moves no data, but changes the order
in which the next call reads them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric import Layout, ValueChangedError
from fabric.extend import (
    block_format,
    converted,
    dtype_name,
    expanded_back,
    numbers_of,
    permuted,
    reshaped,
    sliced,
    sliced_back,
)
from operators.convert import is_matrix
from operators.tiles.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Source:
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True, eq=False)
class Stored(Source):
    """A parameter, a constant or an input: in off-chip memory, row-major.

    Data that exist before the run can be stored in any shape, so each view is a separate tensor.

    Attributes:
        tensor: the data, of ``shape``; dimensions of 1 are put in front if it has fewer than two.
        known: the data are available while the model is planned, and may affect the plan.
        base: the tensor that this one is a view of; None if it is not a view.
    """

    tensor: Tensor
    known: bool = False
    base: Stored | None = None

    @staticmethod
    def of(
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype,
        data: Callable[[], np.ndarray] | None,
        *,
        known: bool = False,
    ) -> Stored:
        """Return a tensor with the ``data`` of a callable, called when a tile is needed."""
        full = (1,) * (2 - len(shape)) + shape
        made = None if data is None else lambda: np.asanyarray(data()).reshape(full)
        tensor = Tensor(full, made, dtype=dtype_name(dtype))
        return Stored(name, shape, dtype, tensor, known)

    def viewed(self, shape: tuple[int, ...], view: Callable[[np.ndarray], np.ndarray]) -> Stored:
        made = (lambda: view(self.array())) if self.tensor.has_data else None
        tensor = Stored.of(self.name, shape, self.dtype, made, known=self.known)
        return replace(tensor, base=self.base or self)

    def retyped(self, dtype: np.dtype) -> Stored:
        """Return the tensor with another element type, which has to hold the values."""

        def held() -> np.ndarray:
            array = self.array()
            _check_held(array, dtype)
            return array

        data = held if self.tensor.has_data else None
        return Stored.of(self.name, self.shape, dtype, data, known=self.known)

    def array(self) -> np.ndarray:
        return self.tensor.array.reshape(self.shape)


def _check_held(array: np.ndarray, dtype: np.dtype) -> None:
    """Refuse numbers that a block-scaled type would round; loads check the other types."""
    if block_format(dtype) is None:
        return
    rounded = numbers_of(converted(array, dtype))
    changed = rounded != array.astype(np.float64)
    if changed.any():
        place = tuple(np.argwhere(changed)[0].tolist())
        what = f"{array[place]} at {list(place)}, which is {rounded[place]} as {dtype_name(dtype)}"
        raise ValueChangedError(what, array[place], place)


@dataclass(frozen=True, eq=False)
class Computed(Source):
    """A kernel's result, as a stream ``[1, *layout.trips]`` of tiles."""

    layout: Layout


@dataclass(frozen=True, eq=False)
class Opaque(Source):
    """A kernel's result in a form that only kernels of its family read, such as routed rows."""

    form: object


@dataclass(frozen=True)
class Pulled:
    """The layout in which a reader of a view takes tiles from the view's source.

    Attributes:
        layout: over the source's shape. If only off-chip memory can provide the tiles, it may be
            over another shape of equal size, since memory does not distinguish the shapes.
        places: for each element of the reader's tile, the row-major number of the element in the
            source's tile: [rows, cols].
    """

    layout: Layout
    places: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class View:
    """An operand of a call: a source seen through views.

    Attributes:
        steps: the views, the first one next to the source; each with its input shape.
    """

    source: Source
    shape: tuple[int, ...]
    steps: tuple[tuple[Step, tuple[int, ...]], ...] = ()

    @staticmethod
    def of(source: Source) -> View:
        return View(source, source.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.source.dtype

    @property
    def is_plain(self) -> bool:
        return not self.steps

    def permuted(self, dims: Sequence[int]) -> View:
        """Return a view in which dimension ``dims[i]`` becomes dimension i."""
        dims = tuple(dims)
        if dims == tuple(range(len(dims))):
            return self
        if self.steps and isinstance(last := self.steps[-1][0], Permuted):
            # Two permutations may cancel out, even if no stream has the order of the first one.
            before = replace(self, shape=self.steps[-1][1], steps=self.steps[:-1])
            return before.permuted([last.dims[dim] for dim in dims])
        return self._seen(Permuted(dims), tuple(self.shape[axis] for axis in dims))

    def reshaped(self, shape: Sequence[int]) -> View:
        """Return the same elements in row-major order in another shape."""
        shape = tuple(shape)
        return self if shape == self.shape else self._seen(Reshaped(shape), shape)

    def sliced(self, dim: int, first: int, count: int) -> View:
        """Return ``count`` places of a dimension, from ``first`` on."""
        if (first, count) == (0, self.shape[dim]):
            return self
        shape = (*self.shape[:dim], count, *self.shape[dim + 1 :])
        return self._seen(Sliced(dim, first, count), shape)

    def expanded(self, shape: Sequence[int]) -> View:
        """Repeat dimensions of size 1 up to ``shape``, which may add leading dimensions."""
        shape = tuple(shape)
        padded = self.reshaped((1,) * (len(shape) - len(self.shape)) + self.shape)
        return padded if shape == padded.shape else padded._seen(Expanded(shape), shape)

    def again(self, other: View) -> View:
        """Apply the views of ``other``; the source of ``other`` has the shape of this view."""
        view = self
        shapes = [before for _, before in other.steps[1:]] + [other.shape]
        for (step, _), shape in zip(other.steps, shapes, strict=False):
            view = view._seen(step, shape)
        return view

    def _seen(self, step: Step, shape: tuple[int, ...]) -> View:
        if isinstance(self.source, Stored) and not self.steps and not isinstance(step, Expanded):
            return View.of(self.source.viewed(shape, step.seen))
        return replace(self, shape=shape, steps=(*self.steps, (step, self.shape)))

    def pull(self, layout: Layout) -> Pulled | None:
        """Return how the source is read for a view in ``layout``; None if no layout does it."""
        tiles = []
        for index, (step, before) in reversed(list(enumerate(self.steps))):
            tiles.append((step, layout.tile))
            pulled = step.pull(layout, before)
            if pulled is None and index == 0 and isinstance(step, Reshaped):
                # In row-major memory, the source also has the shape of the view.
                tiles.pop()
                break
            if pulled is None:
                return None
            layout = pulled
        if tiles and isinstance(self.source, Stored) and not is_matrix(layout):
            return None
        places = np.arange(math.prod(layout.tile)).reshape(layout.tile)
        for step, tile in reversed(tiles):
            places = step.in_tile(places, tile)
        return Pulled(layout, places.reshape(math.prod(places.shape[:-1]), -1))

    def array(self) -> np.ndarray:
        return self.stored().array()

    def stored(self) -> Stored:
        """Return a view of a stored tensor as a separate tensor."""
        assert isinstance(self.source, Stored)
        if self.is_plain:
            return self.source

        def seen(array: np.ndarray) -> np.ndarray:
            for step, _ in self.steps:
                array = step.seen(array)
            return array

        return self.source.viewed(self.shape, seen)

    @property
    def layout(self) -> Layout | None:
        """The order in which the view arrives as a stream.

        None if the source is stored, if no layout describes the order, or if tiles would have to be
        transposed.
        """
        if not isinstance(self.source, Computed):
            return None
        layout: Layout | None = self.source.layout
        for step, _ in self.steps:
            layout = None if layout is None else step.push(layout)
        return layout


class Step(ABC):
    """A view of a tensor."""

    @abstractmethod
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Layout | None:
        """Return the layout of the input, of shape ``before``, for a layout of the view."""

    @abstractmethod
    def push(self, layout: Layout) -> Layout | None:
        """Return the layout of the view for a layout of the input; None if tiles are transposed."""

    @abstractmethod
    def seen(self, array: np.ndarray) -> np.ndarray:
        """Return the view of an array."""

    def in_tile(self, tile: NDArray[np.int64], after: tuple[int, ...]) -> NDArray[np.int64]:
        """Return a tile of the view, of shape ``after``; by default with its elements in order."""
        return tile.reshape(after)


@dataclass(frozen=True)
class Permuted(Step):
    """Dimensions in another order: ``dims[i]`` becomes dimension i."""

    dims: tuple[int, ...]

    @override
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Layout | None:
        del before
        inverse = tuple(self.dims.index(axis) for axis in range(len(self.dims)))
        seen = permuted(layout, inverse)
        if seen is not None:
            return seen.layout
        # The elements of a tile move, but not by exchanging its rows with its columns.
        return replace(
            layout,
            shape=tuple(layout.shape[axis] for axis in inverse),
            tile=tuple(layout.tile[axis] for axis in inverse),
            start=tuple(layout.start[axis] for axis in inverse),
            map=tuple(None if dim is None else self.dims[dim] for dim in layout.map),
        )

    @override
    def push(self, layout: Layout) -> Layout | None:
        seen = permuted(layout, self.dims)
        return None if seen is None or seen.transposed else seen.layout

    @override
    def seen(self, array: np.ndarray) -> np.ndarray:
        return array.transpose(self.dims)

    @override
    def in_tile(self, tile: NDArray[np.int64], after: tuple[int, ...]) -> NDArray[np.int64]:
        return tile.transpose(self.dims).reshape(after)


@dataclass(frozen=True)
class Reshaped(Step):
    """The same elements in row-major order in another shape."""

    shape: tuple[int, ...]

    @override
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Layout | None:
        return reshaped(layout, before)

    @override
    def push(self, layout: Layout) -> Layout | None:
        return reshaped(layout, self.shape)

    @override
    def seen(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(self.shape)


@dataclass(frozen=True)
class Sliced(Step):
    """``count`` places of dimension ``dim``, from ``first`` on."""

    dim: int
    first: int
    count: int

    @override
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Layout | None:
        return sliced_back(layout, before, self.dim, self.first)

    @override
    def push(self, layout: Layout) -> Layout | None:
        return sliced(layout, self.dim, self.first, self.count)

    @override
    def seen(self, array: np.ndarray) -> np.ndarray:
        # Not copied: the weights of a layer may be cut into hundreds of parts.
        return array[(slice(None),) * self.dim + (slice(self.first, self.first + self.count),)]


@dataclass(frozen=True)
class Expanded(Step):
    """Dimensions of size 1 repeated to ``shape``, without new dimensions."""

    shape: tuple[int, ...]

    @override
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Layout | None:
        return expanded_back(layout, before)

    @override
    def push(self, layout: Layout) -> None:
        del layout  # the source's stream has each tile once, the view needs it repeatedly

    @override
    def seen(self, array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array, self.shape)

    @override
    def in_tile(self, tile: NDArray[np.int64], after: tuple[int, ...]) -> NDArray[np.int64]:
        return np.broadcast_to(tile, after)

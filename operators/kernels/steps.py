"""Views that calls take of a tensor: what each does to layouts, to arrays and to a tile.

``pull`` turns a layout of what is seen into one of what is there, ``push`` the other way round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric import Layout
from fabric.extend import Viewed, expanded_back, permuted, reshaped, sliced, sliced_back

__all__ = ["Expanded", "Permuted", "Reshaped", "Sliced", "Step"]


class Step(ABC):
    """A view of a tensor."""

    @abstractmethod
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Viewed | None:
        """Return the layout of what is there, of shape ``before``, given that of the view.

        None where no layout says it.
        """

    @abstractmethod
    def push(self, layout: Layout) -> Viewed | None:
        """Return the layout of the view, given that of what is there; None where none says it."""

    @abstractmethod
    def seen(self, array: np.ndarray) -> np.ndarray:
        """Return the view of an array."""

    @abstractmethod
    def in_tile(self, tile: NDArray[np.int64], after: tuple[int, ...]) -> NDArray[np.int64]:
        """Return a tile of the view, of shape ``after``, given that of what is there."""


@dataclass(frozen=True)
class Permuted(Step):
    """Dimensions in another order: ``dims[i]`` becomes dimension i."""

    dims: tuple[int, ...]

    @override
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Viewed | None:
        del before
        inverse = tuple(self.dims.index(axis) for axis in range(len(self.dims)))
        found = permuted(layout, inverse)
        if found is not None:
            return found
        # Elements of a tile change places in more ways than rows with columns.
        ordered = replace(
            layout,
            shape=tuple(layout.shape[axis] for axis in inverse),
            tile=tuple(layout.tile[axis] for axis in inverse),
            start=tuple(layout.start[axis] for axis in inverse),
            map=tuple(None if dim is None else self.dims[dim] for dim in layout.map),
        )
        return Viewed(ordered, transposed=True)

    @override
    def push(self, layout: Layout) -> Viewed | None:
        return permuted(layout, self.dims)

    @override
    def seen(self, array: np.ndarray) -> np.ndarray:
        return array.transpose(self.dims)

    @override
    def in_tile(self, tile: NDArray[np.int64], after: tuple[int, ...]) -> NDArray[np.int64]:
        return tile.transpose(self.dims).reshape(after)


@dataclass(frozen=True)
class Reshaped(Step):
    """The same elements in row-major order under another shape."""

    shape: tuple[int, ...]

    @override
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Viewed | None:
        return _plain(reshaped(layout, before))

    @override
    def push(self, layout: Layout) -> Viewed | None:
        return _plain(reshaped(layout, self.shape))

    @override
    def seen(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(self.shape)

    @override
    def in_tile(self, tile: NDArray[np.int64], after: tuple[int, ...]) -> NDArray[np.int64]:
        return tile.reshape(after)


@dataclass(frozen=True)
class Sliced(Step):
    """``count`` places of dimension ``dim``, from ``first`` on."""

    dim: int
    first: int
    count: int

    @override
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Viewed | None:
        return _plain(sliced_back(layout, before, self.dim, self.first))

    @override
    def push(self, layout: Layout) -> Viewed | None:
        return _plain(sliced(layout, self.dim, self.first, self.count))

    @override
    def seen(self, array: np.ndarray) -> np.ndarray:
        # Not copied: the weights of a layer may be cut into hundreds of parts.
        return array[(slice(None),) * self.dim + (slice(self.first, self.first + self.count),)]

    @override
    def in_tile(self, tile: NDArray[np.int64], after: tuple[int, ...]) -> NDArray[np.int64]:
        return tile.reshape(after)


@dataclass(frozen=True)
class Expanded(Step):
    """Dimensions of size 1 as often as ``shape`` says; as many dimensions as before."""

    shape: tuple[int, ...]

    @override
    def pull(self, layout: Layout, before: tuple[int, ...]) -> Viewed | None:
        return _plain(expanded_back(layout, before))

    @override
    def push(self, layout: Layout) -> None:
        del layout  # what is there once is not a stream of what is read often

    @override
    def seen(self, array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array, self.shape)

    @override
    def in_tile(self, tile: NDArray[np.int64], after: tuple[int, ...]) -> NDArray[np.int64]:
        return np.broadcast_to(tile, after)


def _plain(layout: Layout | None) -> Viewed | None:
    return None if layout is None else Viewed(layout, transposed=False)

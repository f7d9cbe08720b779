"""Steps along dimensions that are whole in each tile, such as a running sum, sort or pooling."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from typing_extensions import override

from fabric import Dim
from fabric.extend import TrackedArray
from operators.functions.arithmetic import Array, is_nan, is_whole, largest, roomy
from operators.functions.steps import Shape, Step


class OnAxes:
    """A computation along the last dimensions of arrays."""

    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        """Return the operations for one tile; by default one for each number.

        Each operand's tile has ``apart`` independent blocks. ``sizes`` has the block's sizes.
        """
        return apart * math.prod(sizes[0])

    @abstractmethod
    def compute(self, *arrays: Array) -> Array:
        """Return the result, [*other dimensions, *sizes of the result]."""


@dataclass(frozen=True)
class Along(Step):
    """A computation along dimensions of a tile.

    Attributes:
        grids: for each operand, the sizes of the dimensions in a tile; the last dimension is along
            columns. Grids differ in ``axes`` only.
        axes: the dimensions of the computation, in ascending order.
        sizes: the sizes of the result along ``axes``.
    """

    function: OnAxes
    grids: tuple[tuple[int, ...], ...]
    axes: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    @override
    def called(self) -> str:
        return type(self.function).__name__

    @override
    def shape(self, *shapes: Shape) -> Shape:
        grid = self._result()
        return math.prod(grid[:-1]), grid[-1]

    @override
    def flops(self, *shapes: Shape) -> Dim:
        apart = math.prod(self.grids[0]) // math.prod(self._sizes(self.grids[0]))
        return self.function.flops(apart, *map(self._sizes, self.grids))

    @override
    def compute(self, *values: Array) -> Array:
        rank = len(self.grids[0])
        order = [*(dim for dim in range(rank) if dim not in self.axes), *self.axes]
        result = self.function.compute(
            *(
                each.reshape(grid).transpose(order)
                for each, grid in zip(values, self.grids, strict=True)
            )
        )
        grid = self._result()
        return result.transpose(np.argsort(order)).reshape(math.prod(grid[:-1]), grid[-1])

    def _sizes(self, grid: Sequence[int]) -> tuple[int, ...]:
        return tuple(grid[axis] for axis in self.axes)

    def _result(self) -> tuple[int, ...]:
        grid = list(self.grids[0])
        for axis, size in zip(self.axes, self.sizes, strict=True):
            grid[axis] = size
        return tuple(grid)


@dataclass(frozen=True)
class Taken(OnAxes):
    """The numbers at given places of one dimension; no operations."""

    places: tuple[int, ...]

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        return 0

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        return x[..., list(self.places)]


@dataclass(frozen=True)
class Tap:
    """One number of a result as a weighted sum of numbers along one dimension."""

    places: tuple[int, ...]
    weights: tuple[float, ...]


def _weights(tap: Tap, numbers: Array) -> Array:
    """Return the weights, with the errors of PyTorch's two roundings when it computes them."""
    weights = np.asarray(tap.weights, numbers.dtype)
    if not isinstance(numbers, TrackedArray):
        return weights
    tracked: TrackedArray = weights.view(TrackedArray)
    tracked.error = np.full(weights.shape, 2 * np.finfo(numbers.dtype).eps, numbers.dtype)
    return tracked


@dataclass(frozen=True)
class Weighed(OnAxes):
    """Weighted sums along one dimension after the other: averages and interpolation.

    In each dimension, a result with n summands takes n products and n - 1 additions.

    Attributes:
        taps: for each dimension, one tap for each number of the result.
        from_zero: a sum starts at 0, so it is never -0.
    """

    taps: tuple[tuple[Tap, ...], ...]
    from_zero: bool = False

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        flops, left = 0, list(sizes[0])
        for axis, taps in enumerate(self.taps):
            left[axis] = 1
            others = apart * math.prod(left)
            flops += others * sum(max(0, 2 * len(tap.places) - 1) for tap in taps)
            left[axis] = len(taps)
        return flops

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        for axis, taps in enumerate(self.taps):
            moved = np.moveaxis(x, axis - len(self.taps), -1)
            sums = [(moved[..., list(tap.places)] * _weights(tap, x)).sum(axis=-1) for tap in taps]
            x = np.moveaxis(np.stack(sums, axis=-1), -1, axis - len(self.taps))
        return x + 0 if self.from_zero else x


Runs: TypeAlias = Literal["sum", "prod", "max", "min", "logsumexp"]

_RUNNING: Final[dict[Runs, tuple[np.ufunc, int]]] = {
    "sum": (np.add, 1),
    "prod": (np.multiply, 1),
    "max": (np.maximum, 1),
    "min": (np.minimum, 1),
    "logsumexp": (np.logaddexp, 13),
}
"""For each name, the function that joins two numbers, and its number of operations. ``logaddexp``
takes two comparisons, a difference, an exponential (4), ``log1p`` (5) and a sum."""


@dataclass(frozen=True)
class Running(OnAxes):
    """Each number joined with all numbers before it; floats are computed in 64 bits."""

    name: Runs

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        ((count,),) = sizes
        return apart * count * _RUNNING[self.name][1]

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        if is_whole(x):
            bits = largest(x).bit_length()
            count = x.shape[-1]
            bits = bits * count if self.name == "prod" else bits + count.bit_length()
            (x,) = roomy(1 << min(bits, 64), x)
        elif self.name not in {"max", "min"}:
            x = x.astype(np.float64)
        if self.name in {"sum", "logsumexp"}:
            x = x + 0  # a sum starts at 0, so a first -0 becomes 0
        return np.asanyarray(_RUNNING[self.name][0].accumulate(x, axis=-1))


@dataclass(frozen=True)
class RunningPlace(OnAxes):
    """The place of the largest, or smallest, of each number and all numbers before it.

    The last of equal numbers counts. A NaN counts as the largest, or smallest. One comparison per
    number.
    """

    is_largest: bool

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        extreme = (np.maximum if self.is_largest else np.minimum).accumulate(x, axis=-1)
        places = np.where((x == extreme) | is_nan(x), np.arange(x.shape[-1]), 0)
        return np.asanyarray(np.maximum.accumulate(places, axis=-1))


@dataclass(frozen=True)
class SortedPlaces(OnAxes):
    """The order that sorts numbers; equal numbers keep their order, and a NaN is the largest.

    It takes n * ceil(log2(n)) comparisons for n numbers.
    """

    descending: bool = False

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        ((count,),) = sizes
        return apart * count * max(1, (count - 1).bit_length())

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        if not self.descending:
            return np.argsort(x, axis=-1, kind="stable")
        backwards: Array = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        return np.asanyarray(x.shape[-1] - 1 - backwards)


@dataclass(frozen=True)
class RankedPlace(OnAxes):
    """The place of the number that a sort puts at ``rank``; equal numbers keep their order.

    It takes the comparisons of a sort, in which a NaN is the largest number. If ``finds_nan``, the
    result is the place of the first NaN, if there is one, as in PyTorch's median.
    """

    rank: int
    finds_nan: bool = False

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        return SortedPlaces().flops(apart, *sizes)

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        place = SortedPlaces().compute(x)[..., self.rank, None]
        if not self.finds_nan:
            return place
        no_number = is_nan(x)
        first = np.argmax(no_number, axis=-1)[..., None]
        return np.where(no_number.any(axis=-1, keepdims=True), first, place)


@dataclass(frozen=True)
class ExtremePlace(OnAxes):
    """The place of the largest, or smallest, number.

    The first of equal numbers counts. A NaN counts as the largest, or smallest. One comparison per
    number.
    """

    is_largest: bool

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        place = np.argmax(x, axis=-1) if self.is_largest else np.argmin(x, axis=-1)
        return np.expand_dims(place, -1)


@dataclass(frozen=True)
class Extremes(OnAxes):
    """The largest number of each window, along one dimension after the other.

    One comparison per number of a window, except the first.

    Attributes:
        windows: for each dimension, the places of each window. A window with only padding has a
            place beyond the dimension, and gives minus infinity.
    """

    windows: tuple[tuple[tuple[int, ...], ...], ...]

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        flops, left = 0, list(sizes[0])
        for axis, windows in enumerate(self.windows):
            left[axis] = 1
            flops += apart * math.prod(left) * sum(len(window) - 1 for window in windows)
            left[axis] = len(windows)
        return flops

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        for axis, windows in enumerate(self.windows):
            moved = np.moveaxis(x, axis - len(self.windows), -1)
            have = moved.shape[-1]
            inside = ([at for at in window if at < have] for window in windows)
            largest_numbers = [moved[..., each].max(axis=-1, initial=-np.inf) for each in inside]
            x = np.moveaxis(np.stack(largest_numbers, axis=-1), -1, axis - len(self.windows))
        return x


@dataclass(frozen=True)
class WindowPlaces(OnAxes):
    """The place of the largest number of each window, as a row-major number.

    The first of equal numbers counts, but the last of several NaNs. One comparison per number of a
    window, except the first.

    Attributes:
        windows: for each dimension, the places of each window. A window with only padding has a
            place beyond the dimension, and gives the number that PyTorch returns.
    """

    windows: tuple[tuple[tuple[int, ...], ...], ...]

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        each = [math.prod(map(len, window)) - 1 for window in itertools.product(*self.windows)]
        return apart * sum(each)

    @override
    def compute(self, *arrays: Array) -> Array:
        (x,) = arrays
        space = x.shape[x.ndim - len(self.windows) :]
        flat = x.reshape(*x.shape[: x.ndim - len(self.windows)], -1)
        results = []
        for window in itertools.product(*self.windows):
            places = np.zeros(1, np.int64)
            for size, along in zip(space, window, strict=True):
                places = np.add.outer(places * size, along).reshape(-1)
            if any(along[0] >= size for size, along in zip(space, window, strict=True)):
                results.append(np.full(flat.shape[:-1], places[0]))
                continue
            numbers = flat[..., places]
            no_number = is_nan(numbers)
            last_nan = len(places) - 1 - np.argmax(no_number[..., ::-1], axis=-1)
            results.append(
                places[np.where(no_number.any(axis=-1), last_nan, np.argmax(numbers, axis=-1))]
            )
        counts = (len(each) for each in self.windows)
        return np.stack(results, axis=-1).reshape(*flat.shape[:-1], *counts)


@dataclass(frozen=True)
class Picked(OnAxes):
    """The numbers of one operand at places from the other operand; one operation per place."""

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        _, (count,) = sizes
        return apart * count

    @override
    def compute(self, *arrays: Array) -> Array:
        x, places = arrays
        return np.take_along_axis(x, _checked(places, x.shape[-1]), axis=-1)


Putting: TypeAlias = Literal["set", "sum", "prod", "amax", "amin"]

_PUTTING: Final = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@dataclass(frozen=True)
class Put(OnAxes):
    """New numbers written to places, or combined with the numbers there; one operation each.

    Operands are the present numbers, the places, and the new numbers. If ``name`` is "set", the
    last number for a place remains.
    """

    name: Putting = "set"

    @override
    def flops(self, apart: int, *sizes: tuple[int, ...]) -> int:
        _, (count,), _ = sizes
        return apart * count

    @override
    def compute(self, *arrays: Array) -> Array:
        x, places, numbers = arrays
        where = _checked(places, x.shape[-1])
        # Numbers beyond 64 bits are objects; the other operands may still be int64.
        result = x.astype(np.result_type(x, numbers))
        if self.name == "set":
            for each in range(where.shape[-1]):
                np.put_along_axis(result, where[..., each, None], numbers[..., each, None], axis=-1)
            return result
        if is_whole(result):
            there, more = (largest(each).bit_length() for each in (result, numbers))
            times = where.shape[-1]
            bits = there + more * times
            if self.name != "prod":
                bits = max(there, more) + (1 + times).bit_length()
            result, numbers = roomy(1 << min(bits, 64), result, numbers)
        lead = np.indices(where.shape, sparse=True)[:-1]
        _PUTTING[self.name].at(result, (*lead, where), numbers)
        return result


def _checked(places: Array, count: int) -> Array:
    where: Array = places.astype(np.int64)
    if where.size and not -count <= int(where.min()) <= int(where.max()) < count:
        raise ValueError(
            f"a tensor names places {where.min()} to {where.max()} of a dimension: "
            f"expected {-count} to {count - 1}"
        )
    return where

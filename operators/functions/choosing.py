"""The largest numbers of a row, and selectors that name streams by them: what routers do.

PyTorch's topk on a CPU hands pairs of a number and its place to the C++ standard library, whose
algorithms say nothing about equal numbers. Router scores in bfloat16 often are equal, so what the
library on Linux (libstdc++) does with them is done here: introspective selection, and for few of
many a heap. Rows whose largest numbers differ need none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fabric import Dim, Selector, SelectorType, ShapeError, Tile, TileType
from fabric.extend import Bounds, ValueType
from operators.functions.arithmetic import Array, is_whole
from operators.functions.base import Function
from operators.functions.steps import Shape, Step
from operators.tiles.integers import count_in, is_integer


@dataclass(frozen=True)
class TopPlaces(Step):
    """The places of the ``k`` largest numbers of each row, the largest first; k comparisons each.

    Of equal numbers those are taken that PyTorch takes on a CPU; a NaN is the largest.

    Attributes:
        k: how many places.
        largest: the smallest numbers, the smallest first, where not.
    """

    k: int
    largest: bool = True

    @override
    def shape(self, *shapes: Shape) -> Shape:
        ((rows, cols),) = shapes
        if isinstance(cols, int) and self.k > cols:
            raise ShapeError(
                f"the {self.k} largest in rows of length {cols}: expected at most {cols}"
            )
        return rows, self.k

    @override
    def flops(self, *shapes: Shape) -> Dim:
        ((rows, cols),) = shapes
        return self.k * rows * cols

    @override
    def compute(self, *values: Array) -> Array:
        (x,) = values
        return largest_places(x, self.k, largest=self.largest)


@dataclass(frozen=True)
class TakenAlong(Step):
    """Of each row of one array the numbers at the places in the other; one operation each."""

    @override
    def shape(self, *shapes: Shape) -> Shape:
        (rows, _), (_, count) = shapes
        return rows, count

    @override
    def flops(self, *shapes: Shape) -> Dim:
        _, (rows, count) = shapes
        return rows * count

    @override
    def compute(self, *values: Array) -> Array:
        x, places = values
        return np.take_along_axis(x, places.astype(np.int64), axis=1)


@dataclass(frozen=True)
class SelectorOf(Function):
    """The selector of the streams that a row of integers names; one cycle.

    Timing mode has no integers, so there the second operand states the choice.

    Shapes:
        places: 1 x k, integers, none twice; given: a selector; result: a selector.

    Example:
        >>> x, which = np.array([[5.0, 6.0]]), np.array([[1], [0]])
        >>> with Program("example", mode="functional") as program:
        ...     rows = LinearOffChipLoad(which, tile=(1, 1))()
        ...     given = Selectors(which[:, :, np.newaxis], width=2)()
        ...     route = Map(SelectorOf())(rows, given)
        ...     items = LinearOffChipLoad(x.T, tile=(1, 1))()
        ...     first, second = Partition(2)(items, route)
        ...     LinearOffChipStore("y")(Promote(0)(first))
        ...     Consumer()(second)
        >>> program.expect(y=lambda: np.array([[6.0]]))
        >>> print(simulate(program).verified)
        True
    """

    @override
    def check(self, name: str, operands: tuple[ValueType, ...]) -> tuple[ValueType, ...]:
        match operands:
            case (TileType(rows=1, cols=cols, dtype=dtype), SelectorType(hits=hits)):
                if dtype.kind in "iu" and cols == hits:
                    return operands
        found = " and ".join(map(str, operands))
        raise ShapeError(
            f"{name} is given {found}: expected a row of integers and a selector of as many streams"
        )

    @property
    @override
    def fixed_cycles(self) -> int | None:
        return 1

    @override
    def infer(self, *inputs: ValueType) -> ValueType:
        return inputs[1]

    @override
    def apply(self, *inputs: Tile | Selector) -> Selector:
        places, given = inputs
        assert isinstance(places, Tile)
        assert isinstance(given, Selector)
        if places.data is None:
            return given
        hits = sorted(places.data[0].tolist())
        width = given.width
        if (hits and not 0 <= hits[0] <= hits[-1] < width) or len(set(hits)) < len(hits):
            raise ValueError(f"streams {hits} are named: expected different ones below {width}")
        return Selector(tuple(map(int, hits)), width)


_Pair: TypeAlias = tuple[float, int]
_Before: TypeAlias = Callable[[_Pair, _Pair], bool]

_FEW: Final = 64
"""A heap is used where so many times the numbers wanted are there."""

_SHORT: Final = 16
"""Parts of so many are sorted by insertion."""


def largest_places(numbers: np.ndarray, count: int, *, largest: bool = True) -> NDArray[np.int64]:
    """Return the places of the ``count`` largest numbers of each row, the largest first.

    Args:
        numbers: [rows, columns]; a NaN is larger than any number.
        count: from 0 to the columns.
        largest: the smallest ones where not.
    """
    cols = numbers.shape[1]
    if is_whole(numbers):
        # The order turned round, of every integer: that of -2 ** 63 is 2 ** 63 - 1.
        keys, no_number = ~numbers if largest else numbers, np.zeros(numbers.shape, bool)
    else:
        no_number = np.isnan(numbers)
        keys = np.where(no_number, np.inf, numbers) * (-1 if largest else 1)
    order: NDArray[np.int64] = np.argsort(keys, axis=1, kind="stable")
    ahead = np.take_along_axis(keys, order[:, : count + 1], axis=1)
    result = order[:, :count].copy()
    if not count or cols < 2:
        return result
    tied = (ahead[:, 1:] == ahead[:, :-1]).any(axis=1)
    before = _larger if largest else _smaller
    for row in np.flatnonzero(tied | no_number.any(axis=1)).tolist():
        pairs = [(number, place) for place, number in enumerate(numbers[row].tolist())]
        _arrange(pairs, count, before)
        result[row] = [place for _, place in pairs[:count]]
    return result


def _larger(left: _Pair, right: _Pair) -> bool:
    return (left[0] != left[0] and right[0] == right[0]) or left[0] > right[0]


def _smaller(left: _Pair, right: _Pair) -> bool:
    return (left[0] == left[0] and right[0] != right[0]) or left[0] < right[0]


def _arrange(pairs: list[_Pair], count: int, before: _Before) -> None:
    """Bring the first ``count`` in order to the front."""
    if count * _FEW <= len(pairs):
        _heap_select(pairs, 0, count, len(pairs), before)
        _sort_heap(pairs, 0, count, before)
        return
    _select(pairs, count - 1, before)
    _sort(pairs, count - 1, before)


def _select(pairs: list[_Pair], place: int, before: _Before) -> None:
    """Bring to ``place`` what belongs there, and nothing that belongs in front of it behind it."""
    first, last = 0, len(pairs)
    if place == last:
        return
    rounds = 2 * (last.bit_length() - 1)
    while last - first > 3:
        if not rounds:
            _heap_select(pairs, first, place + 1, last, before)
            pairs[first], pairs[place] = pairs[place], pairs[first]
            return
        rounds -= 1
        cut = _parted(pairs, first, last, before)
        if cut <= place:
            first = cut
        else:
            last = cut
    _insertion_sort(pairs, first, last, before)


def _sort(pairs: list[_Pair], last: int, before: _Before) -> None:
    if last:
        _sort_parts(pairs, 0, last, 2 * (last.bit_length() - 1), before)
        _insertion_sort(pairs, 0, last, before)


def _sort_parts(pairs: list[_Pair], first: int, last: int, rounds: int, before: _Before) -> None:
    """Sort roughly: what is left for an insertion sort moves by less than ``_SHORT``."""
    while last - first > _SHORT:
        if not rounds:
            _heap_select(pairs, first, last, last, before)
            _sort_heap(pairs, first, last, before)
            return
        rounds -= 1
        cut = _parted(pairs, first, last, before)
        _sort_parts(pairs, cut, last, rounds, before)
        last = cut


def _parted(pairs: list[_Pair], first: int, last: int, before: _Before) -> int:
    """Part by the median of three; return where the second part begins."""
    middle = first + (last - first) // 2
    three = _median(pairs, first + 1, middle, last - 1, before)
    pairs[first], pairs[three] = pairs[three], pairs[first]
    pivot = pairs[first]
    left, right = first + 1, last
    while True:
        while before(pairs[left], pivot):
            left += 1
        right -= 1
        while before(pivot, pairs[right]):
            right -= 1
        if left >= right:
            return left
        pairs[left], pairs[right] = pairs[right], pairs[left]
        left += 1


def _median(pairs: list[_Pair], a: int, b: int, c: int, before: _Before) -> int:
    if before(pairs[a], pairs[b]):
        if before(pairs[b], pairs[c]):
            return b
        return c if before(pairs[a], pairs[c]) else a
    if before(pairs[a], pairs[c]):
        return a
    return c if before(pairs[b], pairs[c]) else b


def _insertion_sort(pairs: list[_Pair], first: int, last: int, before: _Before) -> None:
    for place in range(first + 1, last):
        moved, hole = pairs[place], place
        while hole > first and before(moved, pairs[hole - 1]):
            pairs[hole] = pairs[hole - 1]
            hole -= 1
        pairs[hole] = moved


def _heap_select(pairs: list[_Pair], first: int, middle: int, last: int, before: _Before) -> None:
    """Bring the first of all into a heap in front of ``middle``, the last of them on top."""
    size = middle - first
    for parent in reversed(range(size // 2)):
        _sift(pairs, first, parent, size, pairs[first + parent], before)
    for place in range(middle, last):
        if before(pairs[place], pairs[first]):
            moved, pairs[place] = pairs[place], pairs[first]
            _sift(pairs, first, 0, size, moved, before)


def _sort_heap(pairs: list[_Pair], first: int, last: int, before: _Before) -> None:
    for end in reversed(range(first + 1, last)):
        moved, pairs[end] = pairs[end], pairs[first]
        _sift(pairs, first, 0, end - first, moved, before)


def _sift(
    pairs: list[_Pair], first: int, hole: int, size: int, moved: _Pair, before: _Before
) -> None:
    """Put ``moved`` into a heap whose place ``hole`` is free: down to a leaf, and up again."""
    top = hole
    while 2 * hole + 2 < size:
        child = 2 * hole + 2
        if before(pairs[first + child], pairs[first + child - 1]):
            child -= 1
        pairs[first + hole] = pairs[first + child]
        hole = child
    if size % 2 == 0 and hole == (size - 2) // 2:
        pairs[first + hole] = pairs[first + 2 * hole + 1]
        hole = 2 * hole + 1
    while hole > top and before(pairs[first + (hole - 1) // 2], moved):
        pairs[first + hole] = pairs[first + (hole - 1) // 2]
        hole = (hole - 1) // 2
    pairs[first + hole] = moved


@dataclass(frozen=True)
class OneHot(Function):
    """The one-hot selector of the stream that an integer names; one cycle.

    Shapes:
        number: 1 x 1, an integer; result: a selector of ``width``.

    Attributes:
        width: how many streams there are.

    Example:
        >>> with Program("example") as program:
        ...     route = Map(OneHot(2))(RaggedIntegers([[0, 1], [1]])())
        ...     Consumer()(route)
        >>> print(route.type)
        [1, 2, D_ragged_integers_1~] of selector of 2
        >>> print(simulate(program).elements)
        6
    """

    operands: ClassVar = 1

    width: Annotated[int, Bounds(1)]

    @property
    @override
    def fixed_cycles(self) -> int | None:
        return 1

    @override
    def infer(self, *inputs: TileType) -> SelectorType:
        (number,) = inputs
        if not is_integer(number):
            raise ShapeError(f"OneHot is given {number}: expected a 1x1 tile of an integer")
        return SelectorType(self.width, hits=1)

    @override
    def apply(self, *inputs: Tile) -> Selector:
        number = count_in(inputs[0], "a stream")
        if number >= self.width:
            raise ValueError(f"OneHot is given {number:,}: expected 0 to {self.width - 1:,}")
        return Selector((number,), self.width)

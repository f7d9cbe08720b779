"""Places of the largest numbers against the C++ standard library, and selectors made of places."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from fabric import Selector, SelectorType, ShapeError, Tile, TileType
from fabric.graph.values.dims import symbol
from operators.functions.choosing import SelectorOf, TopPlaces, largest_places

INT64 = np.dtype(np.int64)

# Columns, places, numbers that there are, rows; and checksums of the places that a C++ program
# with libstdc++ found as PyTorch does: by partial_sort where 64 times the places are no more than
# the columns, else by nth_element and sort. Of the largest and the smallest, without NaN and with.
FOUND = [
    (1, 1, 2, 1, (558161692, 558161692, 558161692, 558161692)),
    (2, 1, 1, 4, (3971697493, 3971697493, 3971697493, 3971697493)),
    (2, 2, 1, 4, (1589754108, 1589754108, 1589754108, 1589754108)),
    (3, 2, 2, 16, (3764858253, 2080545262, 3764858253, 2080545262)),
    (4, 3, 2, 16, (2500571701, 3965547660, 2500571701, 3965547660)),
    (5, 2, 2, 16, (3685784934, 1540080129, 3685784934, 1540080129)),
    (7, 7, 3, 16, (3224051333, 518336058, 2040450861, 544986685)),
    (17, 3, 4, 16, (3915156871, 2910238350, 1599506465, 3075235810)),
    (18, 18, 5, 8, (2484497553, 3528189236, 2747078755, 3689734947)),
    (40, 20, 6, 8, (1282526043, 3648138540, 2088579569, 1467279115)),
    (64, 1, 3, 8, (3175533282, 2300524500, 2892469517, 2300524500)),
    (65, 1, 3, 8, (269241722, 1350075014, 2281857888, 1350075014)),
    (100, 40, 9, 6, (1030676065, 1748940083, 3169740800, 2048692100)),
    (127, 2, 5, 6, (1469677242, 3938646949, 3956661101, 4073707520)),
    (128, 2, 5, 6, (2019406090, 687406665, 2320770875, 687406665)),
    (129, 2, 5, 6, (4050179864, 121755090, 3175336654, 121755090)),
    (193, 3, 9, 6, (3629388752, 2971508583, 186758968, 832435172)),
    (300, 5, 7, 4, (641455866, 673305375, 345372703, 469302486)),
    (300, 40, 50, 4, (907108858, 4182073683, 1045562064, 1742012106)),
    (300, 300, 30, 2, (3147338089, 2563649945, 2758851622, 406897812)),
]


def _rows(seed: int, rows: int, cols: int, spread: int) -> Any:
    """Return numbers below ``spread``, by a generator that any language has."""
    numbers = []
    for _ in range(rows * cols):
        seed = (seed * 1_103_515_245 + 12_345) % (1 << 31)
        numbers.append(seed // 65_536 % spread)
    return np.array(numbers).reshape(rows, cols)


def _sum(places: Any) -> int:
    return zlib.crc32(places.astype("<i4").tobytes())


@pytest.mark.parametrize(("cols", "k", "spread", "rows", "found"), FOUND)
def test_equal_numbers(
    cols: int, k: int, spread: int, rows: int, found: tuple[int, int, int, int]
) -> None:
    """Of many equal numbers those come first that are first in C++; a NaN is the largest."""
    whole = _rows(cols + k, rows, cols, spread)
    floats = np.where(whole == 1, np.nan, whole)
    each = [
        _sum(largest_places(numbers, k, largest=largest))
        for numbers in (whole, whole.astype(np.float32), floats)
        for largest in (True, False)
    ]
    assert [*found[:2], *found] == each


@pytest.mark.parametrize(
    ("cols", "k", "first", "found"),
    [
        (200, 199, [100, 99, 101, 98, 102, 97, 103, 96, 104, 95, 94, 105], 1006063883),
        (1000, 500, [499, 500, 498, 501, 497, 502, 496, 503, 495, 504, 494, 505], 399522772),
        (1000, 999, [500, 499, 501, 498, 502, 497, 503, 496, 495, 504, 494, 505], 1536070593),
    ],
)
def test_up_and_down(cols: int, k: int, first: list[int], found: int) -> None:
    """Medians of three are extreme here, until a heap takes over: as in C++."""
    half = np.arange(cols // 2)
    places = largest_places(np.concatenate([half, half[::-1]])[np.newaxis], k)
    assert first == places[0, :12].tolist()
    assert found == _sum(places)


def test_none_and_extremes() -> None:
    """No place at all; the least integer, which has no opposite; and infinity beside NaN."""
    assert (2, 0) == largest_places(np.ones((2, 3)), 0).shape
    least = np.array([[5, -(1 << 63), (1 << 63) - 1, -1]])
    assert [[2, 0, 3, 1]] == largest_places(least, 4).tolist()
    assert [[1, 3, 0, 2]] == largest_places(least, 4, largest=False).tolist()
    assert [[1, 0]] == largest_places(np.array([[np.inf, np.nan]]), 2).tolist()
    beside = np.array([[np.inf, np.nan, -np.inf, 3]])
    assert [[1, 0, 3, 2]] == largest_places(beside, 4).tolist()
    assert [[2, 3, 0, 1]] == largest_places(beside, 4, largest=False).tolist()


def test_more_than_there_are() -> None:
    """As many as there are columns, and no more."""
    step = TopPlaces((0,), INT64, 3)
    assert (7, 3) == step.shape((7, 3))
    assert (7, 3) == step.shape((7, symbol("n")))
    with pytest.raises(ShapeError, match=r"^the 3 largest in rows of length 2: expected at most 2"):
        step.shape((7, 2))


def _places(*numbers: int) -> Tile:
    return Tile(1, len(numbers), INT64, np.array([numbers], INT64))


def test_selector_of() -> None:
    """Streams in ascending order, each once, below the width; in timing mode those given."""
    function, given = SelectorOf(), Selector((0, 1), 4)
    assert Selector((0, 3), 4) == function.apply(_places(3, 0), given)
    assert given == function.apply(Tile(1, 2, INT64), given)
    assert Selector((), 4) == function.apply(_places(), Selector((), 4))
    for numbers in ((4, 0), (-1, 0), (2, 2)):
        with pytest.raises(ValueError, match=r"are named: expected different ones below 4$"):
            function.apply(_places(*numbers), given)
    assert 1 == function.fixed_cycles


def test_what_selectors_are_made_of() -> None:
    """A row of integers, as many as the selector given has streams."""
    two = SelectorType(4, hits=2)
    fine = (TileType(1, 2, INT64), two)
    assert fine == SelectorOf().check("it", fine)
    assert fine[1] == SelectorOf().infer(*fine)
    for places in (
        TileType(2, 2, INT64), TileType(1, 3, INT64), TileType(1, 2, np.dtype(np.float32)), two,
    ):  # fmt: skip
        with pytest.raises(ShapeError) as caught:
            SelectorOf().check("it", (places, two))
        assert caught.value.message == (
            f"it is given {places} and {two}: expected a row of integers and a selector of as "
            "many streams"
        )

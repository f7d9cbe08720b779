"""Walks of tensors and views, and tensors in tiles, in full."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fabric import Layout, Program, ShapeError, dtype_named
from operators import LinearOffChipLoad, Scratch, Tensor
from operators.tiles.grid import (
    Grid,
    numbers_below,
    positions,
    reach,
    row_major_strides,
    walk,
)

WALKED: list[tuple[tuple[int, ...], list[tuple[Any, ...]]]] = [
    ((), [((), 0, None)]),
    ((1,), [((0,), 1, None)]),
    ((3,), [((0,), 0, None), ((1,), 0, None), ((2,), 1, None)]),
    (
        (2, 2),
        [((0, 0), 0, None), ((0, 1), 1, None), ((1, 0), 0, None), ((1, 1), 2, None)],
    ),
    ((2, 1), [((0, 0), 1, None), ((1, 0), 2, None)]),
    ((0,), [((), 1, 0)]),
    ((2, 0), [((0,), 1, 0), ((1,), 2, 0)]),
    ((2, 0, 3), [((0,), 2, 1), ((1,), 3, 1)]),
    ((0, 2, 0), [((), 3, 2)]),
]


@pytest.mark.parametrize(("shape", "walked"), WALKED)
def test_positions(shape: tuple[int, ...], walked: list[tuple[Any, ...]]) -> None:
    """Row by row; each position closes what it is the last of, an empty part itself, too."""
    assert walked == [*map(tuple, positions(shape))]
    # A view shows the same, with a number for a place.
    strides = (10, 3, 1)[: len(shape)]
    seen = [
        (None if empty is not None else 5 + sum(i * s for i, s in zip(at, strides, strict=True)),
         stop, empty)
        for at, stop, empty in walked
    ]  # fmt: skip
    assert seen == [*map(tuple, walk(shape, strides, 5))]


def test_strides_and_ends() -> None:
    """How far apart neighbours are; the lowest and the highest number of a view."""
    assert (12, 4, 1) == row_major_strides((2, 3, 4))
    assert () == row_major_strides(())
    for shape, strides, offset, ends in (
        ((2, 3), (3, 1), 4, (4, 4 + 3 + 2)),
        ((3,), (-2,), 4, (0, 4)),
        ((3, 4), (-5, 2), 20, (10, 26)),
        ((2, 2), (0, 0), 7, (7, 7)),
        ((), (), 3, (3, 3)),
        ((2, 0), (1, 1), 3, None),
    ):
        assert ends == reach(shape, strides, offset)
    assert ["none, since there is nothing to read", "0 to 0", "0 to 1,233"] == [
        numbers_below(count) for count in (0, 1, 1234)
    ]


def test_tiles_of_a_tensor() -> None:
    """3 x 4 x 6 in tiles of 2 x 3: 3 x 2 x 2 of them, side by side in a matrix of 12 x 6."""
    x = np.arange(72).reshape(3, 4, 6)
    grid = Grid("It", Tensor.of(x), (2, 3))
    assert ((3, 2, 2), 12) == (grid.shape, grid.count)
    assert str(grid) == "a tensor [3, 4, 6] in tiles of 2x3"
    places = itertools.product(range(3), range(2), range(2))
    matrix = x.reshape(12, 6)
    for number, (at, row, col) in enumerate(places):
        expected = x[at, 2 * row : 2 * row + 2, 3 * col : 3 * col + 3]
        assert expected.tolist() == matrix[grid.slices(number)].tolist()
    assert grid.layout((3, 2, 2), (4, 2, 1), 0) == Layout.tiled((3, 4, 6), (1, 2, 3))
    assert grid.layout((2, 3), (2, 4), 1) == Layout(
        (3, 4, 6), (1, 2, 3), (2, 3), (2, 1), (1, 0), (0, 0, 3)
    )
    assert grid.layout((2, 0), (2, 1), 0) is None
    assert Grid("It", Tensor((0, 4)), (2, 2)).layout((), (), 0) is None


REFUSED = [
    ((4,), (1, 1)),
    ((4, 6), (0, 3)),
    ((4, 6), (2, 0)),
    ((4, 6), (3, 3)),
    ((4, 6), (2, 4)),
]


@pytest.mark.parametrize(("shape", "tile"), REFUSED)
def test_tiles_that_do_not_divide(shape: tuple[int, ...], tile: tuple[int, int]) -> None:
    """Two dimensions, and divisors of both."""
    with pytest.raises(ShapeError) as caught:
        Grid("It", Tensor(shape), tile)
    assert str(caught.value).endswith(
        f"It cuts a tensor {list(shape)} into tiles of {tile[0]}x{tile[1]}: expected tiles that "
        "divide its last two dimensions"
    )


def test_nothing_below_zero() -> None:
    """A tensor may be empty; it has no dimension of -1."""
    assert 0 == Grid("It", Tensor((0, 0)), (2, 2)).count
    with pytest.raises(ShapeError, match=r"It is given a tensor \[-1, 2\]: expected no dimension"):
        Grid("It", Tensor((-1, 2)), (1, 1))


@pytest.mark.parametrize(
    ("tensor", "tile", "real"),
    [
        (Tensor.of(np.arange(4).reshape(2, 2)), (1, 1), True),
        (Tensor.of(np.arange(4).reshape(2, 2)), (1, 2), False),
        (Tensor.of(np.arange(4).reshape(2, 2)), (2, 1), False),
        (Tensor.of(np.arange(4, dtype=np.uint8).reshape(2, 2)), (1, 1), True),
        (Tensor.of(np.arange(4.0).reshape(2, 2)), (1, 1), False),
        (Tensor.of(np.ones((2, 2), bool)), (1, 1), False),
        (Tensor((2, 2), dtype="int32"), (1, 1), False),
        (Tensor((2, 2), lambda: np.ones((2, 2)), dtype="int32"), (1, 1), True),
        (Tensor((2, 2), np.ones((2, 2)), dtype="float32"), (1, 1), False),
    ],
)
def test_single_integers(tensor: Tensor, tile: tuple[int, int], real: bool) -> None:
    """They may be addresses: then they are there in timing mode, too."""
    assert real is Grid("It", tensor, tile).has_integers


@pytest.mark.parametrize(
    ("dtype", "shape", "tile", "fine"),
    [
        ("int4", (2, 6), (1, 3), False),
        ("int4", (2, 6), (1, 2), True),
        ("int4", (2, 3), (1, 3), True),
        ("int8", (2, 6), (1, 3), True),
        ("mxfp8_e4m3", (2, 96), (1, 32), True),
        ("mxfp8_e4m3", (2, 96), (1, 96), True),
        ("mxfp8_e4m3", (2, 96), (1, 48), False),
        ("mxfp8_e4m3", (2, 40), (1, 40), True),
        ("mxfp8_e4m3", (2, 40), (1, 20), False),
    ],
)
def test_tiles_begin_with_whole_bytes_and_blocks(
    dtype: str, shape: tuple[int, int], tile: tuple[int, int], fine: bool
) -> None:
    """An even number of half bytes unless they are a row; blocks of 32 unless they are a row."""
    grid = Grid("It", Tensor(shape, dtype=dtype), tile)
    if fine:
        grid.check(dtype_named(dtype))
        return
    with pytest.raises(ShapeError) as caught:
        grid.check(dtype_named(dtype))
    told = (
        f"It cuts rows of int4 into tiles {tile[1]} wide: expected an even number, so that a tile "
        "begins with a whole byte"
        if dtype == "int4"
        else f"It cuts a tensor {list(shape)} of mxfp8_e4m3 into tiles {tile[1]} wide: expected "
        "whole rows, or a multiple of the 32 numbers that share a scale"
    )
    assert caught.value.message == told


def test_blocks_of_a_view() -> None:
    """Whole rows of a view of rows of another length are cut within a block."""
    whole = Tensor((4, 48), dtype="mxfp8_e4m3")
    mx = dtype_named("mxfp8_e4m3")
    Grid("It", whole, (1, 48)).check(mx)
    with pytest.raises(ShapeError, match="numbers that share a scale"):
        Grid("It", whole.viewed((2, 96)), (1, 96)).check(mx)
    with pytest.raises(ShapeError, match="numbers that share a scale"):
        Grid("It", whole.viewed((6, 32)), (1, 32)).check(mx)
    Grid("It", Tensor((4, 96), dtype="mxfp8_e4m3").viewed((12, 32)), (1, 32)).check(mx)


def test_values_that_would_change() -> None:
    """An array that is there already is looked at when it is wired."""
    with Program("changed"), pytest.raises(ShapeError) as caught:
        LinearOffChipLoad(Tensor((1, 2), np.array([[1.0, 300.0]]), dtype="int8"), (1, 2))()
    assert caught.value.message.startswith("LinearOffChipLoad: a tensor [1, 2] has 300")
    assert caught.value.message.endswith(
        ": expected values that stay what they are, or Tensor(..., dtype=...) of a type that holds "
        "them"
    )


def test_views_and_their_base() -> None:
    """A view of a view is one of the whole; it has as many elements."""
    whole = Tensor((4, 6), np.arange(24.0).reshape(4, 6), dtype="float32")
    view = whole.viewed((2, 12)).viewed((8, 3))
    assert (whole, whole, (8, 3)) == (view.base, whole.base, view.shape)
    assert np.arange(24.0).reshape(8, 3).tolist() == view.array.tolist()
    assert view.elements() is whole.elements()
    with pytest.raises(Exception, match=r"Tensor\.viewed: shape is \[5, 5\]: expected as many"):
        whole.viewed((5, 5))
    assert isinstance(Scratch((2, 3)).viewed((3, 2)), Scratch)
    assert not Scratch((2, 3)).has_data

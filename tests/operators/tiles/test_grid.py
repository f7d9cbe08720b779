from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fabric import Layout, ShapeError, dtype_named
from operators import Tensor
from operators.tiles.grid import (
    Grid,
    positions,
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
def test_positions_close_the_dimensions_they_end(
    shape: tuple[int, ...], walked: list[tuple[Any, ...]]
) -> None:
    assert walked == [*map(tuple, positions(shape))]
    # A view shows the same, with a number for a place.
    strides = (10, 3, 1)[: len(shape)]
    seen = [
        (None if empty is not None else 5 + sum(i * s for i, s in zip(at, strides, strict=True)),
         stop, empty)
        for at, stop, empty in walked
    ]  # fmt: skip
    assert seen == [*map(tuple, walk(shape, strides, 5))]


def test_tensor_in_tiles_equals_its_blocks() -> None:
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
def test_single_integers_have_data_in_timing_mode(
    tensor: Tensor, tile: tuple[int, int], real: bool
) -> None:
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

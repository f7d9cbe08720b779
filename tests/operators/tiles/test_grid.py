from __future__ import annotations

import pytest

from fabric import ShapeError, dtype_named
from operators import Tensor
from operators.tiles.grid import (
    Grid,
)


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

"""What of users' values fits: integers of any type, tiles that are valid in part."""

from __future__ import annotations

import numpy as np
import pytest

from fabric import Tile, TileType
from fabric.graph.values.fit import misfit, whole
from fabric.messages.telling.errors import Refusal


@pytest.mark.parametrize("number", [0, 1, np.int64(0), np.uint8(7)])
def test_taken(number: object) -> None:
    """What is at least 0 becomes an integer of Python's."""
    result = whole(number, "cycles are charged")
    assert (int, number) == (type(result), result)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (-1, "-1 cycles are charged: expected at least 0"),
        (True, "True cycles are charged: expected an integer"),
        (1.0, "1.0 cycles are charged: expected an integer"),
        (None, "None cycles are charged: expected an integer"),
    ],
)
def test_refused(number: object, said: str) -> None:
    """What is below 0, a truth value or no integer is refused as it was written."""
    with pytest.raises(Refusal) as refused:
        whole(number, "cycles are charged")
    assert said == str(refused.value)


@pytest.mark.parametrize(("rows", "cols"), [(0, 0), (1, 3), (2, 1), (2, 3)])
def test_valid_in_part(rows: int, cols: int) -> None:
    """From none to all of a tile's rows and columns may be valid."""
    f32 = np.dtype(np.float32)
    tile = Tile(2, 3, f32, np.zeros((2, 3), f32), valid_rows=rows, valid_cols=cols)
    assert misfit(tile, TileType(2, 3, f32), True) is None

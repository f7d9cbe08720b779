from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Layout, Program, ShapeError, simulate
from operators import LinearOffChipStore, matrix_of
from operators.kernels.model import spill
from operators.shape import redimensioned
from tests.fabric.layouts.layouts import tensor
from tests.operators.test_convert import orders, tiles
from tests.operators.test_through_memory import rows_of, source
from tests.profiles import examples

FLOAT = np.dtype(np.float32)
SHAPE = (3, 4, 2, 8)
# Two heads of one token of three requests; their rows have different distances in memory.
HEADS = Layout.tiled(SHAPE, (3, 2, 1, 8))

# Six of eight neighbours, from the third on: no row of a matrix begins there.
PART = Layout((3, 4, 2, 8), (1, 1, 1, 6), (2, 3), (1, 1), (1, 0), (0, 1, 1, 2))


@given(st.data())
@examples(quick=5, deep=25)
def test_spilled_tiles_are_read_in_another_order(data: st.DataObject) -> None:
    usual = st.just(HEADS) | tiles(SHAPE).flatmap(lambda tile: orders(SHAPE, tile))
    written, read = data.draw(usual), data.draw(st.just(PART) | usual)
    with Program("spilled", mode="functional") as program:
        stream = spill(source(written), written, read)
        LinearOffChipStore("y")(redimensioned(stream, (1, read.count, 1)))
    program.expect(rtol=0, atol=0, y=lambda: rows_of(tensor(SHAPE).astype(np.float32), read))

    assert simulate(program).verified


def test_cut_tiles_are_not_tiles_of_memory() -> None:
    for layout in (HEADS, PART):
        with pytest.raises(ShapeError, match="do not form a matrix in memory"):
            matrix_of(layout)

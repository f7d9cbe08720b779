"""Streams of any tiles through off-chip memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Layout, Program, ShapeError, TileType, simulate
from operators import LinearOffChipStore, matrix_of
from operators.kernels.kernel import Operand, may_be_spilled
from operators.kernels.model import spill
from operators.kernels.tensors import Computed, Opaque, Stored, View
from operators.shape import redimensioned
from tests.fabric.layouts.layouts import tensor
from tests.operators.test_convert import orders, tiles
from tests.operators.test_through_memory import rows_of, source
from tests.profiles import examples

FLOAT = np.dtype(np.float32)
SHAPE = (3, 4, 2, 8)
HEADS = Layout.tiled(SHAPE, (3, 2, 1, 8))
"""Two heads of one token of three requests: their rows are unevenly far apart in memory."""

PART = Layout((3, 4, 2, 8), (1, 1, 1, 6), (2, 3), (1, 1), (1, 0), (0, 1, 1, 2))
"""Six neighbours of eight, beginning behind the first two: no row of a matrix begins there."""


@given(st.data())
@examples(quick=10, deep=25)
def test_what_is_read_is_what_was_written(data: st.DataObject) -> None:
    """Whatever the tiles on both sides are."""
    usual = st.just(HEADS) | tiles(SHAPE).flatmap(lambda tile: orders(SHAPE, tile))
    written, read = data.draw(usual), data.draw(st.just(PART) | usual)
    with Program("spilled", mode="functional") as program:
        stream = spill(source(written), written, read)
        LinearOffChipStore("y")(redimensioned(stream, (1, read.count, 1)))
    program.expect(rtol=0, atol=0, y=lambda: rows_of(tensor(SHAPE).astype(np.float32), read))

    assert simulate(program).verified


def test_such_tiles_are_none_of_memory() -> None:
    """What is cut could not be written as it is."""
    for layout in (HEADS, PART):
        with pytest.raises(ShapeError, match="none of a matrix in memory"):
            matrix_of(layout)


@pytest.mark.parametrize(
    ("written", "read", "tiles"),
    [
        # Of heads of several tokens those of one request; of a row as many as divide all of it.
        (HEADS, PART, ((2, 8), (1, 2))),
        (PART, HEADS, ((1, 2), (2, 8))),
        (Layout.tiled(SHAPE, (3, 2, 1, 4)), Layout.tiled(SHAPE, (1, 4, 1, 8)), ((2, 4), (4, 8))),
        (Layout.tiled(SHAPE, (1, 4, 1, 8)), Layout.tiled(SHAPE, (3, 4, 2, 8)), ((4, 8), (24, 8))),
        (
            Layout((12, 9), (2, 6), (6, 1), (2, 1), (0, 1), (0, 3)),
            Layout((12, 9), (2, 4), (6, 2), (2, 2), (0, 1), (0, 3)),
            ((1, 3), (1, 1)),
        ),
        # Two rows that begin behind the first one, of which a row is one of memory.
        (
            Layout((6, 4), (2, 4), (2,), (2,), (0,), (1, 0)),
            Layout((6, 4), (2, 2), (2, 2), (2, 2), (0, 1), (2, 0)),
            ((1, 4), (2, 2)),
        ),
    ],
)
def test_pass_in_the_largest_rectangles(
    written: Layout, read: Layout, tiles: tuple[tuple[int, int], ...]
) -> None:
    """Tiles are cut along one dimension after the other, as far as memory asks for."""
    with Program("spilled", mode="functional") as program:
        stream = spill(source(written), written, read)
        LinearOffChipStore("y")(redimensioned(stream, (1, read.count, 1)))
    nodes = program.nodes[1:]
    (stored,) = (each for each in nodes if each.operator.off_chip == "write" and each.output_types)
    (loaded,) = (each for each in nodes if each.operator.off_chip == "read")
    before, behind = stored.input_types[-1].value, loaded.output_types[0].value
    assert isinstance(before, TileType)
    assert isinstance(behind, TileType)
    assert tiles == ((before.rows, before.cols), (behind.rows, behind.cols))


def test_what_memory_can_give() -> None:
    """Tiles of matrices on both sides, and what is there anyway; no rows of experts."""
    rows = Layout.tiled(SHAPE, (1, 1, 2, 8))

    def given(layout: Layout) -> View:
        return View.of(Computed("x", SHAPE, FLOAT, layout))

    opaque = View.of(Opaque("x", SHAPE, FLOAT, "rows"))
    stored = View.of(Stored.of("x", SHAPE, FLOAT, None))
    for view, layout, expected in (
        (given(rows), rows, True),
        (given(rows), HEADS, False),
        (given(HEADS), rows, False),
        (stored, rows, True),
        (opaque, rows, False),
    ):
        assert expected == may_be_spilled(Operand(view, layout))

"""Scratch and through_memory: tensors that are written in one order and read in another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import operators as op
from fabric import Layout, Program, ShapeError, Stream, simulate
from tests.fabric.layouts.layouts import places, streamed, tensor
from tests.operators.test_convert import orders, tiles
from tests.profiles import examples

ROWS = Layout.tiled((8, 16), (2, 8))
COLUMNS = Layout.tiled((8, 16), (8, 2), order=(1, 0))


def source(layout: Layout) -> Stream:
    x = tensor(layout.shape).astype(np.float32)
    size = layout.rows, layout.cols
    stored = np.stack([tile.reshape(1, *size) for tile in streamed(x, layout)])
    load = op.LinearOffChipLoad(op.Tensor(stored.shape, stored, dtype="float32"), size)
    return load()


def rows_of(x: NDArray[Any], layout: Layout) -> NDArray[Any]:
    return np.concatenate([each.reshape(layout.rows, layout.cols) for each in streamed(x, layout)])


def program_of(written: Layout, read: Layout) -> Program:
    with Program("through memory", mode="functional") as program:
        stream = op.through_memory(source(written), written, read)
        assert stream.shape == (1, *read.trips)
        assert stream.layout == read
        op.LinearOffChipStore("y")(stream)
    x = tensor(written.shape).astype(np.float32).reshape(read.shape)
    inner = read.trips[-1] if read.trips else 1

    def stacked() -> NDArray[Any]:
        found = rows_of(x, read).reshape(-1, inner, read.rows, read.cols)
        return found.transpose(0, 2, 1, 3).reshape(-1, inner * read.cols)

    program.expect(rtol=0, atol=0, y=stacked)
    return program


@given(st.data())
@examples(quick=25, deep=200)
def test_matrix_has_the_tiles_of_its_layout(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(((8, 8), (4, 12), (2, 4, 6), (12,), (2, 3, 2, 4))))
    layout = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
    x = tensor(shape)
    try:
        matrix = op.matrix_of(layout)
    except ShapeError:
        tile = x[tuple(map(slice, layout.tile))].reshape(layout.rows, layout.cols)
        apart = {int(each) for each in np.diff(tile[:, 0])}
        assert len(apart) > 1
        return
    assert matrix.shape[1] % shape[-1] == 0
    (rows, cols), across = matrix.tile, matrix.shape[1] // matrix.tile[1]
    cut = x.reshape(matrix.shape).reshape(-1, rows, across, cols).swapaxes(1, 2)
    found = cut.reshape(-1, rows, cols)[matrix.numbers]
    assert found.reshape(-1, cols).tolist() == rows_of(x, layout).tolist()


def test_matrix_of_uneven_rows_is_refused() -> None:
    with pytest.raises(ShapeError, match="expected equally spaced rows"):
        op.matrix_of(Layout.tiled((2, 4, 6), (2, 2, 6)))
    with pytest.raises(ShapeError, match="expected equally spaced rows"):
        op.matrix_of(Layout((8, 8), (1, 4), (), (), (), (0, 2)))


@given(st.data())
@examples(quick=7, deep=60)
def test_stream_through_memory_has_the_order_that_is_read(data: st.DataObject) -> None:
    shapes = st.sampled_from(((24,), (2, 12), (4, 6), (2, 3, 4)))
    both_shapes = data.draw(shapes), data.draw(shapes)
    written, read = (
        data.draw(tiles(shape).flatmap(lambda tile, shape=shape: orders(shape, tile)))  # type: ignore[misc]
        for shape in both_shapes
    )
    try:
        program = program_of(written, read)
    except ShapeError as error:
        assert "do not form a matrix in memory" in error.message  # noqa: PT017
        return
    assert simulate(program).verified


def test_store_and_load_of_a_scratch_have_one_place() -> None:
    from fabric.graph.wiring.elaborate import elaborate

    placed = elaborate(program_of(ROWS, COLUMNS)).memory_map.tensors
    shared = [each for each in placed if len(each.nodes) > 1]
    assert [each.size_bytes for each in shared] == [8 * 16 * 4]
    kinds = [type(node.operator).__name__ for node in shared[0].nodes]
    assert sorted(kinds) == ["LinearOffChipLoad", "RandomOffChipStore"]


def _program(scratch: op.Scratch) -> Program:
    with Program("scratch", mode="functional") as program:
        rows = op.LinearOffChipLoad(np.arange(1.0, 9).reshape(2, 4), (1, 4))()
        places_of = op.Metadata(np.array([[3], [1]]))()
        done = op.RandomOffChipStore("rows", scratch, (1, 4))(places_of, rows)
        signal = op.Accum(op.SignalAllRead(), rank=2)(done)
        op.LinearOffChipStore("y")(op.LinearOffChipLoad(scratch, (1, 4))(signal))
    return program


def test_scratch_that_is_not_written_is_zero() -> None:
    program = _program(op.Scratch((4, 4)))
    expected = [[0] * 4, [5, 6, 7, 8], [0] * 4, [1, 2, 3, 4]]
    for _ in range(2):
        report = simulate(program)
        assert np.asarray(report.outputs["y"], float).tolist() == expected
        assert list(report.outputs) == ["y"]
        assert report.warnings == simulate(program, mode="timing").warnings


def test_tile_that_was_read_is_not_changed_later() -> None:
    scratch = op.Scratch((2, 4), dtype="float32")
    with Program("twice", mode="functional") as program:
        first = op.LinearOffChipLoad(op.Tensor((1, 4), np.ones((1, 4)), dtype="float32"), (1, 4))()
        done = op.RandomOffChipStore("a", scratch, (1, 4), name="one")(
            op.Metadata(np.array([[0]]))(), first
        )
        before = op.LinearOffChipLoad(scratch, (1, 4))(op.Accum(op.SignalAllRead(), rank=2)(done))
        total = op.Accum(op.SignalAllRead(), rank=2)(before)
        twos = op.Tensor((1, 4), 2 * np.ones((1, 4)), dtype="float32")
        second = op.LinearOffChipLoad(twos, (1, 4))(total)
        place = op.LinearOffChipLoad(op.Tensor((1, 1), np.array([[1]])), (1, 1))(total)
        again = op.RandomOffChipStore("a", scratch, (1, 4), name="two")(place, second)
        after = op.RandomOffChipLoad(scratch, (1, 4))(
            op.LinearOffChipLoad(op.Tensor((1, 2), np.array([[0, 1]])), (1, 1))(
                op.Accum(op.SignalAllRead(), rank=2)(again)
            )
        )
        op.LinearOffChipStore("before")(before)
        op.LinearOffChipStore("after")(after)
    report = simulate(program)
    assert np.asarray(report.outputs["before"]).tolist() == [[1] * 4, [0] * 4]
    assert np.asarray(report.outputs["after"]).tolist() == [[1] * 4 + [2] * 4]


@given(st.data())
@examples(quick=7, deep=60)
def test_loaded_tensor_has_the_order_of_the_layout(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(((8, 8), (2, 4, 6), (12,))))
    layout = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
    x = tensor(shape).astype(np.float32)
    stored = op.Tensor((2, math.prod(shape) // 2), x.reshape(2, -1), dtype="float32")
    with Program("loaded", mode="functional") as program:
        try:
            stream = op.loaded(stored, layout)
        except ShapeError as error:
            assert "do not form a matrix in memory" in error.message  # noqa: PT017
            return
        assert stream.layout == layout
        op.LinearOffChipStore("y")(stream)
    report = simulate(program)
    found = np.asarray(report.outputs["y"])
    inner = layout.trips[-1] if layout.trips else 1
    grouped = found.reshape(-1, layout.rows, inner, layout.cols).swapaxes(1, 2)
    assert grouped.reshape(-1, layout.cols).tolist() == rows_of(x, layout).tolist()
    assert len(places(layout)) == layout.count

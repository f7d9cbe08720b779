"""Scratch and through_memory: what is written is what is read, in any order, shape and tiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout, Program, ShapeError, Stream, simulate
from operators import (
    Accum,
    Consumer,
    LinearOffChipLoad,
    LinearOffChipStore,
    Metadata,
    RandomOffChipLoad,
    RandomOffChipStore,
    Scratch,
    SignalAllRead,
    Tensor,
    loaded,
    matrix_of,
    through_memory,
)
from tests.compiled.both import both
from tests.fabric.layouts.layouts import places, streamed, tensor
from tests.operators.test_convert import orders, tiles
from tests.profiles import examples

ROWS = Layout.tiled((8, 16), (2, 8))
COLUMNS = Layout.tiled((8, 16), (8, 2), order=(1, 0))


def source(layout: Layout) -> Stream:
    """Return the stream of a tensor in the order of ``layout``, stored tile by tile."""
    x = tensor(layout.shape).astype(np.float32)
    size = layout.rows, layout.cols
    stored = np.stack([tile.reshape(1, *size) for tile in streamed(x, layout)])
    load = LinearOffChipLoad(Tensor(stored.shape, stored, dtype="float32"), size)
    return load()


def rows_of(x: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """Return the tiles of ``x`` in the order of ``layout``, each below the one before."""
    return np.concatenate([each.reshape(layout.rows, layout.cols) for each in streamed(x, layout)])


def program_of(written: Layout, read: Layout) -> Program:
    """Return a program that writes in one order and reads in another."""
    with Program("through memory", mode="functional") as program:
        stream = through_memory(source(written), written, read)
        assert stream.shape == (1, *read.trips)
        assert stream.layout == read
        LinearOffChipStore("y")(stream)
    x = tensor(written.shape).astype(np.float32).reshape(read.shape)
    inner = read.trips[-1] if read.trips else 1

    def stacked() -> NDArray[Any]:
        found = rows_of(x, read).reshape(-1, inner, read.rows, read.cols)
        return found.transpose(0, 2, 1, 3).reshape(-1, inner * read.cols)

    program.expect(rtol=0, atol=0, y=stacked)
    return program


class TestMatrix:
    """The matrix of a tensor's tiles."""

    @given(st.data())
    @examples(quick=50, deep=200)
    def test_against_numpy(self, data: st.DataObject) -> None:
        """Its tiles have the elements of the layout's; where there is none, rows are uneven."""
        shape = data.draw(st.sampled_from(((8, 8), (4, 12), (2, 4, 6), (12,), (2, 3, 2, 4))))
        layout = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
        x = tensor(shape)
        try:
            matrix = matrix_of(layout)
        except ShapeError:
            tile = x[tuple(map(slice, layout.tile))].reshape(layout.rows, layout.cols)
            apart = {int(each) for each in np.diff(tile[:, 0])}
            assert len(apart) > 1
            return
        (rows, cols), across = matrix.tile, matrix.shape[1] // matrix.tile[1]
        cut = x.reshape(matrix.shape).reshape(-1, rows, across, cols).swapaxes(1, 2)
        found = cut.reshape(-1, rows, cols)[matrix.numbers]
        assert found.reshape(-1, cols).tolist() == rows_of(x, layout).tolist()

    def test_none(self) -> None:
        """Tiles that begin between others, and rows of uneven distance."""
        with pytest.raises(ShapeError, match="expected rows of equal distance"):
            matrix_of(Layout.tiled((2, 4, 6), (2, 2, 6)))
        with pytest.raises(ShapeError, match="expected rows of equal distance"):
            matrix_of(Layout((8, 8), (1, 4), (), (), (), (0, 2)))


class TestThroughMemory:
    """Written in one order, read in another one."""

    @given(st.data())
    @examples(quick=15, deep=60)
    def test_random_orders(self, data: st.DataObject) -> None:
        """Other tiles of another shape with as many elements."""
        shapes = st.sampled_from(((24,), (2, 12), (4, 6), (2, 3, 4)))
        both_shapes = data.draw(shapes), data.draw(shapes)
        written, read = (
            data.draw(tiles(shape).flatmap(lambda tile, shape=shape: orders(shape, tile)))  # type: ignore[misc]
            for shape in both_shapes
        )
        try:
            program = program_of(written, read)
        except ShapeError as error:
            assert "none of a matrix in memory" in error.message  # noqa: PT017
            return
        assert simulate(program).verified

    def test_reports(self, tmp_path: Path) -> None:
        """Bytes by hand; both engines agree; a second run is the first one again."""
        program = program_of(ROWS, COLUMNS)
        first, second = simulate(program), simulate(program)

        assert first.verified
        assert first.cycles == second.cycles == simulate(program, mode="timing").cycles
        assert list(first.outputs) == list(simulate(program, mode="timing").outputs) == ["y"]
        element_bytes = 4
        # Read from the tensor, written to the scratch, read from it, and stored.
        assert first.off_chip_traffic_bytes == 4 * 8 * 16 * element_bytes
        told = both(lambda: program_of(ROWS, COLUMNS), tmp_path)
        assert told.compiled

    def test_one_place(self) -> None:
        """The store and the load have one place in memory, of the size of the tensor."""
        from fabric.graph.wiring.elaborate import elaborate

        placed = elaborate(program_of(ROWS, COLUMNS)).memory_map.tensors
        shared = [each for each in placed if len(each.nodes) > 1]
        assert [each.size_bytes for each in shared] == [8 * 16 * 4]
        kinds = [type(node.operator).__name__ for node in shared[0].nodes]
        assert sorted(kinds) == ["LinearOffChipLoad", "RandomOffChipStore"]

    def test_one_tile(self) -> None:
        """The whole tensor in one tile."""
        whole = Layout((4, 4), (4, 4), (), (), ())
        assert simulate(program_of(whole, Layout.tiled((16,), (4,)))).verified


class TestScratch:
    """A tensor that is written in the run."""

    @staticmethod
    def program(scratch: Scratch) -> Program:
        """Return a program that writes two of four rows and reads all of them."""
        with Program("scratch", mode="functional") as program:
            rows = LinearOffChipLoad(np.arange(1.0, 9).reshape(2, 4), (1, 4))()
            places_of = Metadata(np.array([[3], [1]]))()
            done = RandomOffChipStore("rows", scratch, (1, 4))(places_of, rows)
            signal = Accum(SignalAllRead(), rank=2)(done)
            LinearOffChipStore("y")(LinearOffChipLoad(scratch, (1, 4))(signal))
        return program

    def test_zeros(self) -> None:
        """What is not written is zero, in each run of a program; nothing is an output."""
        program = self.program(Scratch((4, 4)))
        expected = [[0] * 4, [5, 6, 7, 8], [0] * 4, [1, 2, 3, 4]]
        for _ in range(2):
            report = simulate(program)
            assert np.asarray(report.outputs["y"], float).tolist() == expected
            assert list(report.outputs) == ["y"]
            assert report.warnings == simulate(program, mode="timing").warnings

    def test_what_was_read_stays(self) -> None:
        """A tile that was read is not changed by what is written later; random loads see it."""
        scratch = Scratch((2, 4), dtype="float32")
        with Program("twice", mode="functional") as program:
            first = LinearOffChipLoad(Tensor((1, 4), np.ones((1, 4)), dtype="float32"), (1, 4))()
            done = RandomOffChipStore("a", scratch, (1, 4), name="one")(
                Metadata(np.array([[0]]))(), first
            )
            before = LinearOffChipLoad(scratch, (1, 4))(Accum(SignalAllRead(), rank=2)(done))
            total = Accum(SignalAllRead(), rank=2)(before)
            twos = Tensor((1, 4), 2 * np.ones((1, 4)), dtype="float32")
            second = LinearOffChipLoad(twos, (1, 4))(total)
            place = LinearOffChipLoad(Tensor((1, 1), np.array([[1]])), (1, 1))(total)
            again = RandomOffChipStore("a", scratch, (1, 4), name="two")(place, second)
            after = RandomOffChipLoad(scratch, (1, 4))(
                LinearOffChipLoad(Tensor((1, 2), np.array([[0, 1]])), (1, 1))(
                    Accum(SignalAllRead(), rank=2)(again)
                )
            )
            LinearOffChipStore("before")(before)
            LinearOffChipStore("after")(after)
        report = simulate(program)
        assert np.asarray(report.outputs["before"]).tolist() == [[1] * 4, [0] * 4]
        assert np.asarray(report.outputs["after"]).tolist() == [[1] * 4 + [2] * 4]

    def test_element_type(self) -> None:
        """Tiles of another element type are refused, that of the hardware, too."""
        with Program("types"):
            rows = LinearOffChipLoad(Tensor((2, 4), dtype="float32"), (1, 4))()
            numbers = Metadata(np.array([[0], [1]]))()
            store = RandomOffChipStore("y", Scratch((2, 4)), (1, 4))
            with pytest.raises(ShapeError, match="expected one element type"):
                store(numbers, rows)


class TestLoaded:
    """A tensor read in the order of a layout."""

    @given(st.data())
    @examples(quick=15, deep=60)
    def test_against_numpy(self, data: st.DataObject) -> None:
        """Another shape of the same elements, and parts of it."""
        shape = data.draw(st.sampled_from(((8, 8), (2, 4, 6), (12,))))
        layout = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
        x = tensor(shape).astype(np.float32)
        stored = Tensor((2, math.prod(shape) // 2), x.reshape(2, -1), dtype="float32")
        with Program("loaded", mode="functional") as program:
            try:
                stream = loaded(stored, layout)
            except ShapeError as error:
                assert "none of a matrix in memory" in error.message  # noqa: PT017
                return
            assert stream.layout == layout
            LinearOffChipStore("y")(stream)
        report = simulate(program)
        found = np.asarray(report.outputs["y"])
        inner = layout.trips[-1] if layout.trips else 1
        grouped = found.reshape(-1, layout.rows, inner, layout.cols).swapaxes(1, 2)
        assert grouped.reshape(-1, layout.cols).tolist() == rows_of(x, layout).tolist()
        assert len(places(layout)) == layout.count

    def test_slice_for_each(self) -> None:
        """A part of the tensor, once for each element of a reference."""
        x = np.arange(64.0).reshape(8, 8)
        part = Layout((8, 8), (2, 4), (2,), (2,), (0,), (4, 4))
        with Program("slice", mode="functional") as program:
            guide = Metadata(np.array([0, 0]))()
            stream = loaded(Tensor.of(x), part, guide)
            LinearOffChipStore("y")(stream)
        assert stream.shape == (1, 2, 2)
        expected = np.concatenate([x[4:6, 4:], x[6:, 4:]], axis=1)
        program.expect(y=lambda: np.concatenate([expected, expected]))
        assert simulate(program).verified

    def test_views(self) -> None:
        """A view of a tensor has its data and its place, and is no other size."""
        x = Tensor((4, 4), np.arange(16.0).reshape(4, 4))
        view = x.viewed((2, 8)).viewed((8, 2))
        assert view.base is x
        assert view.array.tolist() == np.arange(16).reshape(8, 2).tolist()
        with Program("views") as program:
            Consumer()(LinearOffChipLoad(x, (4, 4))())
            Consumer()(LinearOffChipLoad(view, (8, 2))())
        from fabric.graph.wiring.elaborate import elaborate

        assert len(elaborate(program).memory_map.tensors) == 1

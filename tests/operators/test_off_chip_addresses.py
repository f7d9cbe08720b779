"""Bursts carry the addresses of what numpy would touch, and tensors do not overlap."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from fabric import Program, Report, simulate
from fabric.wiring.elaborate import elaborate
from fabric.wiring.layout import ALIGNMENT_BYTES, Placed
from operators import (
    Consumer,
    LinearOffChipLoad,
    LinearOffChipStore,
    Metadata,
    RaggedIntegers,
    RandomOffChipLoad,
    RandomOffChipStore,
    Tensor,
)
from tests.operators.recording_memory import bytes_of, recorded

Offsets = NDArray[np.int64]
"""Of the bytes of tiles: tile, row, byte of the row."""


def tiles_of(shape: tuple[int, ...], tile: tuple[int, int], itemsize: int) -> Offsets:
    """Return where numpy has the bytes of a row-major tensor's tiles, in row-major order."""
    (rows, cols), width = tile, shape[-1]
    matrix = np.arange(math.prod(shape) * itemsize).reshape(-1, width, itemsize)
    cut = matrix.reshape(len(matrix) // rows, rows, width // cols, cols, itemsize)
    return cut.swapaxes(1, 2).reshape(-1, rows, cols * itemsize)


def same(bursts: list[Any], expected: Offsets, first_address: int) -> bool:
    """Whether burst n moves the bytes of tile n, row by row."""
    found = [bytes_of(burst) - first_address for burst in bursts]
    return len(found) == len(expected) and all(map(np.array_equal, found, expected))


def completed(program: Program) -> Report:
    """Run ``program`` to its end."""
    report = simulate(program)
    assert report.status == "completed", report.error
    return report


def places(program: Program) -> dict[str, Placed]:
    """Return where each operator's tensor is."""
    layout = elaborate(program).layout
    return {node.name: placed for placed in layout.tensors for node in placed.nodes}


_itemsizes = {"int8": 1, "bfloat16": 2, "float32": 4, "int64": 8}
_dtypes = st.sampled_from(list(_itemsizes))
_grids = st.tuples(
    st.lists(st.integers(1, 3), max_size=2),  # outer dimensions
    *[st.integers(1, 4)] * 4,  # tiles down and across, rows and columns of each
)


@st.composite
def _cut(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Return a tensor's shape and a tile's."""
    outer, down, across, rows, cols = draw(_grids)
    return (*outer, down * rows, across * cols), (rows, cols)


@st.composite
def _view(draw: st.DrawFn, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape and the strides of a view of some of ``count`` tiles."""
    shape, strides, last = [], [], count - 1
    for _ in range(draw(st.integers(1, 3))):
        stride = draw(st.integers(0, count))
        size = draw(st.integers(1, 4 if not stride else 1 + min(3, last // stride)))
        last -= stride * (size - 1)
        shape.append(size)
        strides.append(stride)
    return tuple(shape), tuple(strides)


class TestLoads:
    @given(st.data(), _cut(), _dtypes, st.integers(0, 3))
    def test_linear(
        self,
        data: st.DataObject,
        cut: tuple[tuple[int, ...], tuple[int, int]],
        dtype: str,
        references: int,
    ) -> None:
        """A view, read once or for each element of a reference, names the bytes numpy touches."""
        (shape, tile), itemsize = cut, _itemsizes[dtype]
        tiles = tiles_of(shape, tile, itemsize)
        view, strides = data.draw(_view(len(tiles)))
        with recorded() as bursts, Program("load") as program:
            reference = Metadata(np.zeros(references, np.int64))() if references else None
            loaded = LinearOffChipLoad(
                Tensor(shape, dtype=dtype), tile, view, strides, name="load"
            )(reference)
            Consumer()(loaded)
            completed(program)

        step = tiles.strides[0]
        viewed = as_strided(
            tiles, (*view, *tiles.shape[1:]), (*(step * s for s in strides), *tiles.strides[1:])
        ).reshape(-1, *tiles.shape[1:])
        expected = np.concatenate([viewed] * max(1, references))
        assert same(bursts["load"], expected, places(program)["load"].first_address)
        assert not any(burst.write for burst in bursts["load"])

    @given(st.data(), _cut(), _dtypes)
    def test_random(
        self, data: st.DataObject, cut: tuple[tuple[int, ...], tuple[int, int]], dtype: str
    ) -> None:
        """An address names the bytes of its tile."""
        (shape, tile), itemsize = cut, _itemsizes[dtype]
        tiles = tiles_of(shape, tile, itemsize)
        chosen = data.draw(st.lists(st.integers(0, len(tiles) - 1), min_size=1, max_size=6))
        with recorded() as bursts, Program("load") as program:
            addresses = Metadata(np.array(chosen))()
            Consumer()(RandomOffChipLoad(Tensor(shape, dtype=dtype), tile, name="load")(addresses))
            completed(program)

        assert same(bursts["load"], tiles[chosen], places(program)["load"].first_address)


class TestStores:
    @given(_cut(), _dtypes)
    def test_linear(self, cut: tuple[tuple[int, ...], tuple[int, int]], dtype: str) -> None:
        """Tiles go where they stand in the matrix that functional mode stores."""
        shape, tile = cut
        with recorded() as bursts, Program("store") as program:
            LinearOffChipStore("y", name="store")(
                LinearOffChipLoad(Tensor(shape, dtype=dtype), tile)()
            )
            completed(program)

        placed = places(program)["store"]
        assert same(bursts["store"], tiles_of(shape, tile, _itemsizes[dtype]), placed.first_address)
        assert all(burst.write for burst in bursts["store"])
        assert placed.size_bytes == math.prod(shape) * _itemsizes[dtype]

    def test_linear_of_unknown_width(self) -> None:
        """Where data decide how wide the matrix is, tiles stand one after the other."""
        with recorded() as bursts, Program("store") as program:
            ragged = RaggedIntegers([[0, 1], [0, 1, 2]])()
            tiles = RandomOffChipLoad(Tensor((9, 2), dtype="int8"), (3, 2))(ragged)
            LinearOffChipStore("y", name="store")(tiles)
            completed(program)

        first = places(program)["store"].first_address
        found = [bytes_of(burst).ravel().tolist() for burst in bursts["store"]]
        assert [list(range(first + 6 * n, first + 6 * n + 6)) for n in range(5)] == found

    @given(st.data(), _cut(), _dtypes)
    def test_random(
        self, data: st.DataObject, cut: tuple[tuple[int, ...], tuple[int, int]], dtype: str
    ) -> None:
        """An address names the bytes of its tile in the output, not in what was there before."""
        (shape, tile), tensor = cut, Tensor(cut[0], dtype=dtype)
        tiles = tiles_of(shape, tile, _itemsizes[dtype])
        count = len(tiles)
        chosen = data.draw(st.permutations(range(count)))
        with recorded() as bursts, Program("store") as program:
            linear = LinearOffChipLoad(tensor, tile, (count,), (1,), name="load")()
            addresses = Metadata(np.array(chosen))()
            RandomOffChipStore("y", tensor, tile, name="store")(addresses, linear)
            completed(program)

        found = places(program)
        assert same(bursts["store"], tiles[chosen], found["store"].first_address)
        assert found["store"].first_address != found["load"].first_address


class TestLayout:
    @given(st.lists(st.tuples(_cut(), _dtypes, st.integers(1, 2)), min_size=1, max_size=4))
    def test_tensors_do_not_overlap(
        self, tensors: list[tuple[tuple[tuple[int, ...], tuple[int, int]], str, int]]
    ) -> None:
        """Each has a place of its own, one for all who read it, and bursts stay inside of it."""
        with recorded() as bursts, Program("several") as program:
            for number, ((shape, tile), dtype, readers) in enumerate(tensors):
                tensor = Tensor(shape, dtype=dtype)
                for reader in range(readers):
                    loaded = LinearOffChipLoad(tensor, tile, name=f"load_{number}_{reader}")()
                    LinearOffChipStore(f"y_{number}_{reader}")(loaded)
            completed(program)

        layout = elaborate(program).layout.tensors
        assert sum(1 + readers for _, _, readers in tensors) == len(layout)
        assert all(placed.first_address % ALIGNMENT_BYTES == 0 for placed in layout)
        moved = [
            {
                address
                for node in placed.nodes
                for burst in bursts[node.name]
                for address in bytes_of(burst).ravel().tolist()
            }
            for placed in layout
        ]
        for placed, addresses in zip(layout, moved, strict=True):
            assert placed.size_bytes is not None
            first = placed.first_address
            assert addresses == set(range(first, first + placed.size_bytes))
        for before, after in pairwise(layout):
            assert before.first_address + (before.size_bytes or 0) <= after.first_address

    def test_of_unknown_size_comes_last(self) -> None:
        """The place of an output of unknown size has room for more than a run writes in a day."""
        with Program("ragged") as program:
            ragged = RaggedIntegers([[0, 1], [0, 1, 2]])()
            tiles = RandomOffChipLoad(Tensor((6, 2)), (3, 2), name="load")(ragged)
            LinearOffChipStore("y", name="store")(tiles)
            x = Tensor((4, 4))
            LinearOffChipStore("z", name="other")(LinearOffChipLoad(x, (2, 2), name="x")())

        found = places(program)
        order = sorted(found, key=lambda name: found[name].first_address)
        assert ["load", "x", "other", "store"] == order
        assert found["store"].size_bytes is None
        region = elaborate(program).layout.region(found["store"].nodes[0])
        assert region is not None
        assert region.size_bytes == 1 << 50

    def test_one_array_read_twice(self) -> None:
        """It has one place; what is wrapped in a Tensor is another one."""
        x = np.zeros((4, 4), np.float32)
        with Program("twice") as program:
            Consumer()(LinearOffChipLoad(x, (2, 2), name="first")())
            Consumer()(LinearOffChipLoad(x, (4, 4), name="second")())
            Consumer()(LinearOffChipLoad(Tensor.of(x), (4, 4), name="third")())

        found = places(program)
        assert found["first"] is found["second"]
        assert found["third"].first_address == ALIGNMENT_BYTES

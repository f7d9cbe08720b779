"""Bursts have the addresses that numpy would access, and tensors do not overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from typing_extensions import override

import fabric.extend as ext
import operators as op
from fabric import Program, Report, Stream, StreamType, simulate
from fabric.graph.hardware.description import PlacementDescription
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.memory_map import Placed
from tests.bases import Source
from tests.operators.recording_memory import bytes_of, recorded

ALIGNMENT_BYTES = PlacementDescription().alignment_bytes

Offsets = NDArray[np.int64]


def tiles_of(shape: tuple[int, ...], tile: tuple[int, int], itemsize: int) -> Offsets:
    (rows, cols), width = tile, shape[-1]
    matrix = np.arange(math.prod(shape) * itemsize).reshape(-1, width, itemsize)
    cut = matrix.reshape(len(matrix) // rows, rows, width // cols, cols, itemsize)
    return cut.swapaxes(1, 2).reshape(-1, rows, cols * itemsize)


def same(bursts: list[Any], expected: Offsets | list[Offsets], first_address: int) -> bool:
    found = [bytes_of(burst) - first_address for burst in bursts]
    return len(found) == len(expected) and all(map(np.array_equal, found, expected))


def completed(program: Program) -> Report:
    report = simulate(program)
    assert report.status == "completed", report.error
    return report


def places(program: Program) -> dict[str, Placed]:
    memory_map = elaborate(program).memory_map
    return {node.name: placed for placed in memory_map.tensors for node in placed.nodes}


_itemsizes = {"int8": 1, "bfloat16": 2, "float32": 4, "int64": 8}
_dtypes = st.sampled_from(list(_itemsizes))
_grids = st.tuples(
    st.lists(st.integers(1, 3), max_size=2),  # outer dimensions
    *[st.integers(1, 4)] * 4,  # numbers of tiles down and across, rows and columns of each
)


@st.composite
def _cut(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, int]]:
    outer, down, across, rows, cols = draw(_grids)
    return (*outer, down * rows, across * cols), (rows, cols)


@st.composite
def _view(draw: st.DrawFn, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape, strides, last = [], [], count - 1
    for _ in range(draw(st.integers(1, 3))):
        stride = draw(st.integers(0, count))
        size = draw(st.integers(1, 4 if not stride else 1 + min(3, last // stride)))
        last -= stride * (size - 1)
        shape.append(size)
        strides.append(stride)
    return tuple(shape), tuple(strides)


@given(st.data(), _cut(), _dtypes, st.integers(0, 3))
def test_linear_load_reads_the_bytes_of_numpys_view(
    data: st.DataObject,
    cut: tuple[tuple[int, ...], tuple[int, int]],
    dtype: str,
    references: int,
) -> None:
    (shape, tile), itemsize = cut, _itemsizes[dtype]
    tiles = tiles_of(shape, tile, itemsize)
    view, strides = data.draw(_view(len(tiles)))
    with recorded() as bursts, Program("load") as program:
        reference = op.Metadata(np.zeros(references, np.int64))() if references else None
        loaded = op.LinearOffChipLoad(
            op.Tensor(shape, dtype=dtype), tile, view, strides, name="load"
        )(reference)
        op.Consumer()(loaded)
        completed(program)

    step = tiles.strides[0]
    viewed = as_strided(
        tiles, (*view, *tiles.shape[1:]), (*(step * s for s in strides), *tiles.strides[1:])
    ).reshape(-1, *tiles.shape[1:])
    expected = np.concatenate([viewed] * max(1, references))
    assert same(bursts["load"], expected, places(program)["load"].first_address)
    assert not any(burst.write for burst in bursts["load"])


@given(st.data(), _cut(), _dtypes)
def test_random_load_reads_the_bytes_of_its_tile(
    data: st.DataObject, cut: tuple[tuple[int, ...], tuple[int, int]], dtype: str
) -> None:
    (shape, tile), itemsize = cut, _itemsizes[dtype]
    tiles = tiles_of(shape, tile, itemsize)
    chosen = data.draw(st.lists(st.integers(0, len(tiles) - 1), min_size=1, max_size=6))
    with recorded() as bursts, Program("load") as program:
        addresses = op.Metadata(np.array(chosen))()
        op.Consumer()(
            op.RandomOffChipLoad(op.Tensor(shape, dtype=dtype), tile, name="load")(addresses)
        )
        completed(program)

    assert same(bursts["load"], tiles[chosen], places(program)["load"].first_address)


@given(_cut(), _dtypes)
def test_linear_store_writes_the_bytes_of_its_tile(
    cut: tuple[tuple[int, ...], tuple[int, int]], dtype: str
) -> None:
    shape, tile = cut
    with recorded() as bursts, Program("store") as program:
        op.LinearOffChipStore("y", name="store")(
            op.LinearOffChipLoad(op.Tensor(shape, dtype=dtype), tile)()
        )
        completed(program)

    placed = places(program)["store"]
    assert same(bursts["store"], tiles_of(shape, tile, _itemsizes[dtype]), placed.first_address)
    assert all(burst.write for burst in bursts["store"])
    assert placed.size_bytes == math.prod(shape) * _itemsizes[dtype]


def test_linear_store_of_unknown_width_is_contiguous() -> None:
    with recorded() as bursts, Program("store") as program:
        ragged = op.RaggedIntegers([[0, 1], [0, 1, 2]])()
        tiles = op.RandomOffChipLoad(op.Tensor((9, 2), dtype="int8"), (3, 2))(ragged)
        op.LinearOffChipStore("y", name="store")(tiles)
        completed(program)

    first = places(program)["store"].first_address
    found = [bytes_of(burst).ravel().tolist() for burst in bursts["store"]]
    assert [list(range(first + 6 * n, first + 6 * n + 6)) for n in range(5)] == found


def test_linear_store_of_unknown_height_takes_the_highest() -> None:
    with recorded() as bursts, Program("store") as program:
        ragged = op.RaggedIntegers([[0, 1], [0, 1, 2], [0], [3, 4]])()
        rows = op.RandomOffChipLoad(op.Tensor((9, 3), dtype="int8"), (1, 3))(ragged)
        tiles, _ = op.Reshape(chunk=2)(op.Accum(op.RetileRow())(rows))
        op.LinearOffChipStore("y", name="store")(tiles)
        completed(program)

    first = places(program)["store"].first_address
    matrix = first + np.arange(5 * 6).reshape(5, 6)
    expected = [matrix[:2, :3], matrix[:3, 3:], matrix[3:4, :3], matrix[3:5, 3:]]
    assert same(bursts["store"], expected, 0)


@given(st.data(), _cut(), _dtypes)
def test_random_store_writes_the_bytes_of_its_tile(
    data: st.DataObject, cut: tuple[tuple[int, ...], tuple[int, int]], dtype: str
) -> None:
    (shape, tile), tensor = cut, op.Tensor(cut[0], dtype=dtype)
    tiles = tiles_of(shape, tile, _itemsizes[dtype])
    count = len(tiles)
    chosen = data.draw(st.permutations(range(count)))
    with recorded() as bursts, Program("store") as program:
        linear = op.LinearOffChipLoad(tensor, tile, (count,), (1,), name="load")()
        addresses = op.Metadata(np.array(chosen))()
        op.RandomOffChipStore("y", tensor, tile, name="store")(addresses, linear)
        completed(program)

    found = places(program)
    assert same(bursts["store"], tiles[chosen], found["store"].first_address)
    assert found["store"].first_address != found["load"].first_address


@given(st.lists(st.tuples(_cut(), _dtypes, st.integers(1, 2)), min_size=1, max_size=4))
def test_tensors_do_not_overlap(
    tensors: list[tuple[tuple[tuple[int, ...], tuple[int, int]], str, int]],
) -> None:
    with recorded() as bursts, Program("several") as program:
        for number, ((shape, tile), dtype, readers) in enumerate(tensors):
            tensor = op.Tensor(shape, dtype=dtype)
            for reader in range(readers):
                loaded = op.LinearOffChipLoad(tensor, tile, name=f"load_{number}_{reader}")()
                op.LinearOffChipStore(f"y_{number}_{reader}")(loaded)
        completed(program)

    in_memory = elaborate(program).memory_map.tensors
    assert sum(1 + readers for _, _, readers in tensors) == len(in_memory)
    assert all(placed.first_address % ALIGNMENT_BYTES == 0 for placed in in_memory)
    moved = [
        {
            address
            for node in placed.nodes
            for burst in bursts[node.name]
            for address in bytes_of(burst).ravel().tolist()
        }
        for placed in in_memory
    ]
    for placed, addresses in zip(in_memory, moved, strict=True):
        assert placed.size_bytes is not None
        first = placed.first_address
        assert addresses == set(range(first, first + placed.size_bytes))
    for before, after in pairwise(in_memory):
        assert before.first_address + (before.size_bytes or 0) <= after.first_address


def test_output_of_unknown_size_comes_last() -> None:
    with Program("ragged") as program:
        ragged = op.RaggedIntegers([[0, 1], [0, 1, 2]])()
        tiles = op.RandomOffChipLoad(op.Tensor((6, 2)), (3, 2), name="load")(ragged)
        op.LinearOffChipStore("y", name="store")(tiles)
        x = op.Tensor((4, 4))
        op.LinearOffChipStore("z", name="other")(op.LinearOffChipLoad(x, (2, 2), name="x")())

    found = places(program)
    order = sorted(found, key=lambda name: found[name].first_address)
    assert ["load", "x", "other", "store"] == order
    assert found["store"].size_bytes is None
    region = elaborate(program).memory_map.regions.get(found["store"].nodes[0])
    assert region is not None
    assert region.size_bytes == 1 << 50


@dataclass(frozen=True)
class _Corners(Source):
    off_chip: ClassVar[Literal["read", "write"] | None] = "read"

    bursts: tuple[tuple[int, ...], ...]
    tile: tuple[int, int] | None = None

    @override
    def infer(self, wiring: ext.Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((1,), ext.BoolType()),)

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> ext.OffChipTensor | None:
        return ext.OffChipTensor((4, 8), np.dtype("int8"), source=self, tile=self.tile)

    @override
    async def run(self, ports: ext.Ports) -> None:
        for burst in self.bursts:
            await ports.burst(*burst)
        await ports.sink.send((True, 0))


def test_users_burst_addresses_tiles_of_its_tensor() -> None:
    with recorded() as bursts, Program("corners") as program:
        op.LinearOffChipStore("y", name="y")(op.LinearOffChipLoad(op.Tensor((2, 2)), (2, 2))())
        corners = ((2, 4, 3), (2, 4), (1, 3, 2))
        op.Consumer()(_Corners(corners, tile=(2, 4), name="corners")())
        completed(program)

    first = places(program)["corners"].first_address
    assert first > 0
    assert [(first + 20, 2, 4, 8), (first, 2, 4, 8), (first + 16, 1, 3, 8)] == [
        burst[:-1] for burst in bursts["corners"]
    ]


def test_burst_of_no_bytes_moves_nothing() -> None:
    with recorded() as bursts, Program("corners") as program:
        nothing = ((0, 8, 99), (2, 0, 99), (0, 0, 0), (0, 3), (5, 0))
        op.Consumer()(_Corners((*nothing, (1, 5, 27)), name="corners")())
        completed(program)

    first = places(program)["corners"].first_address
    assert [(first + 27, 1, 5, 5)] == [burst[:-1] for burst in bursts["corners"]]

"""Placement of tensors in memory: contiguous tiles, padding, alignment and stagger."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import operators as op
from fabric import Hardware, Program, StreamType, Tile, TileType, hardware_scope, simulate
from fabric.extend import PlacementDescription
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.memory_map import MemoryMap
from tests.operators.driving import Emit
from tests.operators.recording_memory import RECORDING, bytes_of, recorded

CONTIGUOUS = PlacementDescription(tiles="contiguous")


def moved(program: Program) -> tuple[dict[str, list[NDArray[np.int64]]], MemoryMap]:
    report = simulate(program)
    assert report.status == "completed", report.error
    memory_map = elaborate(program).memory_map
    first = {node.name: each.first_address for each in memory_map.tensors for node in each.nodes}
    with recorded() as bursts:
        return {
            name: [bytes_of(burst) - first[name] for burst in its] for name, its in bursts.items()
        }, memory_map


def placed(placement: PlacementDescription) -> Any:
    return hardware_scope(Hardware(hbm=RECORDING.hbm, placement=placement))


def same(found: list[NDArray[np.int64]], expected: Any) -> bool:
    return len(found) == len(expected) and all(map(np.array_equal, found, expected))


_sizes = {"int8": 1, "bfloat16": 2, "float32": 4}
_cuts = st.tuples(*[st.integers(1, 4)] * 4)
"""The numbers of tiles down and across, and the rows and columns of each tile."""


@given(_cuts, st.sampled_from(list(_sizes)), st.data())
def test_contiguous_tile_begins_behind_the_one_before(
    cut: tuple[int, int, int, int], dtype: str, data: st.DataObject
) -> None:
    down, across, rows, cols = cut
    count, tile, shape = down * across, (rows, cols), (down * rows, across * cols)
    chosen = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=5))
    with placed(CONTIGUOUS), Program("tiles") as program:
        tensor = op.Tensor(shape, dtype=dtype)
        op.LinearOffChipStore("y", name="store")(op.LinearOffChipLoad(tensor, tile, name="load")())
        places = op.Metadata(np.array(chosen))()
        some = op.RandomOffChipLoad(tensor, tile, name="some")(places)
        op.Consumer()(op.RandomOffChipStore("z", op.Tensor(shape), tile, name="put")(places, some))
    found, memory_map = moved(program)

    size = rows * cols * _sizes[dtype]
    tiles = np.arange(count * size).reshape(count, rows, cols * _sizes[dtype])
    assert same(found["load"], tiles)
    assert same(found["store"], tiles)
    assert same(found["some"], tiles[chosen])
    assert same(found["put"], tiles[chosen])
    assert all(each.layout.contiguous for each in memory_map.tensors)
    assert {each.size_bytes for each in memory_map.tensors} == {count * size}


def test_contiguous_tensor_with_two_tilings_is_row_major() -> None:
    x = op.Tensor((4, 8), dtype="int8")
    with placed(CONTIGUOUS), Program("tiles") as program:
        op.Consumer()(op.LinearOffChipLoad(x, (2, 4), name="small")())
        op.Consumer()(op.LinearOffChipLoad(x.viewed((2, 16)), (1, 8), name="view")())
    found, memory_map = moved(program)

    matrix = np.arange(32).reshape(4, 8)
    cut = [matrix[top : top + 2, left : left + 4] for top in (0, 2) for left in (0, 4)]
    assert same(found["small"], cut)
    assert same(found["view"], np.arange(32).reshape(4, 1, 8))
    (tensor,) = memory_map.tensors
    assert tensor.layout.reason == (
        "its operators use tiles of 2x4 in rows of 8 and 1x8 in rows of 16"
    )


def test_contiguous_placement_skips_tiles_that_data_decide() -> None:
    with placed(CONTIGUOUS), Program("ragged") as program:
        ragged = op.RaggedIntegers([[0, 1], [0, 1, 2], [0], [3, 4]])()
        rows = op.RandomOffChipLoad(op.Tensor((9, 3), dtype="int8"), (1, 3), name="load")(ragged)
        tiles, _ = op.Reshape(chunk=2)(op.Accum(op.RetileRow())(rows))
        op.LinearOffChipStore("y", name="high")(tiles)
        op.LinearOffChipStore("z", name="wide")(rows)
    found, memory_map = moved(program)

    matrix = np.arange(5 * 6).reshape(5, 6)
    assert same(found["high"], [matrix[:2, :3], matrix[:3, 3:], matrix[3:4, :3], matrix[3:5, 3:]])
    assert same(found["wide"], np.arange(8 * 3).reshape(8, 1, 3))
    assert {each.nodes[0].name: each.layout.reason for each in memory_map.tensors} == {
        "load": None,
        "high": "data decide how many rows its tiles have",
        "wide": "its operator states no tiles",
    }


def test_contiguous_placement_skips_odd_int4() -> None:
    with placed(CONTIGUOUS), Program("odd") as program:
        x = op.LinearOffChipLoad(op.Tensor((6, 3), dtype="int4"), (2, 3))()
        op.LinearOffChipStore("y", name="store")(op.Flatten(0, 1)(x))
    _, memory_map = moved(program)

    reasons = [each.layout.reason for each in memory_map.tensors]
    assert sorted(reasons, key=str) == [None, "its tiles begin in the middle of a byte"]


@given(_cuts, st.sampled_from([1, 3, 16, 64]), st.sampled_from(list(_sizes)))
def test_padded_rows_of_a_power_of_two_are_further_apart(
    cut: tuple[int, int, int, int], padding: int, dtype: str
) -> None:
    down, across, rows, cols = cut
    shape, itemsize = (down * rows, across * cols), _sizes[dtype]
    placement = PlacementDescription(row_padding_bytes=padding)
    with placed(placement), Program("rows") as program:
        op.Consumer()(
            op.LinearOffChipLoad(op.Tensor(shape, dtype=dtype), (rows, cols), name="load")()
        )
    found, memory_map = moved(program)

    row = across * cols * itemsize
    free = padding if row in (1, 2, 4, 8, 16, 32, 64, 128) and row > padding else 0
    matrix = np.arange(shape[0] * (row + free)).reshape(shape[0], row + free)
    width = cols * itemsize
    expected = [
        matrix[top * rows : (top + 1) * rows, left * width : (left + 1) * width]
        for top in range(down)
        for left in range(across)
    ]
    assert same(found["load"], expected)
    assert memory_map.tensors[0].size_bytes == matrix.size


def test_placement_of_a_program_goes_before_the_file() -> None:
    mine = PlacementDescription(tiles="contiguous")
    file = PlacementDescription(stagger_bytes=64, alignment_bytes=16)
    with placed(file), Program("mine", placement=mine) as program:
        for _ in range(2):
            op.Consumer()(op.LinearOffChipLoad(op.Tensor((4, 8), dtype="int8"), (2, 4))())
    tensors = elaborate(program).memory_map.tensors

    assert [(0, True), (4096, True)] == [
        (each.first_address, each.layout.contiguous) for each in tensors
    ]
    assert {"tiles": "contiguous"}.items() <= (
        simulate(program).as_json()["hardware"]["placement"].items()
    )


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
    st.sampled_from([1, 16, 100]),
    st.sampled_from([0, 7, 64]),
)
def test_tensor_begins_at_alignment_and_stagger(
    sizes: list[int], alignment: int, stagger: int
) -> None:
    placement = PlacementDescription(alignment_bytes=alignment, stagger_bytes=stagger)
    with placed(placement), Program("places") as program:
        for size in sizes:
            op.Consumer()(op.LinearOffChipLoad(op.Tensor((1, size), dtype="int8"), (1, size))())
    tensors = elaborate(program).memory_map.tensors

    aligned = [each.first_address - i * stagger for i, each in enumerate(tensors)]
    ends = [0, *np.cumsum([math.ceil(size / alignment) * alignment for size in sizes])]
    assert aligned == ends[:-1]
    for before, after in pairwise(tensors):
        assert before.first_address + (before.size_bytes or 0) <= after.first_address


def test_tiles_without_rows_are_stored() -> None:
    kind = TileType(0, 4, np.dtype(np.int8))
    tile = Tile(0, 4, kind.dtype, np.zeros((0, 4), np.int8))
    with Program("flat", mode="functional") as program:
        op.LinearOffChipStore("y")(Emit(StreamType((2, 1), kind), [(tile, 1), (tile, 1)])())
    program.expect(y=lambda: np.zeros((0, 4)))
    assert simulate(program).verified

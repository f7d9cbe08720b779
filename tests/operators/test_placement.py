"""Tensors lie in memory as the hardware says: where numpy has the same bytes, laid out likewise."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, Literal
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Hardware, Program, StreamType, Tile, TileType, hardware_scope, simulate
from fabric.extend import OffChipTensor, PlacementDescription
from fabric.graph.hardware.address_space import Region
from fabric.graph.values.dims import symbol
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.memory_map import MemoryMap, TensorLayout, layout_of, memory_map_of
from operators import (
    Accum,
    Consumer,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Metadata,
    RaggedIntegers,
    RandomOffChipLoad,
    RandomOffChipStore,
    Reshape,
    RetileRow,
    Tensor,
)
from tests.operators.driving import Emit
from tests.operators.recording_memory import RECORDING, bytes_of, recorded

CONTIGUOUS = PlacementDescription(tiles="contiguous")


def moved(program: Program) -> tuple[dict[str, list[NDArray[np.int64]]], MemoryMap]:
    """Return which bytes of its tensor each operator moves, burst by burst, and the memory map."""
    report = simulate(program)
    assert report.status == "completed", report.error
    memory_map = elaborate(program).memory_map
    first = {node.name: each.first_address for each in memory_map.tensors for node in each.nodes}
    with recorded() as bursts:
        return {
            name: [bytes_of(burst) - first[name] for burst in its] for name, its in bursts.items()
        }, memory_map


def placed(placement: PlacementDescription) -> Any:
    """Give programs made inside a recording memory with tensors placed so."""
    return hardware_scope(Hardware(hbm=RECORDING.hbm, placement=placement))


def same(found: list[NDArray[np.int64]], expected: Any) -> bool:
    """Whether bursts move the bytes that are expected."""
    return len(found) == len(expected) and all(map(np.array_equal, found, expected))


_sizes = {"int8": 1, "bfloat16": 2, "float32": 4}
_cuts = st.tuples(*[st.integers(1, 4)] * 4)
"""Tiles down and across, rows and columns of each."""


class TestContiguous:
    @given(_cuts, st.sampled_from(list(_sizes)), st.data())
    def test_tiles(self, cut: tuple[int, int, int, int], dtype: str, data: st.DataObject) -> None:
        """Tile n begins where tile n - 1 ends, for whoever reads or writes it."""
        down, across, rows, cols = cut
        count, tile, shape = down * across, (rows, cols), (down * rows, across * cols)
        chosen = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=5))
        with placed(CONTIGUOUS), Program("tiles") as program:
            tensor = Tensor(shape, dtype=dtype)
            LinearOffChipStore("y", name="store")(LinearOffChipLoad(tensor, tile, name="load")())
            places = Metadata(np.array(chosen))()
            some = RandomOffChipLoad(tensor, tile, name="some")(places)
            Consumer()(RandomOffChipStore("z", Tensor(shape), tile, name="put")(places, some))
        found, memory_map = moved(program)

        size = rows * cols * _sizes[dtype]
        tiles = np.arange(count * size).reshape(count, rows, cols * _sizes[dtype])
        assert same(found["load"], tiles)
        assert same(found["store"], tiles)
        assert same(found["some"], tiles[chosen])
        assert same(found["put"], tiles[chosen])
        assert all(each.layout.contiguous for each in memory_map.tensors)
        assert {each.size_bytes for each in memory_map.tensors} == {count * size}

    def test_two_tilings(self) -> None:
        """A tensor that is cut in two ways stays row-major for both."""
        x = Tensor((4, 8), dtype="int8")
        with placed(CONTIGUOUS), Program("tiles") as program:
            Consumer()(LinearOffChipLoad(x, (2, 4), name="small")())
            Consumer()(LinearOffChipLoad(x.viewed((2, 16)), (1, 8), name="view")())
        found, memory_map = moved(program)

        matrix = np.arange(32).reshape(4, 8)
        cut = [matrix[top : top + 2, left : left + 4] for top in (0, 2) for left in (0, 4)]
        assert same(found["small"], cut)
        assert same(found["view"], np.arange(32).reshape(4, 1, 8))
        (tensor,) = memory_map.tensors
        assert tensor.layout.reason == (
            "it is cut into tiles of 2x4 of rows of 8 and 1x8 of rows of 16"
        )

    def test_decided_by_data(self) -> None:
        """Tiles of as many rows as data say, and rows as wide as they say, stay as they are."""
        with placed(CONTIGUOUS), Program("ragged") as program:
            ragged = RaggedIntegers([[0, 1], [0, 1, 2], [0], [3, 4]])()
            rows = RandomOffChipLoad(Tensor((9, 3), dtype="int8"), (1, 3), name="load")(ragged)
            tiles, _ = Reshape(chunk=2)(Accum(RetileRow())(rows))
            LinearOffChipStore("y", name="high")(tiles)
            LinearOffChipStore("z", name="wide")(rows)
        found, memory_map = moved(program)

        matrix = np.arange(5 * 6).reshape(5, 6)
        assert same(
            found["high"], [matrix[:2, :3], matrix[:3, 3:], matrix[3:4, :3], matrix[3:5, 3:]]
        )
        assert same(found["wide"], np.arange(8 * 3).reshape(8, 1, 3))
        assert {each.nodes[0].name: each.layout.reason for each in memory_map.tensors} == {
            "load": None,
            "high": "data decide how many rows its tiles have",
            "wide": "its operator names bytes, not tiles",
        }

    def test_odd_int4(self) -> None:
        """Tiles that end in the middle of a byte have no bytes of their own."""
        with placed(CONTIGUOUS), Program("odd") as program:
            x = LinearOffChipLoad(Tensor((6, 3), dtype="int4"), (2, 3))()
            LinearOffChipStore("y", name="store")(Flatten(0, 1)(x))
        _, memory_map = moved(program)

        reasons = [each.layout.reason for each in memory_map.tensors]
        assert sorted(reasons, key=str) == [None, "its tiles begin in the middle of a byte"]

    def test_cycles_of_the_flat_model(self) -> None:
        """To channels without banks it is all one; data are where they were."""
        x = np.arange(64.0).reshape(8, 8)
        reports = []
        for placement in (PlacementDescription(), CONTIGUOUS):
            with hardware_scope(Hardware(placement=placement)), Program("copy") as program:
                LinearOffChipStore("y")(LinearOffChipLoad(x, (2, 4))())
            program.expect(y=lambda: x)
            reports.append(simulate(program, mode="functional"))
        assert reports[0].cycles == reports[1].cycles
        assert reports[1].verified
        assert "placement" not in reports[0].as_json()["hardware"]
        assert reports[1].as_json()["hardware"]["placement"]["tiles"] == "contiguous"


class TestPadded:
    @given(_cuts, st.sampled_from([1, 3, 16, 64]), st.sampled_from(list(_sizes)))
    def test_rows(self, cut: tuple[int, int, int, int], padding: int, dtype: str) -> None:
        """Rows of a power of two of bytes are so much further apart, others are not."""
        down, across, rows, cols = cut
        shape, itemsize = (down * rows, across * cols), _sizes[dtype]
        placement = PlacementDescription(row_padding_bytes=padding)
        with placed(placement), Program("rows") as program:
            Consumer()(LinearOffChipLoad(Tensor(shape, dtype=dtype), (rows, cols), name="load")())
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

    def test_views(self) -> None:
        """A tensor that is read with rows of two lengths has none of them padded."""
        x = Tensor((4, 8), dtype="int8")
        with placed(PlacementDescription(row_padding_bytes=2)), Program("rows") as program:
            Consumer()(LinearOffChipLoad(x, (4, 8), name="rows")())
            Consumer()(LinearOffChipLoad(x.viewed((2, 16)), (2, 16), name="view")())
        found, _ = moved(program)

        assert same(found["rows"], [np.arange(32).reshape(4, 8)])
        assert same(found["view"], [np.arange(32).reshape(2, 16)])


class TestPrograms:
    def test_before_the_file(self) -> None:
        """What a program says goes before the file, as a whole; its report says so."""
        mine = PlacementDescription(tiles="contiguous")
        file = PlacementDescription(stagger_bytes=64, alignment_bytes=16)
        with placed(file), Program("mine", placement=mine) as program:
            for _ in range(2):
                Consumer()(LinearOffChipLoad(Tensor((4, 8), dtype="int8"), (2, 4))())
        tensors = elaborate(program).memory_map.tensors

        assert [(0, True), (4096, True)] == [
            (each.first_address, each.layout.contiguous) for each in tensors
        ]
        assert {"tiles": "contiguous"}.items() <= (
            simulate(program).as_json()["hardware"]["placement"].items()
        )


class TestPlaces:
    @given(
        st.lists(st.integers(1, 40), min_size=1, max_size=6),
        st.sampled_from([1, 16, 100]),
        st.sampled_from([0, 7, 64]),
    )
    def test_begin(self, sizes: list[int], alignment: int, stagger: int) -> None:
        """Tensor i is at a multiple of the alignment and i times the stagger, behind the last."""
        placement = PlacementDescription(alignment_bytes=alignment, stagger_bytes=stagger)
        with placed(placement), Program("places") as program:
            for size in sizes:
                Consumer()(LinearOffChipLoad(Tensor((1, size), dtype="int8"), (1, size))())
        tensors = elaborate(program).memory_map.tensors

        aligned = [each.first_address - i * stagger for i, each in enumerate(tensors)]
        ends = [0, *np.cumsum([math.ceil(size / alignment) * alignment for size in sizes])]
        assert aligned == ends[:-1]
        for before, after in pairwise(tensors):
            assert before.first_address + (before.size_bytes or 0) <= after.first_address


@pytest.mark.parametrize("engine", ["compiled", "tasks"])
def test_both_engines(engine: Literal["compiled", "tasks"]) -> None:
    """Compiled operators know the layout, too."""
    with placed(CONTIGUOUS), Program("tiles", mode="timing") as program:
        places = Metadata(np.array([3, 0, 2]))()
        Consumer()(RandomOffChipLoad(Tensor((4, 8), dtype="int8"), (2, 4), name="load")(places))
    assert simulate(program, engine=engine).status == "completed"
    with recorded() as bursts:
        assert [24, 0, 16] == [burst.address for burst in bursts["load"]]


def tensor(shape: tuple[Any, ...], tile: tuple[Any, int] | None, **more: Any) -> OffChipTensor:
    """Return what an operator says of a tensor of single bytes."""
    return OffChipTensor(shape, np.dtype(np.int8), tile=tile, **more)


N = symbol("n")

OTHER = "it is cut into tiles of 2x4 of rows of 8 and 2x8 of rows of 8"


@pytest.mark.parametrize(
    ("said", "reason", "padding"),
    [
        ([tensor((4, 8), (2, 4))], None, 7), ([tensor((4, 8), (2, 8))] * 2, None, 7),
        ([tensor((4, 8), (2, 4)), tensor((4, 8), (2, 8))], OTHER, 7),
        ([tensor((5, 8), (2, 8))], "its tiles do not divide its rows", 7),
        ([tensor((3, 2, 8), (3, 8))], None, 7), ([tensor((N, 8), (3, 8))], None, 7),
        ([tensor((4, 8), (N, 8))], "data decide how many rows its tiles have", 7),
        ([tensor((4, 8), None)], "its operator names bytes, not tiles", 0),
        ([None], "its operator names bytes, not tiles", 0),
        ([tensor((4, 8), (2, 4)), None], "its operator names bytes, not tiles", 0),
        ([tensor((4, 12), (2, 4))], None, 0),
        ([tensor((4, 8), (2, 4)), tensor((4, 8), (1, 16), width=16)],
         "it is cut into tiles of 2x4 of rows of 8 and 1x16 of rows of 16", 0),
    ],
)  # fmt: skip
def test_layouts(said: list[OffChipTensor | None], reason: str | None, padding: int) -> None:
    """Contiguous where all cut it into the same tiles; rows of eight bytes are 7 further apart."""
    whole = layout_of(said, PlacementDescription(tiles="contiguous", row_padding_bytes=7))
    expected = TensorLayout(contiguous=True)
    assert whole == (expected if reason is None else TensorLayout(False, padding, reason))
    assert layout_of(said, PlacementDescription()) == TensorLayout(False, 0, None)
    padded = layout_of(said, PlacementDescription(row_padding_bytes=7))
    assert padded == TensorLayout(False, padding, None)
    # As long as the padding, or shorter: no row is padded by as much again.
    assert not layout_of(said, PlacementDescription(row_padding_bytes=8)).padding_bytes


def test_sizes_of_layouts() -> None:
    """Padding is behind every row; what data decide has no size."""
    assert (96, 96 + 12 * 5) == tuple(
        TensorLayout(False, padding).size_bytes(tensor((3, 4, 8), (2, 4))) for padding in (0, 5)
    )
    for padding in (0, 5):
        assert TensorLayout(False, padding).size_bytes(None) is None
        assert TensorLayout(False, padding).size_bytes(tensor((N, 8), (2, 4))) is None
    assert 1 == TensorLayout().size_bytes(tensor((), None))


def _node(off_chip: str | None, said: OffChipTensor | None) -> Any:
    """Return an operator that says ``said`` of its tensor."""
    operator = SimpleNamespace(off_chip=off_chip, off_chip_tensor=lambda *_: said)
    return mock.Mock(operator=operator, spec=("operator", "place", "input_types", "output_types"))


def test_one_address_space() -> None:
    """One object, in one shape and type, has one place, and an output has; unknown sizes are last.

    Tensors begin at multiples of 16 bytes, each 3 bytes further than the one before.
    """
    one, other = [0], [0]
    read: list[tuple[tuple[Any, ...], str, object]] = [
        ((N, 8), "int8", one), ((3, 8), "int8", one), ((3, 8), "int8", other),
        ((8, 3), "int8", one), ((3, 8), "int16", one), ((3, 8), "int8", one),
    ]  # fmt: skip
    said = [OffChipTensor(shape, np.dtype(dtype), source) for shape, dtype, source in read]
    said[1] = replace(said[1], tile=(2, 4))
    y = tensor((2, 5), None, output="y")
    writes = [_node("write", y), _node("write", replace(y, tile=(1, 5)))]
    unsaid = [_node("read", None), _node(None, None), _node("read", None)]
    reads = [_node("read", each) for each in said]
    nodes = [unsaid[0], *reads[:3], writes[0], *reads[3:], unsaid[1], writes[1], unsaid[2]]
    room, behind = 1 << 50, 32 + 32 + 16 + 32 + 48
    found = memory_map_of(nodes, PlacementDescription(alignment_bytes=16, stagger_bytes=3))

    assert [(each.first_address, each.size_bytes) for each in found.tensors] == [
        (0, 24), (32 + 3, 24), (64 + 6, 10), (80 + 9, 24), (112 + 12, 48),
        (behind + 15, None), (behind + room + 18, None), (behind + 2 * room + 21, None),
    ]  # fmt: skip
    assert found.end_address == behind + 3 * room + 8 * 3
    users = [[reads[1], reads[5]], [reads[2]], writes, [reads[3]], [reads[4]]]
    users += [[unsaid[0]], [reads[0]], [unsaid[2]]]
    assert [[*each.nodes] for each in found.tensors] == users
    assert found.region(reads[1]) == Region(0, 24, False, 2, 4, 16, 8)
    assert found.region(reads[5]) == Region(0, 24, False)
    assert found.region(writes[1]) == Region(70, 10, True, 1, 5, 5, 5)
    assert found.region(unsaid[0]) == Region(behind + 15, room, False)
    assert found.region(unsaid[1]) is None
    region = found.region(reads[1])
    assert region is not None
    assert [region.burst(2, 4, n).address for n in range(5)] == [0, 4, 16, 20, 32]


@pytest.mark.parametrize(
    ("inner", "size", "cut", "shape"),
    [
        (3, (2, 4), (2, 4), (10, 12)), (3, (0, 4), (1, 4), (0, 12)), (3, (2, 0), None, (10, 0)),
        (3, (N, 4), (N, 4), (5 * N, 12)), (3, (2, N), None, (10, 3 * N)),
        (N, (2, 4), None, (10, 4 * N)), (0, (2, 4), (2, 4), (10, 0)),
    ],
)  # fmt: skip
def test_cuts_of_what_is_stored(
    inner: Any, size: tuple[Any, Any], cut: tuple[Any, int] | None, shape: tuple[Any, Any]
) -> None:
    """Into its tiles, of a row at least; into none where data decide its width, or it has none."""
    source = StreamType((5, inner), TileType(*size, dtype=np.dtype(np.int8)))
    for stated in (None, (7, 9)):
        store = LinearOffChipStore("y", stated)
        found = store.off_chip_tensor((source,), ())
        width = shape[1] if isinstance(shape[1], int) and stated else None
        assert (stated or shape, "y", cut, width) == (
            found.shape, found.output, found.tile, found.width
        )  # fmt: skip


def test_tiles_without_rows_are_stored() -> None:
    """Each closes a row of tiles, in which nothing is."""
    kind = TileType(0, 4, np.dtype(np.int8))
    tile = Tile(0, 4, kind.dtype, np.zeros((0, 4), np.int8))
    with Program("flat", mode="functional") as program:
        LinearOffChipStore("y")(Emit(StreamType((2, 1), kind), [(tile, 1), (tile, 1)])())
    program.expect(y=lambda: np.zeros((0, 4)))
    assert simulate(program).verified

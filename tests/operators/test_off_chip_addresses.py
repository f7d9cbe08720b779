"""Bursts carry the addresses of what numpy would touch, and tensors do not overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from typing_extensions import override

from fabric import (
    ConfigurationError,
    Hardware,
    Program,
    ProgramError,
    Report,
    Stream,
    StreamType,
    hardware_scope,
    simulate,
)
from fabric.extend import (
    BoolType,
    Costs,
    OffChipDescription,
    OffChipTensor,
    Operator,
    Ports,
    Wiring,
)
from fabric.graph.hardware.description import PlacementDescription
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.memory_map import Placed
from operators import (
    Accum,
    Consumer,
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
from tests.operators.recording_memory import bytes_of, recorded

ALIGNMENT_BYTES = PlacementDescription().alignment_bytes

Offsets = NDArray[np.int64]
"""Of the bytes of tiles: tile, row, byte of the row."""


def tiles_of(shape: tuple[int, ...], tile: tuple[int, int], itemsize: int) -> Offsets:
    """Return where numpy has the bytes of a row-major tensor's tiles, in row-major order."""
    (rows, cols), width = tile, shape[-1]
    matrix = np.arange(math.prod(shape) * itemsize).reshape(-1, width, itemsize)
    cut = matrix.reshape(len(matrix) // rows, rows, width // cols, cols, itemsize)
    return cut.swapaxes(1, 2).reshape(-1, rows, cols * itemsize)


def same(bursts: list[Any], expected: Offsets | list[Offsets], first_address: int) -> bool:
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
    memory_map = elaborate(program).memory_map
    return {node.name: placed for placed in memory_map.tensors for node in placed.nodes}


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

    def test_linear_of_unknown_height(self) -> None:
        """Where data decide how high tiles are, a row of tiles is as high as its highest."""
        with recorded() as bursts, Program("store") as program:
            ragged = RaggedIntegers([[0, 1], [0, 1, 2], [0], [3, 4]])()
            rows = RandomOffChipLoad(Tensor((9, 3), dtype="int8"), (1, 3))(ragged)
            tiles, _ = Reshape(chunk=2)(Accum(RetileRow())(rows))
            LinearOffChipStore("y", name="store")(tiles)
            completed(program)

        first = places(program)["store"].first_address
        matrix = first + np.arange(5 * 6).reshape(5, 6)
        expected = [matrix[:2, :3], matrix[:3, 3:], matrix[3:4, :3], matrix[3:5, 3:]]
        assert same(bursts["store"], expected, 0)

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
        region = elaborate(program).memory_map.region(found["store"].nodes[0])
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


@dataclass(frozen=True)
class _Corners(Operator):
    """A user's operator: reads bytes of a 4 x 8 tensor, or of a place that it does not describe."""

    off_chip: ClassVar[Literal["read", "write"] | None] = "read"

    bursts: tuple[tuple[int, ...], ...]
    describes: bool = True
    tile: tuple[int, int] | None = None

    def __call__(self) -> Stream:
        """Return a number."""
        return self.wire()[0]

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((1,), BoolType()),)

    @override
    def costs(self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]) -> Costs:
        return Costs()

    @override
    def off_chip_tensor(
        self, inputs: tuple[StreamType, ...], outputs: tuple[StreamType, ...]
    ) -> OffChipTensor | None:
        if not self.describes:
            return None
        return OffChipTensor((4, 8), np.dtype("int8"), source=self, tile=self.tile)

    @override
    async def run(self, ports: Ports) -> None:
        for burst in self.bursts:
            await ports.burst(*burst)
        await ports.sink.send((True, 0))


class TestUsers:
    def test_no_tiles(self) -> None:
        """Numbers are of bytes of the operator's own tensor; without one it is the first."""
        with recorded() as bursts, Program("corners") as program:
            LinearOffChipStore("y", name="y")(LinearOffChipLoad(Tensor((2, 2)), (2, 2))())
            Consumer()(_Corners(((2, 3, 13), (1, 8), (0, 8), (4, 8)), name="corners")())
            completed(program)

        first = places(program)["corners"].first_address
        assert first > 0
        assert [(first + 13, 2, 3, 3), (first, 1, 8, 8), (first, 4, 8, 8)] == [
            burst[:-1] for burst in bursts["corners"]
        ]

    def test_tiles(self) -> None:
        """Numbers are of tiles, whose rows are those of the tensor; a burst may move a part."""
        with recorded() as bursts, Program("corners") as program:
            LinearOffChipStore("y", name="y")(LinearOffChipLoad(Tensor((2, 2)), (2, 2))())
            corners = ((2, 4, 3), (2, 4), (1, 3, 2))
            Consumer()(_Corners(corners, tile=(2, 4), name="corners")())
            completed(program)

        first = places(program)["corners"].first_address
        assert first > 0
        assert [(first + 20, 2, 4, 8), (first, 2, 4, 8), (first + 16, 1, 3, 8)] == [
            burst[:-1] for burst in bursts["corners"]
        ]

    def test_no_tensor(self) -> None:
        """An operator that describes none has a place of its own."""
        with recorded() as bursts, Program("corners") as program:
            Consumer()(_Corners(((9, 9),), describes=False, name="corners")())
            LinearOffChipStore("y", name="y")(LinearOffChipLoad(Tensor((2, 2)), (2, 2))())
            completed(program)

        assert places(program)["corners"].tensor is None
        assert places(program)["y"].first_address < bursts["corners"][0].address

    def test_nothing(self) -> None:
        """No row, or rows of no bytes, move nothing, wherever; the last byte can be moved."""
        with recorded() as bursts, Program("corners") as program:
            nothing = ((0, 8, 99), (2, 0, 99), (0, 0, 0), (0, 3), (5, 0))
            Consumer()(_Corners((*nothing, (1, 5, 27)), name="corners")())
            completed(program)

        first = places(program)["corners"].first_address
        assert [(first + 27, 1, 5, 5)] == [burst[:-1] for burst in bursts["corners"]]

    def test_outside(self) -> None:
        """Bytes of others are not its own."""
        with recorded(), Program("corners") as program:
            Consumer()(_Corners(((2, 8, 24),), name="corners")())
            error = simulate(program).error

        assert error is not None
        message = error["message"].replace(f" ({__file__}:", " (").partition(" (")[0]
        assert message == (
            "corners: bytes 24 to 39 of its tensor are moved: "
            "expected a burst inside of its 32 bytes"
        )

    def test_no_tensor_returned(self) -> None:
        """What ``off_chip_tensor`` returns is looked at."""

        class Wrong(_Corners):
            @override
            def off_chip_tensor(self, inputs: Any, outputs: Any) -> Any:
                return "x"

        with Program("corners") as program:
            Consumer()(Wrong(((1, 8),), name="corners")())
        with pytest.raises(
            ProgramError, match=r"off_chip_tensor\(\) returned 'x': expected an Off"
        ):
            simulate(program)

    def test_not_registered(self) -> None:
        """A memory that nobody has registered cannot be run on."""

        @dataclass(frozen=True, kw_only=True)
        class Unknown(OffChipDescription):
            model: ClassVar[str] = "unknown"
            request_bytes: int = 1
            peak_bytes_per_cycle: int = 1

        with hardware_scope(Hardware(hbm=Unknown())), Program("unknown") as program:
            Consumer()(LinearOffChipLoad(Tensor((2, 2)), (2, 2))())
        expected = "hbm is a Unknown, a model that is not registered: expected register_memory"
        with pytest.raises(ConfigurationError, match=expected):
            simulate(program)

"""Views, addresses and selections outside of what there is are refused, in both modes alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from fabric import (
    Program,
    ProgramError,
    ShapeError,
    Stream,
    StreamType,
    Tile,
    simulate,
)
from fabric.extend import Ports
from operators import (
    Bufferize,
    CacheReadAddresses,
    CacheWriteAddress,
    Consumer,
    FilterLastTile,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Metadata,
    RandomOffChipLoad,
    RandomOffChipStore,
    Selectors,
    SetOffset,
    Streamify,
    Tensor,
)
from operators.tiles.integers import INTEGER
from tests.bases import Sink
from tests.operators.driving import FLOAT, Emit

TENSOR = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(6, 16)
"""Three by four tiles of 2x4."""

Wire = Callable[[], Stream]

_views = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 13)), max_size=3).map(
    lambda dims: (tuple(size for size, _ in dims), tuple(stride for _, stride in dims))
)


def read_by(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Return the items of a view, by numpy's indices."""
    places = np.indices(shape).reshape(len(shape), prod(shape))
    items: list[int] = (np.array(strides, np.int64) @ places).tolist() if shape else [0]
    return items


def numbered(values: Any) -> Stream:
    """Return a rank-0 stream of integers."""
    return Flatten(0, 1)(Metadata(np.asarray(values))())


@given(_views)
def test_a_load_reads_a_view_or_refuses_it(view: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Against numpy: all tiles of the view exist and are read, or it is refused while wiring."""
    wanted = read_by(*view)
    tiles = TENSOR.reshape(3, 2, 4, 4).swapaxes(1, 2).reshape(12, 2, 4)
    if any(not 0 <= item < 12 for item in wanted):
        with Program("view"), pytest.raises(ShapeError, match=rf"reads tiles {min(wanted)} to"):
            LinearOffChipLoad(TENSOR, (2, 4), *view)()
        return
    with Program("view", mode="functional") as program:
        tensor = Tensor(TENSOR.shape, TENSOR, dtype="float32")
        read = LinearOffChipLoad(tensor, (2, 4), *view)()
        LinearOffChipStore("y")(Flatten(0, len(view[0]))(read) if view[0] else read)
    program.expect(y=lambda: np.concatenate([np.zeros((2, 0)), *tiles[wanted]], axis=1))
    report = simulate(program)
    assert report.status == "completed", report.error
    if wanted:
        assert report.verified


@given(_views.filter(lambda view: view[0] != ()))
def test_a_buffer_is_read_along_a_view_or_refused(
    view: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    """Against numpy: the same for the twelve tiles of a buffer."""
    wanted = read_by(*view)
    with Program("view") as program:
        buffers = Bufferize(2)(LinearOffChipLoad(TENSOR, (2, 4))())
        if any(not 0 <= item < 12 for item in wanted):
            with pytest.raises(ShapeError, match=rf"reads tiles {min(wanted)} to"):
                Streamify(shape=view[0], strides=view[1])(buffers)
            return
        Consumer()(Streamify(shape=view[0], strides=view[1])(buffers))
    report = simulate(program)
    assert report.status == "completed", report.error
    assert [len(wanted)] == [
        channel.elements for channel in report.channels_counters if "consumer" in channel.name
    ]


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (
            lambda: LinearOffChipLoad(np.zeros((32, 32)), (16, 16), (4, 4), (4, 1))(),  # noqa: PLW0108
            "LinearOffChipLoad reads tiles 0 to 15 of a tensor [32, 32] in tiles of 16x16 with a "
            "view of [4, 4] and strides [4, 1]: expected 0 to 3",
        ),
        (
            lambda: LinearOffChipLoad(TENSOR, (2, 4), (2,), (-1,))(),  # noqa: PLW0108
            "LinearOffChipLoad reads tiles -1 to 0 of a tensor [6, 16] in tiles of 2x4 with a "
            "view of [2] and strides [-1]: expected 0 to 11",
        ),
        (
            lambda: LinearOffChipLoad(TENSOR, (2, 4), (13,))(),  # noqa: PLW0108
            "LinearOffChipLoad reads tiles 0 to 12 of a tensor [6, 16] in tiles of 2x4 with a "
            "view of [13] and strides [1]: expected 0 to 11",
        ),
        (
            lambda: LinearOffChipLoad(TENSOR, (2, 4), (2, -1), (1, 1))(),  # noqa: PLW0108
            "LinearOffChipLoad has a view of [2, -1]: expected no dimension below 0",
        ),
        (
            lambda: LinearOffChipLoad(np.zeros((0, 4)), (2, 4), (1,))(),  # noqa: PLW0108
            "LinearOffChipLoad reads tiles 0 to 0 of a tensor [0, 4] in tiles of 2x4 with a "
            "view of [1] and strides [1]: expected none, since there is nothing to read",
        ),
        (
            lambda: LinearOffChipLoad(Tensor((-4, 4)), (2, 4))(),  # noqa: PLW0108
            "LinearOffChipLoad is given a tensor [-4, 4]: expected no dimension below 0",
        ),
        (
            lambda: Streamify(shape=(-1,), strides=(1,))(
                Bufferize(2)(LinearOffChipLoad(TENSOR, (2, 4))())
            ),
            "Streamify reads buffer [3, 4] of 2x4 bfloat16 with shape (-1,): expected no "
            "dimension below 0",
        ),
        (
            lambda: CacheReadAddresses(-1)(numbered([1]), numbered([1])),
            "CacheReadAddresses has a stride of -1 tiles: expected at least 0",
        ),
        (
            lambda: Map(CacheWriteAddress(-1))(numbered([1]), numbered([1])),
            "CacheWriteAddress has a stride of -1 tiles: expected at least 0",
        ),
        (
            lambda: Selectors(np.array([[0, 2], [1, 1]]), 3)(),  # noqa: PLW0108
            "Selectors names stream 1 twice in row [1]: expected each at most once",
        ),
    ],
)
def test_known_while_wiring(wire: Wire, message: str) -> None:
    """The message says what is asked for and what there is."""
    with Program("outside"), pytest.raises(ProgramError) as caught:
        wire()
    assert message == caught.value.message
    assert __file__ == caught.value.file


def loaded(values: Any, dtype: Any = np.int32) -> Stream:
    """Return a rank-0 stream of integers that are loaded from off-chip memory."""
    array = np.asarray(values, dtype)[:, np.newaxis]
    return Flatten(0, 2)(LinearOffChipLoad(array, (1, 1))())


def last_lengths(values: Any) -> None:
    """End selectors for the last tiles of ``values``."""
    Consumer()(FilterLastTile(name="wrong")(loaded(values)))


def offset(value: int) -> None:
    """Set the offset of a tile of two rows."""
    tiles = Flatten(0, 2)(LinearOffChipLoad(TENSOR, (2, 4), (1, 1), (0, 0))())
    Consumer()(Map(SetOffset(), name="wrong")(tiles, loaded([value])))


def stored(values: Any) -> None:
    """Store one tile for each address."""
    tiles = Flatten(0, 2)(LinearOffChipLoad(TENSOR, (2, 4), (1, len(values)), (0, 1))())
    tensor = np.zeros((4, 4))
    RandomOffChipStore("y", tensor, (2, 4), name="wrong")(loaded(values), tiles)


@pytest.mark.parametrize("mode", ["timing", "functional"])
@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (
            lambda: Consumer()(RandomOffChipLoad(TENSOR, (2, 4), name="wrong")(numbered([3, 12]))),
            "wrong: address 12 of a tensor [6, 16] in tiles of 2x4: expected 0 to 11, "
            "at cycle 22, element 2",
        ),
        (
            lambda: Consumer()(RandomOffChipLoad(TENSOR, (2, 4), name="wrong")(loaded([3, -1]))),
            "wrong: address -1 of a tensor [6, 16] in tiles of 2x4: expected 0 to 11, "
            "at cycle 41, element 2",
        ),
        (
            lambda: Consumer()(
                RandomOffChipLoad(np.zeros((0, 4)), (2, 4), name="wrong")(numbered([0]))
            ),
            "wrong: address 0 of a tensor [0, 4] in tiles of 2x4: expected none, since there is "
            "nothing to read, at cycle 2, element 1",
        ),
        (
            lambda: stored([0, 2]),
            "wrong: address 2 of a tensor [4, 4] in tiles of 2x4: expected 0 to 1, "
            "at cycle 42, element 1",
        ),
        (
            lambda: stored([-2]),
            "wrong: address -2 of a tensor [4, 4] in tiles of 2x4: expected 0 to 1, "
            "at cycle 22, element 0",
        ),
        (
            lambda: Consumer()(CacheReadAddresses(4, name="wrong")(loaded([-3]), loaded([1]))),
            "wrong: ValueError: a request is -3: expected at least 0, at cycle 21, element 1",
        ),
        (
            lambda: Consumer()(CacheReadAddresses(4, name="wrong")(loaded([1]), loaded([-3]))),
            "wrong: ValueError: a length is -3: expected at least 0, at cycle 21, element 1",
        ),
        (
            lambda: Consumer()(
                CacheReadAddresses(2**63, name="wrong")(numbered([2]), numbered([1]))
            ),
            "wrong: ValueError: an integer on a stream is 18,446,744,073,709,551,616: "
            "expected 0 to 18,446,744,073,709,551,615, at cycle 2, element 1",
        ),
        (
            lambda: last_lengths([2, -1]),
            "wrong: ValueError: a length is -1: expected at least 0, at cycle 40, element 2",
        ),
        (
            lambda: offset(-1),
            "wrong: ValueError: SetOffset's offset is -1: expected at least 0, "
            "at cycle 22, element 0",
        ),
    ],
)
def test_known_while_running(wire: Callable[[], object], message: str, mode: str) -> None:
    """Both modes refuse it, in the same cycle and in the same words."""
    with Program("outside", mode=mode) as program:
        wire()
    report = simulate(program)
    assert report.error is not None
    assert message == report.error["message"]
    assert __file__ == report.error["file"]


@pytest.mark.parametrize("mode", ["timing", "functional"])
@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.uint8])
def test_indices_in_memory(dtype: Any, mode: str) -> None:
    """Arrays of integers of any type are addresses, in the same cycles in both modes."""
    with Program("indices", mode=mode) as program:
        tensor = Tensor(TENSOR.shape, TENSOR, dtype="float32")
        tiles = RandomOffChipLoad(tensor, (2, 4))(loaded([7, 0, 7], dtype))
        LinearOffChipStore("y")(tiles)
    across = TENSOR.reshape(3, 2, 4, 4).swapaxes(1, 2).reshape(12, 2, 4)
    program.expect(y=lambda: np.concatenate(across[[7, 0, 7]], axis=1))
    report = simulate(program)
    assert report.status == "completed", report.error
    assert (True if mode == "functional" else None) is report.verified
    # Addresses come at 21; four bursts of 20 cycles, a hop, and the memory stops.
    assert 21 + 3 * 20 + 1 + 20 + 3 == report.cycles


def test_integers_without_data() -> None:
    """Timing mode needs none, unless they are addresses."""
    for addressed in (False, True):
        with Program("none", mode="timing") as program:
            numbers = Flatten(0, 2)(LinearOffChipLoad(Tensor((3, 1), dtype="int32"), (1, 1))())
            if addressed:
                numbers = RandomOffChipLoad(TENSOR, (2, 4), name="load")(numbers)
            Consumer()(numbers)
        error = simulate(program).error
        if not addressed:
            assert error is None
            continue
        assert error is not None
        assert error["message"].startswith("load: ValueError: Tile(1x1 int32, in memory) has no")


def test_no_number_to_go_by() -> None:
    """What only data decide cannot be an address in timing mode; the message says what can."""
    with Program("unknown", mode="timing") as program:
        addresses = Emit(StreamType((1,), INTEGER), [(Tile(1, 1, INTEGER.dtype), 0)])()
        Consumer()(RandomOffChipLoad(TENSOR, (2, 4), name="load")(addresses))
    error = simulate(program).error
    assert error is not None
    assert error["message"] == (
        "load: ValueError: Tile(1x1 uint64) has no number in timing mode: expected one from "
        "Metadata, from an address generator or loaded from a tensor of integers, "
        "at cycle 1, element 1"
    )


def test_a_buffer_that_is_not_what_its_type_says() -> None:
    """A stream that lies about its static shape is found where the view would leave the buffer."""
    tile = Tile(1, 1, np.dtype(np.float32))
    with Program("short") as program:
        short = Emit(StreamType((2, 3), FLOAT), [(tile, 0), (tile, 1)])()
        Consumer()(Streamify(shape=(3,), strides=(1,), name="read")(Bufferize(1)(short)))
    error = simulate(program).error
    assert error is not None
    assert error["message"].startswith(
        "read: a buffer of size 2: expected buffer [3] of 1x1 float32, at cycle"
    )


@dataclass(frozen=True)
class Few(Sink):
    """Fail after three elements."""

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(3):
            assert await ports.source.receive() is not None
        raise ValueError("that is enough")


@pytest.mark.parametrize(
    "wire",
    [
        lambda: LinearOffChipLoad(TENSOR, (2, 4), (2**40, 3), (0, 1))(),  # noqa: PLW0108
        lambda: Streamify(shape=(2**40, 3), strides=(0, 1))(
            Bufferize(2)(LinearOffChipLoad(TENSOR, (2, 4))())
        ),
        lambda: Streamify((2**40,))(Bufferize(2)(LinearOffChipLoad(TENSOR, (2, 4))())),
        lambda: Streamify((), (2**40,), (0,))(
            Bufferize(2)(LinearOffChipLoad(TENSOR, (2, 4))()),
            Flatten(0, 1)(Metadata(np.ones(1, int))()),
        ),
    ],
)
def test_long_views_are_walked_not_listed(wire: Wire) -> None:
    """A view of three times 2**40 tiles begins at once and takes no memory."""
    with Program("long") as program:
        Few(name="few")(wire())
    error = simulate(program).error
    assert error is not None
    assert "that is enough" in error["message"]

"""Views, addresses and selections outside of what there is are refused, in both modes alike."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Program, ProgramError, ShapeError, Stream, StreamType, simulate
from operators import (
    Bufferize,
    CacheReadAddresses,
    CacheWriteAddress,
    Consumer,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Metadata,
    Selectors,
    Streamify,
    Tensor,
)
from operators.integers import INTEGER
from tests.operators.driving import Emit

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


def sent(*values: Any) -> Stream:
    """Return a rank-0 stream of ``values``, which are 1x1 tiles of integers."""
    return Emit(StreamType((len(values),), INTEGER), [(value, 0) for value in values])()


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

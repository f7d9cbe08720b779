"""Views, addresses and selections out of range are refused, in both modes alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

import fabric as fab
import operators as op
from fabric.extend import Ports
from tests.bases import Sink

TENSOR = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(6, 16)
"""Three by four tiles of 2x4 numbers."""

Wire = Callable[[], fab.Stream]

_views = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 13)), max_size=3).map(
    lambda dims: (tuple(size for size, _ in dims), tuple(stride for _, stride in dims))
)


def read_by(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    places = np.indices(shape).reshape(len(shape), prod(shape))
    items: list[int] = (np.array(strides, np.int64) @ places).tolist() if shape else [0]
    return items


@given(_views)
def test_a_load_reads_a_view_or_refuses_it(view: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    wanted = read_by(*view)
    tiles = TENSOR.reshape(3, 2, 4, 4).swapaxes(1, 2).reshape(12, 2, 4)
    if any(not 0 <= item < 12 for item in wanted):
        with (
            fab.Program("view"),
            pytest.raises(fab.ShapeError, match=rf"reads tiles {min(wanted)} to"),
        ):
            op.LinearOffChipLoad(TENSOR, (2, 4), *view)()
        return
    with fab.Program("view", mode="functional") as program:
        tensor = op.Tensor(TENSOR.shape, TENSOR, dtype="float32")
        read = op.LinearOffChipLoad(tensor, (2, 4), *view)()
        op.LinearOffChipStore("y")(op.Flatten(0, len(view[0]))(read) if view[0] else read)
    program.expect(y=lambda: np.concatenate([np.zeros((2, 0)), *tiles[wanted]], axis=1))
    report = fab.simulate(program)
    assert report.status == "completed", report.error
    if wanted:
        assert report.verified


@given(_views.filter(lambda view: view[0] != ()))
def test_a_buffer_is_read_along_a_view_or_refused(
    view: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    wanted = read_by(*view)
    with fab.Program("view") as program:
        buffers = op.Bufferize(2)(op.LinearOffChipLoad(TENSOR, (2, 4))())
        if any(not 0 <= item < 12 for item in wanted):
            with pytest.raises(fab.ShapeError, match=rf"reads tiles {min(wanted)} to"):
                op.Streamify(shape=view[0], strides=view[1])(buffers)
            return
        op.Consumer()(op.Streamify(shape=view[0], strides=view[1])(buffers))
    report = fab.simulate(program)
    assert report.status == "completed", report.error
    assert [len(wanted)] == [
        channel.taken for channel in report.channels_counters if "consumer" in channel.name
    ]


def test_address_without_data_is_an_error() -> None:
    for addressed in (False, True):
        with fab.Program("none", mode="timing") as program:
            numbers = op.Flatten(0, 2)(
                op.LinearOffChipLoad(op.Tensor((3, 1), dtype="int32"), (1, 1))()
            )
            if addressed:
                numbers = op.RandomOffChipLoad(TENSOR, (2, 4), name="load")(numbers)
            op.Consumer()(numbers)
        error = fab.simulate(program).error
        if not addressed:
            assert error is None
            continue
        assert error is not None
        assert error["message"].startswith("load: ValueError: Tile(1x1 int32, in memory) has no")


@dataclass(frozen=True)
class Few(Sink):
    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(3):
            assert await ports.source.receive() is not None
        raise ValueError("that is enough")


@pytest.mark.parametrize(
    "wire",
    [
        lambda: op.LinearOffChipLoad(TENSOR, (2, 4), (2**40, 3), (0, 1))(),  # noqa: PLW0108
        lambda: op.Streamify(shape=(2**40, 3), strides=(0, 1))(
            op.Bufferize(2)(op.LinearOffChipLoad(TENSOR, (2, 4))())
        ),
        lambda: op.Streamify((2**40,))(op.Bufferize(2)(op.LinearOffChipLoad(TENSOR, (2, 4))())),
        lambda: op.Streamify((), (2**40,), (0,))(
            op.Bufferize(2)(op.LinearOffChipLoad(TENSOR, (2, 4))()),
            op.Flatten(0, 1)(op.Metadata(np.ones(1, int))()),
        ),
    ],
)
def test_long_views_are_walked_not_listed(wire: Wire) -> None:
    with fab.Program("long") as program:
        Few(name="few")(wire())
    error = fab.simulate(program).error
    assert error is not None
    assert "that is enough" in error["message"]

"""Compares layouts of streams with the tiles that a run sends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import operators as op
from fabric import Layout, Program, ShapeError, Stream, simulate
from tests.fabric.layouts.layouts import streamed, tensor
from tests.operators.test_convert import TWICE, orders, tiles
from tests.profiles import examples

SHAPES = ((8, 8), (4, 12), (4, 2, 6))
STEPS = 5


def _maximum(stream: Stream, _: Any) -> Stream:
    return op.Map(op.Maximum())(stream, stream)


def _reshape(stream: Stream, pick: Any) -> Stream:
    dims = [
        (at, size)
        for at, size in enumerate(reversed(stream.shape))
        if isinstance(size, int) and size % 2 == 0
    ]
    return op.Reshape(2, pick(dims)[0])(stream)[0] if dims else stream


def _flatten(stream: Stream, pick: Any) -> Stream:
    inner = pick(range(stream.rank)) if stream.rank else 0
    return op.Flatten(inner, inner + 1)(stream) if stream.rank else stream


def _buffer(stream: Stream, pick: Any) -> Stream:
    if not stream.rank:
        return stream
    rank = pick(range(1, stream.rank + 1))
    size = int(np.prod(stream.shape[-rank:]))
    buffers = op.Bufferize(rank)(stream)
    kind = pick(("again", "affine", "referred"))
    if kind == "again":
        return op.Streamify(repeats=(pick((1, 2)),))(buffers)
    if kind == "referred" and stream.shape[0] == 1:
        guide = op.Metadata(np.zeros((*stream.shape[1:-rank], 2), np.int64))()
        return op.Streamify()(buffers, guide)
    offset = pick(range(size))
    stride = pick(range(1, size + 1))
    count = 1 + (size - 1 - offset) // stride
    return op.Streamify(shape=(2, count), strides=(0, stride), offset=offset)(buffers)


def _expand(stream: Stream, _: Any) -> Stream:
    if stream.shape[0] != 1:
        return stream
    guide = op.Metadata(np.zeros((*stream.shape[1:], 3), np.int64))()
    return op.Expand()(op.Promote(0)(stream), guide)


def _split(stream: Stream, pick: Any) -> Stream:
    tile: Any = stream.value
    rows = pick([n for n in range(1, tile.rows + 1) if tile.rows % n == 0])
    cols = pick([n for n in range(1, tile.cols + 1) if tile.cols % n == 0])
    return op.FlatMap(op.SplitTiles(rows, cols))(stream)


def _retile(stream: Stream, pick: Any) -> Stream:
    rank = pick(range(1, stream.rank + 1)) if stream.rank else 0
    return op.Accum(pick((op.RetileRow, op.RetileCol))(), rank=rank)(stream) if rank else stream


CHANGES = {
    "maximum": _maximum,
    "flatten": _flatten,
    "promote": lambda stream, pick: op.Promote(pick(range(len(stream.shape) + 1)))(stream),
    "reshape": _reshape,
    "repeat": lambda stream, pick: op.Repeat(pick((1, 2)))(stream),
    "expand": _expand,
    "buffer": _buffer,
    "rows": lambda stream, _: op.FlatMap(op.SplitRows())(stream),
    "split": _split,
    "retile": _retile,
}


def column(stream: Stream, name: str) -> None:
    if stream.rank:
        stream = op.Flatten(0, stream.rank)(stream)
    op.LinearOffChipStore(name)(op.Promote(0)(stream))


@pytest.mark.deep
def test_layout_of_a_chain_is_the_order_that_is_sent() -> None:
    # Every operator has some chain in which its layout is known.
    seen: set[str] = set()
    chained(seen)
    assert seen == CHANGES.keys()


@given(st.data())
@examples(quick=150)
def chained(seen: set[str], data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    layout = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
    x = tensor(shape).astype(np.float32)

    def pick(options: Any) -> Any:
        return data.draw(st.sampled_from(list(options)))

    with Program("chain", mode="functional") as program:
        try:
            stream = op.loaded(op.Tensor(shape, x, dtype="float32"), layout)
        except ShapeError:
            return
        names = data.draw(st.lists(st.sampled_from(sorted(CHANGES)), max_size=STEPS))
        for name in names:
            if stream.type.count > 400:
                break
            stream = CHANGES[name](stream, pick)
        column(stream, "y")
    found = stream.layout
    assert (found is None) is bool(stream.no_layout)
    if found is None:
        # Only these operators join tiles that are apart in a tensor, or read them with uneven
        # steps.
        assert {"split", "retile", "buffer", "rows"} & set(names)
        return
    seen.update(names)
    sent = np.asarray(simulate(program).outputs["y"]).reshape(-1, found.rows, found.cols)
    expected = [tile.reshape(found.rows, found.cols).tolist() for tile in streamed(x, found)]
    assert sent.tolist() == expected


def test_sum_of_all_blocks_is_as_wide_as_a_block() -> None:
    x = np.arange(64.0).reshape(8, 8)
    with Program("sum", mode="functional") as program:
        blocks = op.LinearOffChipLoad(op.Tensor((8, 8), x, dtype="float32"), (4, 2))()
        total = op.Accum(op.Sum())(blocks)
        column(total, "y")
        half, _ = op.Reshape(2)(blocks)
        part = op.Accum(op.Sum())(half)
        column(part, "part")
    assert total.layout == Layout((8, 2), (4, 2), (2,), (4,), (0,))
    expected = x[:, 0:2] + x[:, 2:4] + x[:, 4:6] + x[:, 6:8]
    sent = np.asarray(simulate(program).outputs["y"])
    assert sent.tolist() == np.concatenate(streamed(expected, total.layout)).tolist()
    assert part.no_layout == "sum_2: its groups are parts of a dimension"


def test_load_by_strides_has_the_layout_of_its_view() -> None:
    x = np.ones((8, 8))
    with Program("load"):
        columns = op.LinearOffChipLoad(x, (4, 2), (4, 2), (1, 4))()
        again = op.LinearOffChipLoad(x, (4, 2), (2, 4), (4, 1))(op.Metadata(np.zeros(3, int))())
        twice = op.Streamify((2,))(op.Bufferize()(columns))
        backwards = op.LinearOffChipLoad(x, (4, 2), (4,), (-1,), 3, name="backwards")()
    assert columns.layout == Layout.tiled((8, 8), (4, 2), (1, 0))
    assert twice.layout == TWICE
    assert again.layout == Layout((8, 8), (4, 2), (3, 2, 4), (1, 4, 2), (None, 0, 1))
    assert backwards.no_layout == "backwards: its steps are not loops over the tensor"

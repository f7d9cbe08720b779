"""Convert: StreamTensor's figures, and random orders streamed through programs, against numpy."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Layout, Program, ShapeError, Stream, simulate
from fabric.extend import (
    BufferType,
    Loop,
    Operator,
    common_tile,
    conversion,
    convert_bytes,
    live_tiles,
    product,
)
from fabric.graph.layouts.reordering import in_parts, nest_of, strides_of
from operators import (
    Accum,
    Bufferize,
    Convert,
    FlatMap,
    Flatten,
    LinearOffChipLoad,
    LinearOffChipStore,
    Promote,
    Reshape,
    RetileCol,
    RetileRow,
    SplitTiles,
    Streamify,
    Tensor,
)
from tests.fabric.layouts.layouts import places, streamed, tensor
from tests.profiles import examples

BY_COLUMNS = Layout((8, 8), (4, 2), (4, 2), (2, 4), (1, 0))
TWICE = Layout((8, 8), (4, 2), (4, 2, 2), (2, 1, 4), (1, None, 0))
SQUARES = Layout.tiled((64, 64), (16, 16))
ROWS_AGAIN = Layout((64, 64), (16, 16), (4, 4, 4), (16, 1, 16), (0, None, 1))


def loaded(layout: Layout) -> Stream:
    """Return the stream of a matrix in the order of ``layout``, without help from what is tested.

    The tiles are stored one after the other, in the order in which they come.
    """
    x = tensor(layout.shape).astype(np.float32)
    size = layout.rows, layout.cols
    tiles = np.stack([tile.reshape(1, *size) for tile in streamed(x, layout)])
    stored = Tensor(tiles.shape, tiles, dtype="float32")
    load = LinearOffChipLoad(stored, size, (layout.count,), (1,), name="source")
    return load().laid_out(layout)


def stacked(layout: Layout) -> NDArray[Any]:
    """Return what a store writes of a stream in the order of ``layout``."""
    x = tensor(layout.shape).astype(np.float32)
    tiles = [tile.reshape(layout.rows, layout.cols) for tile in streamed(x, layout)]
    inner = layout.trips[-1] if layout.trips else 1
    groups = [tiles[at : at + inner] for at in range(0, len(tiles), inner)]
    return np.concatenate([np.concatenate(group, axis=1) for group in groups])


def converted(source: Layout, wanted: Layout) -> Program:
    """Return a program that brings a stream from one order into the other, and checks it."""
    with Program("convert", mode="functional") as program:
        stream = Convert(wanted)(loaded(source))
        assert stream.shape == (1, *wanted.trips)
        assert stream.layout == wanted
        LinearOffChipStore("y")(stream)
    program.expect(rtol=0, atol=0, y=lambda: stacked(wanted))
    return program


def buffers(program: Program) -> list[str]:
    """Return the types of the buffers in ``program``."""
    return [
        str(node.outputs[0].type) for node in program.nodes if isinstance(node.operator, Bufferize)
    ]


class TestFigures:
    """StreamTensor, figures 5 and 7."""

    def test_figure_5(self) -> None:
        """From (b) to (c): 8x2 of the tensor, 2 tiles, 4 in a ping-pong buffer."""
        found = convert_bytes(BY_COLUMNS, TWICE, 4)

        assert (found.shape, found.tiles, found.reuses) == ((8, 2), 2, 4)
        assert 2 * found.bytes == 2 * (8 * 2) * 4
        assert live_tiles(BY_COLUMNS, TWICE) == 2
        program = converted(BY_COLUMNS, TWICE)
        assert buffers(program) == ["[1, 4] of buffer [2] of 4x2 float32"]
        assert simulate(program).verified

    def test_figure_7(self) -> None:
        """Rows of tiles, each read four times: 16x64, filled four times."""
        found = convert_bytes(SQUARES, ROWS_AGAIN, 4)

        assert (found.shape, found.tiles, found.reuses) == ((16, 64), 4, 4)
        assert found.bytes == 16 * 64 * 4
        program = converted(SQUARES, ROWS_AGAIN)
        assert buffers(program) == ["[1, 4] of buffer [4] of 16x16 float32"]
        assert simulate(program).verified

    def test_rows_to_columns(self) -> None:
        """Of a 4x4 grid all tiles are buffered, though 10 would do."""
        by_columns = Layout.tiled((64, 64), (16, 16), order=(1, 0))

        assert convert_bytes(SQUARES, by_columns, 4).tiles == 16
        assert live_tiles(SQUARES, by_columns) == 10


BY_ROWS = Layout.tiled((8, 8), (4, 2))
FINE = Layout.tiled((8, 8), (2, 2))
WIRED: list[tuple[Layout, Layout, list[Operator]]] = [
    (BY_ROWS, BY_COLUMNS, [Bufferize(2), Streamify((), (4, 2), (1, 4))]),
    (BY_COLUMNS, BY_ROWS, [Bufferize(2), Streamify((), (2, 4), (1, 2))]),
    (BY_COLUMNS, TWICE, [Bufferize(1), Streamify((), (2, 2), (0, 1))]),
    # One tile of all, at [1, 3] of [2, 4].
    (
        BY_ROWS,
        Layout((8, 8), (4, 2), (), (), (), (4, 6)),
        [Bufferize(2), Streamify((), (1,), (0,), 7), Flatten(0, 1)],
    ),
    # Two parts of each tile, of four in a row: 2 x 4 parts, columns last.
    (
        BY_ROWS,
        FINE,
        [FlatMap(SplitTiles(2, 2)), Bufferize(2), Streamify((), (2, 4), (1, 2)), Flatten(1, 2)],
    ),
    (
        FINE,
        BY_ROWS,
        [
            Flatten(0, 1), Reshape(8), Bufferize(1), Streamify((), (4, 2), (1, 4)),
            Accum(RetileRow(), rank=1),
        ],
    ),
    (
        BY_ROWS,
        Layout.tiled((8, 8), (8, 8)),
        [Promote(2), Promote(3), Accum(RetileCol()), Accum(RetileRow(), rank=1)],
    ),
    (
        BY_ROWS,
        Layout((8, 8), (4, 2), (2, 2, 2), (4, 4, 2), (0, 1, 1)),
        [Reshape(2)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "wanted", "operators"), WIRED)
def test_wired(source: Layout, wanted: Layout, operators: list[Operator]) -> None:
    """Parts of tiles, a buffer of whole dimensions where there are such, and how it is read."""
    with Program("wired") as program:
        size = source.rows, source.cols
        stream = LinearOffChipLoad(
            Tensor((8, 8), dtype="float32"), size, source.trips, _strides(source)
        )()
        Convert(wanted)(stream)
    assert operators == [node.operator for node in program.nodes[1:]]


def _strides(layout: Layout) -> tuple[int, ...]:
    """Return the strides, in tiles, of a layout whose loops move by a tile each."""
    across = layout.shape[1] // layout.cols
    return tuple((across, 1)[dim or 0] for dim in layout.map)


def test_equal_orders() -> None:
    """Nothing is wired but what gives the stream its shape; the buffer of one tile is no buffer."""
    split = Layout((8, 8), (4, 2), (2, 2, 2), (4, 2, 4), (1, 1, 0))
    with Program("equal") as program:
        stream = loaded(BY_COLUMNS)
        again = Convert(split)(stream)
        assert again.shape == (1, 2, 2, 2)
        assert buffers(program) == []
        before = len(program.nodes)
        same = Convert(split)(again)
        assert (same.shape, len(program.nodes)) == (again.shape, before)
    by_rows = Layout.tiled((8, 8), (4, 2))
    assert [conversion(split, each).equal for each in (BY_COLUMNS, by_rows)] == [True, False]


@st.composite
def orders(draw: st.DrawFn, shape: tuple[int, ...], tile: tuple[int, ...]) -> Layout:
    """Draw an order of all tiles: dimensions mixed, loops split, some read again."""
    loops: list[tuple[int, int, int | None]] = []
    for dim, (size, part) in enumerate(zip(shape, tile, strict=True)):
        step, left = part, size // part
        while left > 1:
            trips = draw(st.sampled_from([n for n in range(2, left + 1) if left % n == 0]))
            loops.append((trips, step, dim))
            step *= trips
            left //= trips
    loops += [(2, 1, None)] * draw(st.sampled_from((0, 0, 1)))
    loops += [(1, 1, 0)] * draw(st.sampled_from((0, 0, 1)))
    loops = draw(st.permutations(loops))
    return Layout.tiled(shape, tile).nested([Loop(*loop) for loop in loops])


SHAPES = st.sampled_from(((8, 8), (4, 12), (2, 4, 6), (12,), (6, 2, 2)))


def tiles(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw tiles that divide ``shape``."""
    return st.tuples(
        *(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]) for size in shape)
    )


@given(st.data())
@examples(quick=100, deep=2_000)
def test_random_orders(data: st.DataObject) -> None:
    """Two orders of the same tiles: what numpy gives; live tiles by looking at every moment."""
    shape = data.draw(SHAPES)
    tile = data.draw(tiles(shape))
    source, wanted = data.draw(orders(shape, tile)), data.draw(orders(shape, tile))

    try:
        program = converted(source, wanted)
    except ShapeError as error:
        assert "expected steps of equal size" in error.message  # noqa: PT017
        assert not nests(places(source), places(wanted))
        return
    assert simulate(program).verified
    live = live_tiles(source, wanted)
    found = Convert(wanted).buffer(source)
    assert found.tiles * found.rounds == source.count
    written, read = (split(places(order), found.rounds) for order in (source, wanted))
    assert live == max(map(fewest, written, read)) <= found.tiles
    if len(set(places(source))) == source.count:
        assert live == fewest(places(source), places(wanted))
    if not source.same_order(wanted):
        (buffer,) = [n.outputs[0] for n in program.nodes if isinstance(n.operator, Bufferize)]
        assert isinstance(buffer.value, BufferType)
        assert product(buffer.value.shape) == found.tiles


def nests(written: list[Any], read: list[Any]) -> bool:
    """Whether the numbers of what is read are sums of loops, one for each way to split them."""
    numbers = [written.index(place) for place in read]
    return any(
        all(
            number - numbers[0] == sum(digit * numbers[at] - digit * numbers[0] for digit, at in ds)
            for number, ds in zip(numbers, digits(trips), strict=True)
        )
        for trips in factorings(len(read))
    )


def factorings(count: int) -> list[tuple[int, ...]]:
    """Return the ways to write ``count`` as a product of loops."""
    return [()] * (count == 1) + [
        (first, *rest)
        for first in range(2, count + 1)
        if count % first == 0
        for rest in factorings(count // first)
    ]


def digits(trips: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """Return for each round its trip of every loop, with the first round of that loop."""
    weights = [math.prod(trips[at + 1 :]) for at in range(len(trips))]
    return [
        [(number // weight % size, weight) for weight, size in zip(weights, trips, strict=True)]
        for number in range(math.prod(trips))
    ]


def split(places: list[Any], rounds: int) -> list[list[Any]]:
    """Return what each of the rounds has."""
    count = len(places) // rounds
    return [places[at : at + count] for at in range(0, len(places), count)]


def fewest(written: list[Any], read: list[Any]) -> int:
    """Return the tiles kept by who takes one only when it needs it, and forgets it after."""
    kept: set[Any] = set()
    most, taken = 0, 0
    for at, tile in enumerate(read):
        while tile not in kept:
            if written[taken] in read[at:]:
                kept.add(written[taken])
            taken += 1
        most = max(most, len(kept))
        if tile not in read[at + 1 :]:
            kept.remove(tile)
    return most


@given(st.data())
@examples(quick=100, deep=2_000)
def test_random_tiles(data: st.DataObject) -> None:
    """Other tiles: cut into common parts, brought into order, and put together again."""
    shape = data.draw(SHAPES)
    source = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
    wanted = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
    try:
        program = converted(source, wanted)
    except ShapeError as error:
        assert "expected steps of equal size" in error.message  # noqa: PT017
        return
    assert simulate(program).verified


def test_slice() -> None:
    """A part of the tensor is read from the middle of the buffer."""
    part = Layout((8, 8), (4, 2), (2, 2), (4, 2), (0, 1), (0, 4))

    assert simulate(converted(BY_COLUMNS, part)).verified
    assert Convert(part).buffer(BY_COLUMNS).offset == 4


def test_parts_of_rows() -> None:
    """Tiles of several dimensions are cut where the rows of the parts are neighbours."""
    wide, narrow = Layout.tiled((2, 4, 6), (2, 4, 6)), Layout.tiled((2, 4, 6), (1, 2, 3))
    assert simulate(converted(wide, narrow)).verified
    assert simulate(converted(narrow, wide)).verified
    halves = Layout.tiled((2, 4, 6), (2, 2, 6))
    assert common_tile(wide, halves) == (1, 2, 6)
    assert simulate(converted(wide, halves)).verified


def test_streamify_with_offset() -> None:
    """The first tile that is read is not the first of the buffer."""
    x = np.arange(12.0).reshape(6, 2)
    with Program("offset", mode="functional") as program:
        buffer = Bufferize(2)(LinearOffChipLoad(x, (1, 2))())
        LinearOffChipStore("y")(Streamify((), (2, 2), (3, 1), 1)(buffer))
    program.expect(y=lambda: x.reshape(2, 6)[:, 2:])
    assert simulate(program).verified


def test_orders_that_begin_with_other_rounds() -> None:
    """Of 6 rounds and of 4 both begin with 2, be it of the same tiles or of others."""
    six, four = (Layout((8,), (2,), (times, 4), (1, 2), (None, 0)) for times in (6, 4))
    assert convert_bytes(six, four, 4) == ((8,), 3 * 4, 3 * 4 * 2 * 4, 2)
    # 24 rows in 6 bands beside 2 halves: each half is turned, which has 3 of the bands.
    bands_of_4, halves = (
        Layout((24, 2), (1, 1), (bands, 2, 24 // bands), (24 // bands, 1, 1), (0, 1, 0))
        for bands in (6, 2)
    )
    assert convert_bytes(bands_of_4, halves, 1) == ((12, 2), 24, 24, 2)
    found = conversion(bands_of_4, halves)
    assert (found.shape, found.strides, found.offset) == ((2, 3, 4), (4, 8, 1), 0)


class TestMistakes:
    """What cannot be converted, in words."""

    def test_unknown_order(self) -> None:
        """A stream whose order nobody knows."""
        backwards = LinearOffChipLoad(np.ones((8, 8)), (4, 2), (2,), (-1,), 1, name="backwards")
        with Program("unknown"):
            stream = backwards()
            with pytest.raises(ShapeError) as caught:
                Convert(TWICE)(stream)
        assert "whose order is not known" in caught.value.message
        assert "expected a stream whose order is" in caught.value.message

    def test_missing_tiles(self) -> None:
        """A part of the tensor has not all of it."""
        half = Layout((8, 8), (4, 2), (4,), (2,), (1,))
        with Program("missing"), pytest.raises(ShapeError, match="has not all tiles of"):
            Convert(BY_COLUMNS)(loaded(half))

    def test_other_tensor(self) -> None:
        """A tensor of another shape."""
        with Program("other"), pytest.raises(ShapeError, match="expected the same shape"):
            Convert(SQUARES)(loaded(Layout.tiled((64, 32), (16, 32))))

    @pytest.mark.parametrize("tile", [(0, 2), (4, 0), (3, 2), (4, 4), (-2, 2), (4,), (4, 2, 1)])
    def test_no_parts(self, tile: tuple[int, ...]) -> None:
        """What does not divide the tile, or is nothing."""
        with pytest.raises(ShapeError, match="expected a part of the tile of"):
            in_parts(BY_COLUMNS, tile)

    def test_no_steps(self) -> None:
        """An order that no Streamify can read."""
        source = Layout((12,), (1,), (2, 2, 3), (1, 2, 4), (0, 0, 0))
        uneven = Layout((12,), (1,), (3, 4), (1, 3), (0, 0))
        with Program("steps"), pytest.raises(ShapeError, match="expected steps of equal size"):
            Convert(uneven)(loaded(source))


@pytest.mark.parametrize(
    ("numbers", "nest"),
    [
        ([5], ((), ())), ([5, 7], ((2,), (2,))), ([0, 1, 2, 3], ((4,), (1,))),
        ([0, 1, 5, 6], ((2, 2), (5, 1))), ([3, 3, 3], ((3,), (0,))), ([0, 1, 3], None),
        ([0, 1, 5, 7], None), ([0, 1, 5, 6, 9], None), ([6, 4, 2, 0], ((4,), (-2,))),
        ([0, 1, 5, 6, 2, 3, 7, 8], ((2, 2, 2), (2, 5, 1))), ([0, 1, 2, 4, 5, 6], ((2, 3), (4, 1))),
        ([0, 1, 5, 6, 7, 8], None), ([0, 0, 4, 4, 9, 9], None),
        ([0, 0, 4, 4, 8, 8], ((3, 2), (4, 0))),
    ],
)  # fmt: skip
def test_nests(numbers: list[int], nest: tuple[tuple[int, ...], ...] | None) -> None:
    """The fewest loops that count so; there are none where the innermost one would end early."""
    assert nest == nest_of(np.array(numbers, np.int64))


@pytest.mark.parametrize(
    ("numbers", "shape", "strides"),
    [
        ([3, 4, 5, 6], (4,), (1,)), ([3, 4, 5, 6], (2, 2), (2, 1)), ([3, 4, 5, 7], (4,), None),
        ([3, 4, 5, 7], (2, 2), None), ([0, 5, 1, 6], (2, 2), (1, 5)), ([7], (1, 1), (0, 0)),
        ([7, 9], (1, 2), (0, 2)), ([7, 9], (2, 1), (2, 0)), ([7], (), ()),
        ([0, 1, 4, 5, 2, 3, 6, 7], (2, 2, 2), (2, 4, 1)), ([0, 2, 4, 5], (2, 2), None),
    ],
)  # fmt: skip
def test_strides(
    numbers: list[int], shape: tuple[int, ...], strides: tuple[int, ...] | None
) -> None:
    """The step along each dimension, 0 along one of a single place; none where steps differ."""
    found = np.array(numbers, np.int64)
    assert strides == strides_of(found, shape)
    with pytest.raises(ShapeError, match=re.escape(f"shape {[*shape, 2]} is given for numbers")):
        strides_of(found, (*shape, 2))

"""Convert: figures of the StreamTensor paper, and random orders in programs compared with numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import fabric.extend as ext
import operators as op
from fabric import Layout, Program, ShapeError, Stream, simulate
from tests.fabric.layouts.layouts import places, streamed, tensor
from tests.profiles import examples

BY_COLUMNS = Layout((8, 8), (4, 2), (4, 2), (2, 4), (1, 0))
TWICE = Layout((8, 8), (4, 2), (4, 2, 2), (2, 1, 4), (1, None, 0))
SQUARES = Layout.tiled((64, 64), (16, 16))
ROWS_AGAIN = Layout((64, 64), (16, 16), (4, 4, 4), (16, 1, 16), (0, None, 1))


def loaded(layout: Layout) -> Stream:
    x = tensor(layout.shape).astype(np.float32)
    size = layout.rows, layout.cols
    tiles = np.stack([tile.reshape(1, *size) for tile in streamed(x, layout)])
    stored = op.Tensor(tiles.shape, tiles, dtype="float32")
    load = op.LinearOffChipLoad(stored, size, (layout.count,), (1,), name="source")
    return load().laid_out(layout)


def stacked(layout: Layout) -> NDArray[Any]:
    x = tensor(layout.shape).astype(np.float32)
    tiles = [tile.reshape(layout.rows, layout.cols) for tile in streamed(x, layout)]
    inner = layout.trips[-1] if layout.trips else 1
    groups = [tiles[at : at + inner] for at in range(0, len(tiles), inner)]
    return np.concatenate([np.concatenate(group, axis=1) for group in groups])


def converted(source: Layout, wanted: Layout) -> Program:
    with Program("convert", mode="functional") as program:
        stream = op.Convert(wanted)(loaded(source))
        assert stream.shape == (1, *wanted.trips)
        assert stream.layout == wanted
        op.LinearOffChipStore("y")(stream)
    program.expect(rtol=0, atol=0, y=lambda: stacked(wanted))
    return program


def buffers(program: Program) -> list[str]:
    return [
        str(node.outputs[0].type)
        for node in program.nodes
        if isinstance(node.operator, op.Bufferize)
    ]


def test_conversion_of_figure_5_buffers_two_tiles() -> None:
    found = ext.convert_bytes(BY_COLUMNS, TWICE, 4)

    assert (found.shape, found.tiles, found.reuses) == ((8, 2), 2, 4)
    assert 2 * found.bytes == 2 * (8 * 2) * 4
    assert ext.live_tiles(BY_COLUMNS, TWICE) == 2
    program = converted(BY_COLUMNS, TWICE)
    assert buffers(program) == ["[1, 4] of buffer [2] of 4x2 float32"]
    assert simulate(program).verified


def test_conversion_of_figure_7_buffers_a_row() -> None:
    found = ext.convert_bytes(SQUARES, ROWS_AGAIN, 4)

    assert (found.shape, found.tiles, found.reuses) == ((16, 64), 4, 4)
    assert found.bytes == 16 * 64 * 4
    program = converted(SQUARES, ROWS_AGAIN)
    assert buffers(program) == ["[1, 4] of buffer [4] of 16x16 float32"]
    assert simulate(program).verified


def test_conversion_of_equal_orders_has_no_buffer() -> None:
    split = Layout((8, 8), (4, 2), (2, 2, 2), (4, 2, 4), (1, 1, 0))
    with Program("equal") as program:
        stream = loaded(BY_COLUMNS)
        again = op.Convert(split)(stream)
        assert again.shape == (1, 2, 2, 2)
        assert buffers(program) == []
        before = len(program.nodes)
        same = op.Convert(split)(again)
        assert (same.shape, len(program.nodes)) == (again.shape, before)
    by_rows = Layout.tiled((8, 8), (4, 2))
    assert [ext.conversion(split, each).equal for each in (BY_COLUMNS, by_rows)] == [True, False]


@st.composite
def orders(draw: st.DrawFn, shape: tuple[int, ...], tile: tuple[int, ...]) -> Layout:
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
    return Layout.tiled(shape, tile).nested([ext.Loop(*loop) for loop in loops])


SHAPES = st.sampled_from(((8, 8), (4, 12), (2, 4, 6), (12,), (6, 2, 2)))


def tiles(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(
        *(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]) for size in shape)
    )


@given(st.data())
@examples(quick=25, deep=1_000)
def test_conversion_of_random_orders_is_verified(data: st.DataObject) -> None:
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
    live = ext.live_tiles(source, wanted)
    found = op.Convert(wanted).buffer(source)
    assert found.tiles * found.rounds == source.count
    written, read = (split(places(order), found.rounds) for order in (source, wanted))
    assert live == max(map(fewest, written, read)) <= found.tiles
    if len(set(places(source))) == source.count:
        assert live == fewest(places(source), places(wanted))
    if not source.same_order(wanted):
        (buffer,) = [n.outputs[0] for n in program.nodes if isinstance(n.operator, op.Bufferize)]
        assert isinstance(buffer.value, ext.BufferType)
        assert ext.product(buffer.value.shape) == found.tiles


def nests(written: list[Any], read: list[Any]) -> bool:
    numbers = [written.index(place) for place in read]
    return any(
        all(
            number - numbers[0] == sum(digit * numbers[at] - digit * numbers[0] for digit, at in ds)
            for number, ds in zip(numbers, digits(trips), strict=True)
        )
        for trips in factorings(len(read))
    )


def factorings(count: int) -> list[tuple[int, ...]]:
    return [()] * (count == 1) + [
        (first, *rest)
        for first in range(2, count + 1)
        if count % first == 0
        for rest in factorings(count // first)
    ]


def digits(trips: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    weights = [math.prod(trips[at + 1 :]) for at in range(len(trips))]
    return [
        [(number // weight % size, weight) for weight, size in zip(weights, trips, strict=True)]
        for number in range(math.prod(trips))
    ]


def split(places: list[Any], rounds: int) -> list[list[Any]]:
    count = len(places) // rounds
    return [places[at : at + count] for at in range(0, len(places), count)]


def fewest(written: list[Any], read: list[Any]) -> int:
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


@pytest.mark.deep
@given(st.data())
@examples(quick=50, deep=500)
def test_conversion_of_random_tiles_is_verified(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    source = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
    wanted = data.draw(tiles(shape).flatmap(lambda tile: orders(shape, tile)))
    try:
        program = converted(source, wanted)
    except ShapeError as error:
        assert "expected steps of equal size" in error.message  # noqa: PT017
        return
    assert simulate(program).verified

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from operators.kernels.attention_keys import Heads, Mask, Part, Visits, visits
from tests.profiles import examples

SIZES = st.integers(1, 3)
LOWEST = float(np.finfo(np.float32).min)


@st.composite
def tilings(draw: st.DrawFn) -> tuple[Heads, tuple[Part, ...]]:
    rows, columns = draw(SIZES), draw(SIZES)
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        if draw(st.booleans()):
            parts.append(Part(draw(st.integers(1, 6)), columns, knows_rows=False))
        else:
            own = draw(st.integers(1, columns))
            parts.append(Part(own * draw(SIZES), own, knows_rows=True))
    sizes = draw(SIZES), draw(SIZES), draw(SIZES)
    return Heads(*sizes, rows * draw(SIZES), rows, columns), tuple(parts)


def _scores(heads: Heads, parts: tuple[Part, ...], found: Visits) -> NDArray[np.float64]:
    keys = sum(part.count for part in parts)
    result = np.full((heads.batch, heads.heads, heads.queries, keys), -np.inf)
    stored = found.table()
    table = stored.astype(np.float64)
    if stored.dtype == np.bool_:
        table = np.where(stored, 0.0, -np.inf)
    columns = _columns(parts)
    tasks = itertools.product(range(heads.batch), range(heads.query_tiles), range(heads.key_heads))
    for (request, tile, key_head), seen, masks in zip(tasks, found.tiles, found.masks, strict=True):
        for key_tile, number in zip(seen, masks, strict=True):
            bias = np.zeros((1, heads.columns))
            if number >= 0:
                bias = table[number * found.rows : (number + 1) * found.rows]
            bias = np.tile(bias, (heads.group * heads.rows // len(bias), 1))
            for member, row in itertools.product(range(heads.group), range(heads.rows)):
                for column, key in enumerate(columns[key_tile]):
                    place = request, key_head * heads.group + member, tile * heads.rows + row, key
                    result[place] = bias[member * heads.rows + row, column]
            # Keys beyond those of a part are not valid, or the mask hides them.
            behind = bias[:, len(columns[key_tile]) :]
            assert _knows_rows(parts, key_tile) or np.isneginf(behind).all()
    return result


def _columns(parts: tuple[Part, ...]) -> list[list[int]]:
    found, first = [], 0
    for part in parts:
        for tile in range(0, part.count, part.rows):
            end = min(tile + part.rows, part.count)
            found.append(list(range(first + tile, first + end)))
        first += part.count
    return found


def _knows_rows(parts: tuple[Part, ...], tile: int) -> bool:
    return [part.knows_rows for part in parts for _ in range(part.tiles)][tile]


def _mask(array: NDArray[np.generic]) -> Mask:
    batch, heads, rows, keys = array.shape
    return Mask((batch, heads, rows, keys), lambda: array, array.dtype)


@examples(quick=25, deep=200)
@given(tilings(), st.data())
def test_tiles_read_equal_a_walk_over_the_mask(
    tiling: tuple[Heads, tuple[Part, ...]], data: st.DataObject
) -> None:
    heads, parts = tiling
    keys = sum(part.count for part in parts)
    shape = (
        data.draw(st.sampled_from([1, heads.batch])),
        data.draw(st.sampled_from([1, heads.heads])),
        data.draw(st.sampled_from([1, heads.queries])),
        keys,
    )
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    hidden = random.random(shape) < data.draw(st.sampled_from([0.0, 0.5, 0.9]))
    mask: NDArray[np.generic] = ~hidden
    wanted = np.where(hidden, -np.inf, 0.0)
    if data.draw(st.booleans()):
        wanted = np.where(hidden, -np.inf, random.integers(0, 2, shape))
        mask = wanted.astype(np.float32)

    found = visits(heads, parts, _mask(mask))

    whole = np.broadcast_to(wanted, (heads.batch, heads.heads, heads.queries, keys))
    np.testing.assert_array_equal(whole, _scores(heads, parts, found))
    columns = _columns(parts)
    split = whole.reshape(heads.batch, heads.key_heads, -1, heads.query_tiles, heads.rows, keys)
    seen = np.isfinite(split).any(axis=(2, 4)).transpose(0, 2, 1, 3).reshape(-1, keys)
    assert [
        tuple(tile for tile, own in enumerate(columns) if task[own].any()) for task in seen
    ] == list(found.tiles)
    tiles = found.table().reshape(found.count, found.rows, heads.columns)
    assert len({each.tobytes() for each in tiles}) == found.count


def test_without_a_mask_only_the_last_tile_is_masked() -> None:
    heads = Heads(1, 1, 2, 2, 1, 4)

    found = visits(heads, (Part(6, 4, knows_rows=False), Part(2, 2, knows_rows=True)), None)

    assert ((0, 1, 2),) * 2 == found.tiles
    assert ((-1, 0, -1),) * 2 == found.masks
    assert [[True, True, False, False]] == found.table().tolist()


@pytest.mark.parametrize(("others", "expected"), [(0.0, ((0,),)), (LOWEST, ((0, 1),))])
def test_keys_with_the_lowest_number_are_hidden(
    others: float, expected: tuple[tuple[int, ...], ...]
) -> None:
    bias = np.array([others, others, LOWEST, LOWEST], np.float32).reshape(1, 1, 1, 4)

    found = visits(Heads(1, 1, 1, 1, 1, 2), (Part(4, 2, knows_rows=False),), _mask(bias))

    assert expected == found.tiles

"""The softmax in pieces, against numpy's over whole rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import ShapeError, Tile, TileType
from operators import RescaledSum, RunningMaximum, ShiftedExp

FLOAT = np.dtype(np.float32)
ROWS, COLS, WIDTH = 3, 4, 2


def tile(array: NDArray[Any], **valid: Any) -> Tile:
    """Return a tile of ``array``."""
    rows, cols = array.shape
    return Tile(rows, cols, FLOAT, array.astype(FLOAT), **valid)


def data(of: Any) -> NDArray[Any]:
    """Return the numbers of a tile."""
    assert of.data is not None
    array: NDArray[Any] = of.data
    return array


def kinds(pieces: int = COLS) -> tuple[Any, Any]:
    """Return the types of both reductions' results."""
    scores, column = TileType(ROWS, pieces, FLOAT), TileType(ROWS, 1, FLOAT)
    running = RunningMaximum().infer(1, scores)
    sums = RescaledSum().infer(1, scores, TileType(pieces, WIDTH, FLOAT), column, column)
    return running, sums


def attention(pieces: list[tuple[Tile, Tile]]) -> NDArray[Any]:
    """Return softmax(scores) @ values of all pieces."""
    running, sums = kinds()
    maximum, total = RunningMaximum(), RescaledSum()
    largest, state = maximum.start(running, True), total.start(sums, True)
    for scores, values in pieces:
        largest = maximum.update(largest, scores)
        columns = maximum.finish(largest, running, True)
        weights = ShiftedExp().apply(scores, *columns)
        state = total.update(state, weights, values, *columns)
    numerator, divisor = total.finish(state, sums, True)
    result: NDArray[Any] = data(numerator) / data(divisor)
    return result


def softmax(scores: NDArray[Any]) -> NDArray[Any]:
    """Return the softmax of every row; zeros where all scores are minus infinity."""
    largest = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
    sums = powers.sum(axis=1, keepdims=True)
    result: NDArray[Any] = powers / np.where(sums == 0, 1, sums)
    return result


SCORES = st.one_of(st.floats(-80, 80, width=32), st.just(-np.inf))


@given(st.lists(st.tuples(st.integers(0, COLS), st.integers(0, 2**32 - 1)), max_size=5), st.data())
def test_whole_rows(pieces: list[tuple[int, int]], drawn: st.DataObject) -> None:
    """However many columns of each piece are valid, and also where scores are minus infinity."""
    numbers = st.lists(SCORES, min_size=ROWS * COLS, max_size=ROWS * COLS)
    given_pieces, scores, values = [], [], []
    for valid, seed in pieces:
        piece = np.array(drawn.draw(numbers)).reshape(ROWS, COLS)
        rows = np.random.default_rng(seed).standard_normal((COLS, WIDTH))
        # What is not valid is not looked at, whatever is there.
        given_pieces.append((tile(piece, valid_cols=valid), tile(rows)))
        scores.append(piece[:, :valid])
        values.append(rows[:valid])

    expected = np.zeros((ROWS, WIDTH))
    if sum(valid for valid, _ in pieces):
        expected = softmax(np.concatenate(scores, axis=1)) @ np.concatenate(values)
    np.testing.assert_allclose(attention(given_pieces), expected, rtol=1e-4, atol=1e-5)


def test_running_maximum() -> None:
    """The largest so far, and what rescales the sums; valid rows stay."""
    running, _ = kinds(2)
    maximum = RunningMaximum()
    state = maximum.update(None, tile(np.array([[1, 2], [5, 3], [0, 0]]), valid_rows=2))
    largest, factor = maximum.finish(state, running, True)

    assert [[2], [5], [0]] == data(largest).tolist()
    assert [[0], [0], [0]] == data(factor).tolist()
    assert 2 == largest.valid_rows == factor.valid_rows
    state = maximum.update(state, tile(np.array([[3, 1], [4, 4], [0, -1]])))
    largest, factor = maximum.finish(state, running, True)
    assert [[3], [5], [0]] == data(largest).tolist()
    assert data(factor).ravel().tolist() == pytest.approx([np.exp(-1), 1, 1])


def test_of_nothing() -> None:
    """Minus infinity and 0; zeros and ones."""
    running, sums = kinds()
    largest, factor = RunningMaximum().finish(None, running, True)
    total, weight = RescaledSum().finish(RescaledSum().start(sums, True), sums, True)

    assert [[-np.inf]] * ROWS == data(largest).tolist()
    assert [[0]] * ROWS == data(factor).tolist()
    assert [[0] * WIDTH] * ROWS == data(total).tolist()
    assert [[1]] * ROWS == data(weight).tolist()


def test_without_data() -> None:
    """Timing mode knows the shapes, of nothing too."""
    running, sums = kinds()
    scores, values = Tile(ROWS, COLS, FLOAT), Tile(COLS, WIDTH, FLOAT)
    state = RunningMaximum().update(RunningMaximum().start(running, False), scores)
    columns = RunningMaximum().finish(state, running, False)
    weights = ShiftedExp().apply(scores, *columns)
    total = RescaledSum()
    results = total.finish(
        total.update(total.start(sums, False), weights, values, *columns), sums, False
    )
    found = (*columns, weights, *results, *RunningMaximum().finish(None, running, False))

    assert [None] * 7 == [each.data for each in found]
    assert [1, 1, COLS, WIDTH, 1, 1, 1] == [each.cols for each in found]
    assert {ROWS} == {each.rows for each in found}


def test_operations() -> None:
    """Counted as the elementary functions are: exp 4, the others 1."""
    scores, values = TileType(ROWS, COLS, FLOAT), TileType(COLS, WIDTH, FLOAT)

    assert ROWS * (COLS + 1 + 1 + 4) == RunningMaximum().flops(scores)
    assert ROWS * COLS * (1 + 4) == ShiftedExp().flops(scores)
    products = 2 * ROWS * COLS * WIDTH
    assert products + ROWS * COLS + ROWS * (WIDTH + 1) == RescaledSum().flops(scores, values)


def test_columns_that_do_not_fit() -> None:
    """A maximum for each row; as many values as weights."""
    scores, column = TileType(ROWS, COLS, FLOAT), TileType(ROWS, 1, FLOAT)
    for wrong in (TileType(ROWS + 1, 1, FLOAT), TileType(ROWS, 2, FLOAT)):
        for columns in ((wrong, column), (column, wrong)):
            with pytest.raises(ShapeError, match="expected a maximum and a factor for each row"):
                ShiftedExp().infer(scores, *columns)
    with pytest.raises(ShapeError, match="expected as many columns as rows"):
        RescaledSum().infer(1, scores, scores, column, column)

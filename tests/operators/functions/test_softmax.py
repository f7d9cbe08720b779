from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabric import Tile, TileType
from operators import RescaledSum, RunningMaximum, ShiftedExp

FLOAT = np.dtype(np.float32)
ROWS, COLS, WIDTH = 3, 4, 2


def tile(array: NDArray[Any], **valid: Any) -> Tile:
    rows, cols = array.shape
    return Tile(rows, cols, FLOAT, array.astype(FLOAT), **valid)


def data(of: Any) -> NDArray[Any]:
    assert of.data is not None
    array: NDArray[Any] = of.data
    return array


def kinds(pieces: int = COLS) -> tuple[Any, Any]:
    scores, column = TileType(ROWS, pieces, FLOAT), TileType(ROWS, 1, FLOAT)
    running = RunningMaximum().infer(1, scores)
    sums = RescaledSum().infer(1, scores, TileType(pieces, WIDTH, FLOAT), column, column)
    return running, sums


def attention(pieces: list[tuple[Tile, Tile]]) -> NDArray[Any]:
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
    largest = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
    sums = powers.sum(axis=1, keepdims=True)
    result: NDArray[Any] = powers / np.where(sums == 0, 1, sums)
    return result


SCORES = st.one_of(st.floats(-80, 80, width=32), st.just(-np.inf))


@given(st.lists(st.tuples(st.integers(0, COLS), st.integers(0, 2**32 - 1)), max_size=5), st.data())
def test_softmax_in_pieces_equals_that_of_whole_rows(
    pieces: list[tuple[int, int]], drawn: st.DataObject
) -> None:
    numbers = st.lists(SCORES, min_size=ROWS * COLS, max_size=ROWS * COLS)
    given_pieces, scores, values = [], [], []
    for valid, seed in pieces:
        piece = np.array(drawn.draw(numbers)).reshape(ROWS, COLS)
        rows = np.random.default_rng(seed).standard_normal((COLS, WIDTH))
        # Invalid rows and columns are not read.
        given_pieces.append((tile(piece, valid_cols=valid), tile(rows)))
        scores.append(piece[:, :valid])
        values.append(rows[:valid])

    expected = np.zeros((ROWS, WIDTH))
    if sum(valid for valid, _ in pieces):
        expected = softmax(np.concatenate(scores, axis=1)) @ np.concatenate(values)
    np.testing.assert_allclose(attention(given_pieces), expected, rtol=1e-4, atol=1e-5)

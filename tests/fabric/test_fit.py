"""What of users' values fits: integers of any type, tiles that are valid in part."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from fabric import SelectorType, StreamType, Tile, TileType
from fabric.extend import BoolType, BufferType, ValueType
from fabric.graph.values.dims import symbol
from fabric.graph.values.fit import described, element_misfit, exact_numbers, misfit, whole
from fabric.graph.values.value import BufferReference, Empty, Selector, drop, share
from fabric.messages.telling.errors import Refusal

F32 = np.dtype(np.float32)
TILE = TileType(1, 2, F32)


@pytest.mark.parametrize("number", [0, 1, np.int64(0), np.uint8(7)])
def test_taken(number: object) -> None:
    """What is at least 0 becomes an integer of Python's."""
    result = whole(number, "cycles are charged")
    assert (int, number) == (type(result), result)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (-1, "-1 cycles are charged: expected at least 0"),
        (True, "True cycles are charged: expected an integer"),
        (1.0, "1.0 cycles are charged: expected an integer"),
        (None, "None cycles are charged: expected an integer"),
    ],
)
def test_refused(number: object, said: str) -> None:
    """What is below 0, a truth value or no integer is refused as it was written."""
    with pytest.raises(Refusal) as refused:
        whole(number, "cycles are charged")
    assert said == str(refused.value)


@pytest.mark.parametrize(("rows", "cols"), [(0, 0), (1, 3), (2, 1), (2, 3)])
def test_valid_in_part(rows: int, cols: int) -> None:
    """From none to all of a tile's rows and columns may be valid."""
    f32 = np.dtype(np.float32)
    tile = Tile(2, 3, f32, np.zeros((2, 3), f32), valid_rows=rows, valid_cols=cols)
    assert misfit(tile, TileType(2, 3, f32), True) is None


def _buffer(*values: Any, rank: int = 1) -> BufferReference:
    """A buffer of ``values``; who asks what is in it does not ask for its room."""
    room: Any = None
    return BufferReference([(value, 0) for value in values], rank, room)


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (Tile(0, 2, F32, np.zeros((0, 2), F32)), TileType(symbol("n"), 2, F32), None),
        (Tile(2, 2, F32, np.zeros((2, 2), F32)), TILE, "a Tile of 2x2: expected 1x2 float32"),
        (
            Tile(1, 2, np.dtype("U3"), np.zeros((1, 2), "U3")),
            TileType(1, 2, np.dtype("U3")),
            "Tile(1x2 str96): expected numbers",
        ),
        (Selector((0, 3), 4), SelectorType(4), None),
        (Selector((), 4), SelectorType(4, hits=0), None),
        (
            Selector((1, 1), 4),
            SelectorType(4),
            "a Selector of (1, 1): expected a tuple of different integers from 0 to 3, ascending",
        ),
        (True, BufferType((2,), TILE), "True: expected a BufferReference to buffer [2] of 1x2 "),
        (_buffer(Empty(0)), BufferType((0,), TILE), None),
        (_buffer(Tile(1, 2, F32, np.zeros((1, 2), F32))), BufferType((1,), TILE), None),
        (
            _buffer(Empty(0), rank=2),
            BufferType((2,), TILE),
            "BufferReference(2 dimensions, 1 element): expected 1 dimension",
        ),
        (
            _buffer(Tile(1, 2, F32, np.zeros((1, 2), F32)), Tile(1, 2, F32)),
            BufferType((2,), TILE),
            "a buffer whose element 1 is Tile(1x2 float32) without data: expected an array of "
            "1x2 float32",
        ),
    ],
    ids=str,
)
def test_values(value: Any, kind: ValueType, found: str | None) -> None:
    """What a user's value is, beside what was promised; every tile of a buffer is looked at."""
    told = misfit(value, kind, True)
    assert (told is None) == (found is None)
    assert (told or "").startswith(found or "")


def test_integers_have_data() -> None:
    """Integers may control something in timing mode, too; floats may not; none have to."""
    for dtype, fits in ((np.int32, True), (np.bool_, True), (np.uint8, True), (np.float32, False)):
        its = np.dtype(dtype)
        tile, kind = Tile(1, 2, its, np.zeros((1, 2), its)), TileType(1, 2, its)
        assert (misfit(tile, kind, False) is None) == fits
        assert misfit(Tile(1, 2, its), kind, False) is None


def test_exact() -> None:
    """An exact run keeps floats of any type in float64, and says so where they are in another."""
    tile = Tile(1, 2, F32, np.zeros((1, 2), F32))
    ints = Tile(1, 2, np.dtype(np.int32), np.zeros((1, 2), np.int32))
    with exact_numbers(True):
        assert misfit(tile, TILE, True) == (
            "Tile(1x2 float32) whose data are an array of 1x2 float32: expected an array of "
            "1x2 float64, as an exact run keeps float32"
        )
        assert misfit(Tile(1, 2, F32, np.zeros((1, 2))), TILE, True) is None
        assert misfit(ints, TileType(1, 2, np.dtype(np.int32)), True) is None
    assert misfit(tile, TILE, True) is None


@pytest.mark.parametrize(
    ("value", "stop", "last", "found"),
    [
        (True, 2, 2, None),
        (True, 0, 2, None),
        (True, 3, 2, "has a stop of level 3: expected 0 to 2, the rank of [2, 3, 4] of bool"),
        (True, -1, 2, "has a stop of level -1: expected 0 to 2, the rank of [2, 3, 4] of bool"),
        (Empty(0), 1, 0, None),
        (Empty(1), 2, 1, None),
        (
            Empty(1),
            1,
            2,
            "is Empty(dimension=1) with a stop of level 1: expected a level above that of the "
            "empty dimension",
        ),
        (
            Empty(0.0),  # type: ignore[arg-type]
            1,
            0,
            "is Empty(dimension=0.0) with a stop of level 1: expected a level above that of the "
            "empty dimension",
        ),
        (
            Empty(-1),
            1,
            2,
            "is Empty(dimension=-1) with a stop of level 1: expected a level above that of the "
            "empty dimension",
        ),
        (
            Empty(1),
            2,
            0,
            "is Empty(dimension=1) inside of dimension 0, which is still open: expected an empty "
            "dimension of at most 0",
        ),
    ],
)
def test_stops(value: object, stop: int, last: int, found: str | None) -> None:
    """A level from 0 to the rank; a bare stop closes its empty dimension and opens none."""
    assert found == element_misfit((value, stop), last, StreamType((2, 3, 4), BoolType()), True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 38, repr("x" * 38)),
        ("x" * 39, f"'{'x' * 36}..."),
        (2.5, "2.5"),
        (np.float32(2.5), "a value of type float32"),
        (np.zeros(()), "an array of no float64"),
        (np.zeros((2, 3), np.int8), "an array of 2x3 int8"),
        ((1, 2, 3, 4), "(1, 2, 3, 4)"),
        ((1, 2, 3, 4, 5), "(1, 2, 3, 4, ...)"),
        (object(), "a value of type object"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_described(value: object, text: str) -> None:
    """Long texts and tuples are cut, arrays are their shape and type."""
    assert text == described(value)


def test_holders() -> None:
    """Each buffer in a tuple has the holders more, or one less; other values have none."""
    room = mock.Mock()
    buffer = BufferReference([], 1, room)
    share((True, (buffer, buffer), Selector((0,), 1)), 3)
    drop(((buffer,), True), 7)
    share(Empty(0), 3)
    assert room.mock_calls == [mock.call.share(3), mock.call.share(3), mock.call.done(7)]

"""Types of streams: their bytes by hand, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fabric import ProgramError, SelectorType, StreamType, Tile, TileType, TupleType, dtype_named
from fabric.extend import BoolType, BufferType, ValueType, number_in
from fabric.graph.values.dims import symbol
from fabric.graph.values.stream_type import holds_buffers, kind_of, with_dims, without_ragged
from fabric.graph.values.value import (
    BufferReference,
    Empty,
    Selector,
    dtype_name,
    items_of,
    row_bytes,
    size_bytes,
)

FLOAT = np.dtype(np.float32)
TILE = TileType(2, 3, FLOAT)
BUFFER = BufferType((5, 7), TILE)


class TestBytes:
    @pytest.mark.parametrize(
        ("value", "size_bytes"),
        [
            (TILE, 2 * 3 * 4),
            (SelectorType(8), 8),
            (BoolType(), 1),
            (BUFFER, 5 * 7 * 2 * 3 * 4),
            (BufferType((), TILE), 2 * 3 * 4),
            (TupleType((TILE, BoolType(), BUFFER)), 24 + 1 + 840),
            (TupleType(()), 0),
        ],
        ids=str,
    )
    def test_by_hand(self, value: ValueType, size_bytes: int) -> None:
        """Padding is included; a buffer's reference stands for the buffer."""
        assert size_bytes == value.size_bytes

    def test_elements(self) -> None:
        """Numbers of a tile, elements of a stream."""
        stream = StreamType((4, 5, 6), TILE)
        assert (6, 120, 2) == (TILE.size_elements, stream.count, stream.rank)


class TestText:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (TILE, "2x3 float32"),
            (TileType(symbol("n") + 1, symbol("m") - 2, FLOAT), "(n + 1)x(m - 2) float32"),
            (TileType(symbol("n"), 2 * symbol("m"), FLOAT), "nx2*m float32"),
            (SelectorType(8), "selector of 8"),
            (BUFFER, "buffer [5, 7] of 2x3 float32"),
            (TupleType((TILE, BoolType())), "(2x3 float32, bool)"),
            (StreamType((1, 10), BoolType()), "[1, 10] of bool"),
        ],
        ids=str,
    )
    def test_types(self, value: object, text: str) -> None:
        """A sum in front of or behind the x of a tile is in brackets."""
        assert text == str(value)


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (BUFFER, True),
        (TILE, False),
        (TupleType((TILE, TupleType((BoolType(), BUFFER)))), True),
        (TupleType((TILE, TILE)), False),
        (TupleType(()), False),
    ],
    ids=str,
)
def test_buffers(value: ValueType, holds: bool) -> None:
    """Also those inside of tuples."""
    assert holds == holds_buffers(value)


@dataclass(frozen=True)
class _Own(TileType):
    """A user's type of tiles."""


def test_kinds() -> None:
    """What is derived from a kind is of that kind; a tuple has the values of those inside."""
    nested = TupleType((TILE, TupleType((BoolType(), BUFFER, TupleType((SelectorType(2),))))))
    values = (TILE, _Own(2, 3, FLOAT), SelectorType(2), BoolType(), BUFFER, nested)
    kinds = ["tile", "tile", "selector", "bool", "buffer", "tuple"]
    assert [kind_of(value) for value in values] == kinds
    assert nested.count == 4


def test_other_sizes() -> None:
    """Sizes change wherever they are; what has none that changes is the same object."""
    n, d = symbol("n", ragged=True), symbol("D")
    rows, cols = TileType(n, 3, FLOAT), TileType(d, 5 * n, FLOAT)
    nested = TupleType((rows, BufferType((n, d, 7), cols), SelectorType(3)))
    assert with_dims(TILE, lambda dim: dim) is TILE
    assert with_dims(nested, lambda dim: dim + 1) == TupleType(
        (
            TileType(n + 1, 4, FLOAT),
            BufferType((n + 1, d + 1, 8), TileType(d + 1, 5 * n + 1, FLOAT)),
            SelectorType(3),
        )
    )
    other = TupleType((TileType(4 * n, 3, FLOAT), BufferType((2 * n, d, 7), cols), SelectorType(3)))
    assert without_ragged(nested) == without_ragged(other) != nested
    for wrong in (TileType(n, 4, FLOAT), TileType(d, 3, FLOAT)):
        assert without_ragged(wrong) != without_ragged(rows)


def test_values() -> None:
    """Bytes of what streams carry, and what it says of itself."""
    room: Any = None
    tile = Tile(2, 3, FLOAT, valid_rows=1)
    held = tile.placed(in_memory=True)
    buffer = BufferReference([(tile, 0), (held, 1), (Empty(0), 1)], 1, room)
    pair = (tile, True, Selector((0, 2), 5), buffer)
    assert [size_bytes(each) for each in (*pair, Empty(0), False)] == [24, 1, 5, 48, 0, 1]
    assert size_bytes(pair) == 24 + 1 + 5 + 48
    assert items_of(pair) == pair
    assert items_of(Empty(0)) == items_of(Selector((), 1)) == items_of(tile) == ()
    assert list(map(repr, (tile, held, Tile(2, 3, FLOAT), buffer))) == [
        "Tile(2x3 float32, 1 row valid)",
        "Tile(2x3 float32, 1 row valid, in memory)",
        "Tile(2x3 float32)",
        "BufferReference(1 dimension, 3 elements)",
    ]
    assert held.placed(in_memory=True) is held
    assert (held.valid_rows, held.valid_cols, held.data) == (1, 3, None)


def test_kept() -> None:
    """What is worked out of a tile is kept where nobody can write to its data."""
    made: list[Tile] = []

    def make(tile: Tile) -> Any:
        made.append(tile)
        return np.zeros(1)

    tile = Tile(1, 2, FLOAT, np.zeros((1, 2), np.float32))
    for kept, count in ((False, 2), (True, 1)):
        made.clear()
        assert tile.data is not None
        tile.data.flags.writeable = not kept
        assert (tile.kept(make) is tile.kept(make)) == kept
        assert len(made) == count
    made.clear()
    assert tile.data is not None
    tile.data = tile.data.copy()
    tile.data.flags.writeable = False
    tile.kept(make)
    Tile(1, 2, FLOAT).kept(make)
    assert len(made) == 2


def test_rows() -> None:
    """Rows of types whose numbers take no whole bytes begin with a byte of their own."""
    int4, block = dtype_named("int4"), dtype_named("mxfp4")
    assert [row_bytes(cols, int4) for cols in (0, 1, 2, 3)] == [0, 1, 1, 2]
    # A byte for the scale of each 32 elements.
    assert [row_bytes(cols, block) for cols in (1, 32, 33)] == [2, 17, 19]
    assert [row_bytes(cols, FLOAT) for cols in (0, 3)] == [0, 12]
    assert [Tile(2, 3, dtype).size_bytes for dtype in (int4, block, FLOAT)] == [4, 6, 24]
    assert [dtype_name(each) for each in (int4, block, np.dtype("U3"))] == [
        "int4", "mxfp4", "str96",
    ]  # fmt: skip
    with pytest.raises(ProgramError, match=r"element type is 'float3': expected one of float32, "):
        dtype_named("float3")
    assert number_in(Tile(1, 1, int4, np.full((1, 1), 3, int4))) == 3
    with pytest.raises(ValueError, match=r"Tile\(1x1 int4\) has no number in timing mode"):
        number_in(Tile(1, 1, int4))

"""Types of streams: their bytes by hand, and how they are written."""

from __future__ import annotations

import numpy as np
import pytest

from fabric import SelectorType, StreamType, TileType, TupleType
from fabric.extend import BoolType, BufferType, ValueType
from fabric.graph.values.dims import symbol
from fabric.graph.values.stream_type import holds_buffers

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

from __future__ import annotations

import numpy as np
import pytest

from fabric import SelectorType, TileType, TupleType
from fabric.extend import BoolType, BufferType, ValueType

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
    def test_bytes_of_each_type(self, value: ValueType, size_bytes: int) -> None:
        assert size_bytes == value.size_bytes

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fabric import Tile, TileType
from operators import AttentionScores, Quotient, Reduction, RowAppend
from operators.functions.flash_attention import RescaledSum, ShiftedExp
from tests.operators.functions.test_integers import BESIDE, CASES, Shapes

# The number of the operand whose data are not read.
UNREAD = {ShiftedExp: 2, RescaledSum: 2}

TAKEN: list[tuple[Any, Shapes]] = [
    *((case.function, case.shapes) for case in CASES if len(case.shapes) > 1),
    (AttentionScores(1.0), ((2, 3), (2, 3))),
    (Quotient("float32"), BESIDE),
    (RowAppend(), ((3, 2), (1, 2))),
]


def _given(function: Any, tiles: list[Tile]) -> tuple[Tile, ...]:
    if not isinstance(function, Reduction):
        found = function.apply(*tiles)
    else:
        functional = all(each.data is not None for each in tiles)
        kinds = [TileType(each.rows, each.cols, each.dtype) for each in tiles]
        result = function.infer(1, *kinds)
        state = function.update(function.start(result, functional), *tiles)
        found = function.finish(state, result, functional)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(("function", "shapes"), TAKEN, ids=str)
def test_operand_without_data_gives_a_result_without_data(function: Any, shapes: Shapes) -> None:
    dtype = np.dtype(np.float32)

    # RowAppend needs room for its row.
    valid = shapes[0][0] - 1 if isinstance(function, RowAppend) else None

    def tiles(filled: tuple[bool, ...]) -> list[Tile]:
        first, *others = (
            (*shape, dtype, np.ones(shape, dtype) if its else None)
            for shape, its in zip(shapes, filled, strict=True)
        )
        return [Tile(*first, valid_rows=valid), *(Tile(*each) for each in others)]

    whole = _given(function, tiles((True,) * len(shapes)))
    assert all(each.data is not None for each in whole)
    for filled in itertools.product((True, False), repeat=len(shapes)):
        read = [its for at, its in enumerate(filled) if at != UNREAD.get(type(function))]
        if all(read):
            continue
        found = _given(function, tiles(filled))
        assert [None] * len(whole) == [each.data for each in found]
        assert [(each.rows, each.cols) for each in whole] == [
            (each.rows, each.cols) for each in found
        ]

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import operators as op
from fabric import Tile, TileType

FLOAT = np.dtype(np.float32)


# Function; rows, columns, valid rows and valid columns of each operand; the same for the result.
VALID: list[tuple[Any, tuple[tuple[int, ...], ...], tuple[int, ...]]] = [
    (op.SiLU(), ((3, 4, 1, 2),), (3, 4, 1, 2)),
    (op.Exp(), ((3, 4, 1, 2),), (3, 4, 1, 2)),
    (op.AsType("bfloat16"), ((3, 4, 1, 2),), (3, 4, 1, 2)),
    (op.Add(), ((3, 4, 1, 2), (3, 4, 2, 1)), (3, 4, 2, 2)),
    (op.Add(), ((1, 4, 1, 3), (3, 4, 2, 1)), (3, 4, 2, 3)),
    (op.Add(), ((1, 4, 1, 1), (3, 4, 0, 2)), (3, 4, 0, 2)),
    (op.Add(), ((3, 4, 2, 1), (1, 4, 1, 3)), (3, 4, 2, 3)),
    (op.Add(), ((3, 4, 0, 3), (1, 4, 1, 2)), (3, 4, 0, 3)),
    (op.Add(), ((3, 1, 2, 1), (3, 4, 1, 3)), (3, 4, 2, 3)),
    (op.Add(), ((3, 1, 1, 1), (3, 4, 2, 0)), (3, 4, 2, 0)),
    (op.Add(), ((3, 4, 1, 2), (3, 1, 2, 1)), (3, 4, 2, 2)),
    (op.Add(), ((3, 4, 1, 0), (1, 1, 1, 1)), (3, 4, 1, 0)),
    (op.Matmul(), ((3, 4, 2, 1), (4, 5, 3, 2)), (3, 5, 2, 2)),
    (op.Matmul(transposed=True), ((3, 4, 2, 1), (5, 4, 3, 2)), (3, 5, 2, 3)),
    (op.LeadingCols(2), ((3, 4, 1, 3),), (3, 2, 1, 2)),
    (op.LeadingCols(2), ((3, 4, 1, 1),), (3, 2, 1, 1)),
    (op.PadRows(5), ((3, 4, 1, 2),), (5, 4, 1, 2)),
    (op.PadRows(3), ((3, 4, 1, 2),), (3, 4, 1, 2)),
    (op.RowAppend(), ((4, 3, 1, 2), (2, 3, 1, 1)), (4, 3, 3, 2)),
    (op.RowAppend(), ((4, 3, 2, 3), (2, 3, 2, 1)), (4, 3, 4, 3)),
    (op.ScaledAdd(), ((3, 4, 1, 2), (3, 4, 2, 3)), (3, 4, 1, 2)),
    (op.AttentionScores(1.0), ((3, 4, 2, 1), (5, 4, 3, 2)), (3, 5, 2, 3)),
    (op.MaskScores(), ((4, 5, 2, 3), (2, 5, 1, 1)), (4, 5, 2, 3)),
    (op.Quotient("float32"), ((3, 4, 1, 2), (3, 1, 2, 1)), (3, 4, 1, 4)),
    (op.ShiftedExp(), ((3, 4, 1, 2), (3, 1, 2, 1), (3, 1, 2, 1)), (3, 4, 1, 2)),
    (op.RowSum(), ((3, 4, 1, 2),), (3, 1, 1, 1)),
    (op.RowMaximum(), ((3, 4, 2, 2),), (3, 1, 2, 1)),
]


@pytest.mark.parametrize(("function", "operands", "result"), VALID)
def test_valid_rows_and_columns_of_results(
    function: Any, operands: tuple[tuple[int, ...], ...], result: tuple[int, ...]
) -> None:
    for data in (False, True):
        tiles = [
            Tile(
                rows,
                cols,
                FLOAT,
                np.ones((rows, cols), np.float32) if data else None,
                valid_rows=valid_rows,
                valid_cols=valid_cols,
            )
            for rows, cols, valid_rows, valid_cols in operands
        ]
        found = function.apply(*tiles)
        inferred = function.infer(*(TileType(rows, cols, FLOAT) for rows, cols, *_ in operands))

        assert result == (found.rows, found.cols, found.valid_rows, found.valid_cols)
        assert inferred == TileType(found.rows, found.cols, found.dtype)
        assert (found.data is not None) is data
        if data:
            assert (found.data.shape, found.data.dtype) == (result[:2], found.dtype)


# Function, rows and columns of operands, operations, fixed cycles.
COST: list[tuple[Any, tuple[tuple[int, int], ...], int, int | None]] = [
    (op.Add(), ((3, 4), (1, 4)), 12, None),
    (op.Div(), ((1, 4), (3, 1)), 12, None),
    (op.Maximum(), ((3, 1), (3, 4)), 12, None),
    (op.Mul(), ((3, 4), (3, 4)), 12, None),
    (op.Exp(), ((3, 4),), 4 * 12, None),
    (op.SiLU(), ((3, 4),), 8 * 12, None),
    (op.AsType("bfloat16"), ((3, 4),), 12, None),
    (op.AsType("mxfp8_e4m3"), ((3, 32),), 2 * 96, None),
    (op.RowSum(), ((3, 4),), 12, None),
    (op.RowMaximum(), ((3, 4),), 12, None),
    (op.Matmul(), ((3, 4), (4, 5)), 2 * 3 * 4 * 5, None),
    (op.Matmul(transposed=True), ((3, 4), (5, 4)), 2 * 3 * 4 * 5, None),
    (op.MatmulSum(), ((3, 4), (4, 5)), 2 * 3 * 4 * 5, None),
    (op.AttentionScores(0.5), ((3, 4), (5, 4)), 2 * 3 * 4 * 5 + 3 * 5, None),
    (op.MaskScores(), ((3, 4), (1, 4)), 12, None),
    (op.Quotient("float16"), ((3, 4), (3, 1)), 12, None),
    (op.ShiftedExp(), ((3, 4), (3, 1), (3, 1)), 5 * 12, None),
    (op.RunningMaximum(), ((3, 4),), 3 * (4 + 6), None),
    (op.RescaledSum(), ((3, 4), (4, 5), (3, 1), (3, 1)), 3 * (2 * 4 * 5 + 4 + 5 + 1), None),
    (op.ScaledAdd(), ((3, 4), (1, 4)), 12, None),
    (op.ScaledAdd(alpha=2.0), ((3, 4), (1, 4)), 2 * 12, None),
    (op.ScaledAdd(beta=0.0), ((3, 4), (3, 1)), 2 * 12, None),
    (op.ScaledAdd(0.5, -1.0), ((3, 4), (3, 4)), 3 * 12, None),
    (op.LeadingCols(2), ((3, 4),), 0, None),
    (op.PadRows(7), ((3, 4),), 0, 1),
    (op.SignalAllRead(), ((3, 4),), 0, 1),
    (op.Sum(), ((3, 4),), 12, None),
    (op.RetileRow(), ((3, 4),), 0, 0),
    (op.RetileCol(), ((3, 4),), 0, 0),
]

# Functions that hold their second operand, and 16 bytes for each column of the first.
HOLDING = {"Matmul", "MatmulSum", "AttentionScores"}


@pytest.mark.parametrize(("function", "operands", "flops", "cycles"), COST)
def test_operations_cycles_and_held_bytes_of_functions(
    function: Any,
    operands: tuple[tuple[int, int], ...],
    flops: int,
    cycles: int | None,
) -> None:
    types = tuple(TileType(*each, FLOAT) for each in operands)
    name = type(function).__name__
    held = 16 * types[0].cols + types[-1].size_bytes if name in HOLDING else 0
    assert (flops, cycles, held) == (
        function.flops(*types),
        function.fixed_cycles,
        function.operand_bytes(*types),
    )
    assert len(types) == function.operands
    assert types == function.check("it", types)

"""Metrics of programs, worked out by hand."""

from __future__ import annotations

import numpy as np
import sympy

import operators as op
from fabric import Program, check
from fabric.analysis.symbolic.substitution import chosen_sizes
from fabric.graph.wiring.elaborate import elaborate
from tests.symbolic.programs import data_metrics, wired
from tests.symbolic.small_operators import HitList


def ones(rows: int, cols: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.ones((rows, cols), np.float32)


def test_metrics_of_a_product_follow_the_equations() -> None:
    with Program("p", channel_depth=3, flops_per_cycle=1000) as program:
        x = op.LinearOffChipLoad(ones(16, 32), (16, 32), shape=(4, 1), strides=(0, 1))()
        w = op.LinearOffChipLoad(ones(32, 64), (32, 16), shape=(4, 1), strides=(1, 1))()
        op.LinearOffChipStore("y")(op.Map(op.Matmul())(x, w))
    metrics = data_metrics(program)
    tile_x, tile_w, tile_y = 16 * 32 * 2, 32 * 16 * 2, 16 * 16 * 2

    assert 4 * (tile_x + tile_w) == metrics.paper.load_bytes
    assert 4 * tile_y == metrics.paper.store_bytes
    assert 4 * 2 * tile_y == metrics.artifact.store_bytes
    matmul = 16 * 32 + tile_w
    assert 2 * (tile_x + tile_w + tile_y) + matmul == metrics.paper.on_chip_bytes
    assert tile_x + tile_w + 2 * tile_y == metrics.artifact.on_chip_bytes
    assert 3 * (tile_x + tile_w + tile_y) == metrics.paper.fifo_bytes
    # Of the map: both operands and the result, at 4 bytes an element.
    assert 2 * (tile_x + tile_w + tile_y) == metrics.artifact.fifo_bytes
    assert 4 * 2 * 16 * 32 * 16 == metrics.flops
    # 16,384 FLOPs an element at 1,000 a cycle are 17 cycles, four times.
    assert 4 * 17 == max(metrics.compute_cycles)
    assert -(-(4 * (tile_x + tile_w + tile_y)) // 1024) == metrics.paper.memory_cycles
    assert 1000 == metrics.allocated_flops_per_cycle


def test_formulas_of_sympy_have_the_totals_of_the_data() -> None:
    program = wired("simplified_moe")
    known = check(program, data=True)
    sizes = {sympy.sympify(symbol): size for symbol, size in known.sizes.items()}
    formulas = check(program).formulas().items()

    assert known.formulas() == {name: sympy.sympify(each).subs(sizes) for name, each in formulas}


def test_flattened_ragged_dimension_has_a_new_symbol() -> None:
    with Program("p") as program:
        chosen = HitList(((0, 1), (0,)))()
        rows = op.Flatten(0, 1)(op.LinearOffChipLoad(ones(2, 32), (1, 32))())
        y = op.Reassemble()(op.Partition(2)(rows, chosen), chosen)
        flat = op.Flatten(0, 1)(y)
        op.LinearOffChipStore("y")(flat)
    plan = elaborate(program)

    assert "[1, 2, D_reassemble_1~] of 1x32 bfloat16" == str(y.type)
    assert "[1, D_flatten_2~] of 1x32 bfloat16" == str(flat.type)
    sizes = chosen_sizes(plan, {"D_reassemble_1~": 3}, data=False)
    assert {"D_reassemble_1~": 3, "D_flatten_2~": 6} == {
        symbol.name: size for symbol, size in sizes.items()
    }

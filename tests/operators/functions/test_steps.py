from __future__ import annotations

from functools import reduce
from itertools import accumulate
from operator import add, mul
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Tile, TileType, dtype_named
from operators.functions import ordering, steps
from operators.functions.choosing import TakenAlong, TopPlaces
from operators.functions.matmul import Convolved, Windows
from operators.functions.row_functions import LayerNorm, Reduced, RMSNorm, Softmax, Variance
from tests.operators.functions import test_integers
from tests.profiles import examples

FLOAT, INT64 = dtype_named("float32"), dtype_named("int64")


TAPS = (
    (ordering.Tap((0, 1), (0.5, 0.5)), ordering.Tap((2,), (1.0,))),
    (ordering.Tap((0, 1, 2), (1.0, 2.0, 3.0)), ordering.Tap((), ())),
)
WINDOWS = (((0, 1), (1, 2), (2,)), ((0, 1, 2), (3,)))


def along(
    function: ordering.OnAxes, *sizes: tuple[int, ...], result: tuple[int, ...]
) -> ordering.Along:
    grids = tuple((5, *size) if len(size) > 1 else (5, 2, *size) for size in sizes)
    rank = len(grids[0])
    axes = tuple(range(rank - len(result), rank))
    return ordering.Along(tuple(range(len(sizes))), FLOAT, function, grids, axes, result)


# Step, shapes of its operands, shape of its result, operations.
COUNTED: list[tuple[steps.Step, list[tuple[int, int]], tuple[int, int], int]] = [
    (along(ordering.Taken((0, 0)), (4,), result=(2,)), [(10, 4)], (10, 2), 0),
    # From 3 x 4 numbers first 2 x 4 (3 operations for two numbers, 1 for one number), then 2 x 2 (5
    # for three numbers, 0 for none).
    (
        along(ordering.Weighed(TAPS), (3, 4), result=(2, 2)),
        [(15, 4)], (10, 2), 5 * (4 * (3 + 1) + 2 * 5),
    ),
    (along(ordering.Running("max"), (4,), result=(4,)), [(10, 4)], (10, 4), 10 * 4),
    (along(ordering.SortedPlaces(), (1,), result=(1,)), [(10, 1)], (10, 1), 10 * 1),
    (along(ordering.SortedPlaces(), (4,), result=(4,)), [(10, 4)], (10, 4), 10 * 4 * 2),
    (along(ordering.SortedPlaces(), (5,), result=(5,)), [(10, 5)], (10, 5), 10 * 5 * 3),
    (along(ordering.ExtremePlace(True), (4,), result=(1,)), [(10, 4)], (10, 1), 10 * 4),
    # Windows of 2, 2 and 1 numbers for each of 4 columns, then windows of 3 and 1 for each of 3
    # rows.
    (
        along(ordering.Extremes(WINDOWS), (3, 4), result=(3, 2)),
        [(15, 4)], (15, 2), 5 * (4 * 2 + 3 * 2),
    ),
    # The products of 2, 2 and 1 with 3 and 1, each less 1.
    (
        along(ordering.WindowPlaces(WINDOWS), (3, 4), result=(3, 2)),
        [(15, 4)], (15, 2), 5 * (5 + 5 + 2 + 1 + 1 + 0),
    ),
    (along(ordering.Picked(), (4,), (3,), result=(3,)), [(10, 4), (10, 3)], (10, 3), 10 * 3),
    (
        along(ordering.Put(), (4,), (3,), (3,), result=(4,)),
        [(10, 4), (10, 3), (10, 3)], (10, 4), 10 * 3,
    ),
    (TopPlaces((0,), INT64, 3), [(5, 8)], (5, 3), 3 * 5 * 8),
    (TakenAlong((0, 1), FLOAT), [(5, 8), (5, 3)], (5, 3), 5 * 3),
    (steps.ComplexProduct((0, 1), FLOAT), [(5, 8), (1, 8)], (5, 8), 6 * 5 * 4),
    (steps.Pointwise((0, 1), FLOAT, "pow"), [(5, 1), (1, 8)], (5, 8), 9 * 5 * 8),
    (steps.Pointwise((0,), FLOAT, "sinh"), [(5, 8)], (5, 8), 2 * 4 * 5 * 8),
    (steps.Pointwise((0, 1, 2), FLOAT, "where"), [(5, 8)] * 3, (5, 8), 5 * 8),
    (steps.Cut((0,), FLOAT, 1, 3), [(5, 8)], (5, 3), 0),
    (steps.Columns((0,), FLOAT, (1, 1)), [(5, 8)], (5, 2), 0),
    (steps.Joined((0, 1), FLOAT), [(5, 8), (1, 3)], (5, 11), 0),
    (steps.Placed((0,), FLOAT, 8, 5), [(5, 8)], (8, 5), 0),
    (Reduced((0,), FLOAT), [(5, 8)], (5, 1), 5 * 8),
    (Reduced((0,), FLOAT, name="mean"), [(5, 8)], (5, 1), 5 * (8 + 1)),
    (Reduced((0,), FLOAT, (5, 2, 4), (0, 2), "mean"), [(10, 4)], (2, 1), 2 * (5 * 4 + 1)),
    (Variance((0,), FLOAT), [(5, 8)], (5, 1), 5 * (4 * 8 + 2)),
    (Variance((0,), FLOAT, root=True), [(5, 8)], (5, 1), 5 * (4 * 8 + 3)),
    (Softmax((0,), FLOAT), [(5, 8)], (5, 8), 5 * 8 * 8),
    (Softmax((0,), FLOAT, logarithm=True), [(5, 8)], (5, 8), 5 * (8 * 8 + 4)),
    (RMSNorm((0,), FLOAT, 0.1), [(5, 8)], (5, 8), 5 * (3 * 8 + 4)),
    (RMSNorm((0, 1), FLOAT, 0.1), [(5, 8), (1, 8)], (5, 8), 5 * (4 * 8 + 4)),
    (LayerNorm((0,), FLOAT, 0.1, False), [(5, 8)], (5, 8), 5 * (5 * 8 + 5)),
    (LayerNorm((0, 1, 2), FLOAT, 0.1, True), [(5, 8), (1, 8), (1, 8)], (5, 8), 5 * (7 * 8 + 5)),
]  # fmt: skip


@pytest.mark.parametrize(("step", "shapes", "shape", "operations"), COUNTED)
def test_shape_and_operations_of_steps(
    step: steps.Step, shapes: list[tuple[int, int]], shape: tuple[int, int], operations: int
) -> None:
    tiles = [TileType(*each, FLOAT) for each in shapes]
    once = steps.Chain(len(tiles), (step,))
    twice = steps.Chain(len(tiles), (step, step))

    assert (*shape, step.dtype) == (once.infer(*tiles).rows, once.infer(*tiles).cols, step.dtype)
    assert (operations, 2 * operations) == (once.flops(*tiles), twice.flops(*tiles))


def check(step: Any, tiles: list[Tile], wanted: list[list[int]]) -> None:
    chain = steps.Chain(len(tiles), (step,))
    test_integers.outcome(
        lambda: test_integers.computed(chain, [tiles], step.dtype), wanted, step.dtype, step.called
    )


RUNNING: dict[str, Any] = {"sum": add, "prod": mul, "max": max, "min": min}
PUTTING: dict[str, Any] = {
    "set": lambda _, y: y, "sum": add, "prod": mul, "amax": max, "amin": min
}  # fmt: skip


@pytest.mark.parametrize("name", RUNNING)
@examples(quick=12)
@given(
    dtype=st.sampled_from(list(test_integers.TYPES.values())),
    random=test_integers.SEEDS,
    count=st.integers(1, 5),
)
def test_running_integers_are_exact_or_refused(
    name: Any, dtype: Any, random: Random, count: int
) -> None:
    rows = test_integers.matrix_of(random, dtype, 2, count)
    step = ordering.Along((0,), dtype, ordering.Running(name), ((2, count),), (1,), (count,))
    wanted = [list(accumulate(row, RUNNING[name])) for row in rows]
    check(step, [test_integers.tile_of(rows, dtype)], wanted)


@pytest.mark.parametrize("name", PUTTING)
@examples(quick=12)
@given(
    dtype=st.sampled_from(list(test_integers.TYPES.values())),
    random=test_integers.SEEDS,
    count=st.integers(1, 4),
)
def test_integers_put_to_places_are_exact_or_refused(
    name: Any, dtype: Any, random: Random, count: int
) -> None:
    rows, more = (test_integers.matrix_of(random, dtype, 2, each) for each in (3, count))
    places = [[random.randrange(3) for _ in range(count)] for _ in rows]
    step = ordering.Along(
        (0, 1, 2), dtype, ordering.Put(name), ((2, 3), (2, count), (2, count)), (1,), (3,)
    )
    wanted = [
        [
            reduce(PUTTING[name], [n for p, n in zip(at, new, strict=True) if p == place], first)
            for place, first in enumerate(row)
        ]
        for row, at, new in zip(rows, places, more, strict=True)
    ]
    tiles = [
        test_integers.tile_of(rows, dtype),
        test_integers.tile_of(places, INT64),
        test_integers.tile_of(more, dtype),
    ]
    check(step, tiles, wanted)


WINDOW = Windows((1, 2), (1, 1), (0, 0), (0, 0), (1, 1), (1, 1))
CONVOLVED = Convolved((0, 1, 2), INT64, WINDOW, (1, 1, 1, 3), 1)
MOST = 2**62
# Step, its operands, its result.
LARGE: list[tuple[Any, list[list[list[int]]], list[list[int]]]] = [
    (CONVOLVED, [[[MOST, MOST, -MOST]], [[3, 3]], [[-7]]], [[6 * MOST - 7, -7]]),
    (CONVOLVED, [[[MOST, -MOST, MOST]], [[2, 2]], [[-7]]], [[-7, -7]]),
    (
        ordering.Along((0,), INT64, ordering.Running("prod"), ((1, 2),), (1,), (2,)),
        [[[2**32, 2**32]]], [[2**32, 2**64]],
    ),
    (Reduced((0,), INT64, name="prod"), [[[2**32, 2**32]]], [[2**64]]),
]  # fmt: skip


@pytest.mark.parametrize(("step", "operands", "wanted"), LARGE)
def test_step_on_large_integers_is_exact_or_refused(step: Any, operands: Any, wanted: Any) -> None:
    check(step, [test_integers.tile_of(each, INT64) for each in operands], wanted)

"""Steps of chains: operations counted by hand, and whole numbers against Python's integers."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from operator import add, mul
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import ShapeError, TileType, dtype_named
from operators.functions.choosing import TakenAlong, TopPlaces
from operators.functions.elementwise import NUMBERS
from operators.functions.matmul import Convolved, Windows
from operators.functions.ordering import (
    Along,
    ExtremePlace,
    Extremes,
    OnAxes,
    Picked,
    Put,
    Running,
    SortedPlaces,
    Taken,
    Tap,
    Weighed,
    WindowPlaces,
)
from operators.functions.row_functions import LayerNorm, Reduced, RMSNorm, Softmax, Variance
from operators.functions.steps import (
    Chain,
    Columns,
    ComplexProduct,
    Cut,
    Joined,
    Number,
    Placed,
    Pointwise,
    Step,
)
from tests.operators.functions.test_integers import (
    SEEDS,
    TYPES,
    computed,
    matrix_of,
    outcome,
    tile_of,
)
from tests.profiles import examples

FLOAT, INT64 = dtype_named("float32"), dtype_named("int64")

OPERATIONS = {
    0: "copy",
    1: "abs add and ceil copysign div eq floor ge gt isfinite isinf isnan le lt maximum "
    "minimum mul ne neg not or reciprocal relu round sign sqrt square sub trunc where xor",
    2: "add_scaled clamp floor_div rsqrt sub_scaled",
    3: "fmod leaky_relu remainder",
    4: "cos exp exp2 hardsigmoid hypot log log10 log2 sin",
    5: "expm1 hardswish log1p",
    7: "sigmoid",
    8: "acos acosh asin asinh atan atanh cosh erf erfc silu sinh tan tanh",
    9: "atan2 elu pow",
    12: "gelu",
    13: "softplus",
    16: "gelu_tanh lgamma",
}
"""Of functions of single numbers: 4 of an exponential, a logarithm, a sine and a cosine, 1 of an
addition, a product, a quotient, a comparison, a root and a choice."""

TAPS = (
    (Tap((0, 1), (0.5, 0.5)), Tap((2,), (1.0,))),
    (Tap((0, 1, 2), (1.0, 2.0, 3.0)), Tap((), ())),
)
WINDOWS = (((0, 1), (1, 2), (2,)), ((0, 1, 2), (3,)))


def along(function: OnAxes, *sizes: tuple[int, ...], result: tuple[int, ...]) -> Along:
    """Return what is done along the last dimensions of tiles that have two of them more."""
    grids = tuple((5, *size) if len(size) > 1 else (5, 2, *size) for size in sizes)
    rank = len(grids[0])
    axes = tuple(range(rank - len(result), rank))
    return Along(tuple(range(len(sizes))), FLOAT, function, grids, axes, result)


COUNTED: list[tuple[Step, list[tuple[int, int]], tuple[int, int], int]] = [
    (along(Taken((0, 0)), (4,), result=(2,)), [(10, 4)], (10, 2), 0),
    # Of 3 x 4 numbers first 2 x 4 are made: 3 operations of two numbers, 1 of one; then 2 x 2: 5
    # of three numbers, none of none.
    (along(Weighed(TAPS), (3, 4), result=(2, 2)), [(15, 4)], (10, 2), 5 * (4 * (3 + 1) + 2 * 5)),
    (along(Running("max"), (4,), result=(4,)), [(10, 4)], (10, 4), 10 * 4),
    (along(SortedPlaces(), (1,), result=(1,)), [(10, 1)], (10, 1), 10 * 1),
    (along(SortedPlaces(), (4,), result=(4,)), [(10, 4)], (10, 4), 10 * 4 * 2),
    (along(SortedPlaces(), (5,), result=(5,)), [(10, 5)], (10, 5), 10 * 5 * 3),
    (along(ExtremePlace(True), (4,), result=(1,)), [(10, 4)], (10, 1), 10 * 4),
    # 3 windows of 2, 2 and 1 numbers for each of 4 columns, then 2 of 3 and 1 for each of 3 rows.
    (along(Extremes(WINDOWS), (3, 4), result=(3, 2)), [(15, 4)], (15, 2), 5 * (4 * 2 + 3 * 2)),
    # The products of 2, 2 and 1 with 3 and 1, less 1 each.
    (
        along(WindowPlaces(WINDOWS), (3, 4), result=(3, 2)),
        [(15, 4)],
        (15, 2),
        5 * (5 + 5 + 2 + 1 + 1 + 0),
    ),
    (along(Picked(), (4,), (3,), result=(3,)), [(10, 4), (10, 3)], (10, 3), 10 * 3),
    (along(Put(), (4,), (3,), (3,), result=(4,)), [(10, 4), (10, 3), (10, 3)], (10, 4), 10 * 3),
    (TopPlaces((0,), INT64, 3), [(5, 8)], (5, 3), 3 * 5 * 8),
    (TakenAlong((0, 1), FLOAT), [(5, 8), (5, 3)], (5, 3), 5 * 3),
    (ComplexProduct((0, 1), FLOAT), [(5, 8), (1, 8)], (5, 8), 6 * 5 * 4),
    (Pointwise((0, 1), FLOAT, "pow"), [(5, 1), (1, 8)], (5, 8), 9 * 5 * 8),
    (Cut((0,), FLOAT, 1, 3), [(5, 8)], (5, 3), 0),
    (Columns((0,), FLOAT, (1, 1)), [(5, 8)], (5, 2), 0),
    (Joined((0, 1), FLOAT), [(5, 8), (1, 3)], (5, 11), 0),
    (Placed((0,), FLOAT, 8, 5), [(5, 8)], (8, 5), 0),
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
"""Steps, shapes of what they read, the shape of the result, and operations."""


def test_operations_of_numbers() -> None:
    """Of every function of single numbers, as the module adds them up."""
    listed = {name: count for count, names in OPERATIONS.items() for name in names.split()}
    assert listed == {name: each.flops for name, each in NUMBERS.items()}


@pytest.mark.parametrize(("step", "shapes", "shape", "operations"), COUNTED)
def test_operations(
    step: Step, shapes: list[tuple[int, int]], shape: tuple[int, int], operations: int
) -> None:
    """What a step gives and takes; a chain of two takes as much as both."""
    tiles = [TileType(*each, FLOAT) for each in shapes]
    once = Chain(len(tiles), (step,))
    twice = Chain(len(tiles), (step, step))

    assert (*shape, step.dtype) == (once.infer(*tiles).rows, once.infer(*tiles).cols, step.dtype)
    assert (operations, 2 * operations) == (once.flops(*tiles), twice.flops(*tiles))


def test_sizes_that_do_not_fit() -> None:
    """Two sizes of which neither is 1 are told; so is another number of tiles."""
    step = Pointwise((0, 1, 2), FLOAT, "clamp")
    tiles = [TileType(rows, 4, FLOAT) for rows in (3, 1, 2)]
    with pytest.raises(ShapeError, match=r"^a step joins sizes [23] and [23]: expected equal"):
        Chain(3, (step,)).infer(*tiles)
    with pytest.raises(ShapeError, match=r"^Chain: number of tiles is 2: expected 3$"):
        Chain(3, (step,)).infer(*tiles[:2])


RUNNING: dict[str, Any] = {"sum": add, "prod": mul, "max": max, "min": min}
PUTTING: dict[str, Any] = {
    "set": lambda _, y: y, "sum": add, "prod": mul, "amax": max, "amin": min
}  # fmt: skip


@pytest.mark.parametrize("name", RUNNING)
@examples(quick=25)
@given(dtype=st.sampled_from(list(TYPES.values())), random=SEEDS, count=st.integers(1, 5))
def test_running_integers(name: Any, dtype: Any, random: Random, count: int) -> None:
    """What a number and all in front of it make is that of Python's integers, or refused."""
    rows = matrix_of(random, dtype, 2, count)
    step = Along((0,), dtype, Running(name), ((2, count),), (1,), (count,))
    wanted = [list(accumulate(row, RUNNING[name])) for row in rows]
    outcome(
        lambda: computed(Chain(1, (step,)), [[tile_of(rows, dtype)]], dtype),
        wanted,
        dtype,
        "Running",
    )


@pytest.mark.parametrize("name", PUTTING)
@examples(quick=25)
@given(dtype=st.sampled_from(list(TYPES.values())), random=SEEDS, count=st.integers(1, 4))
def test_integers_put_to_places(name: Any, dtype: Any, random: Random, count: int) -> None:
    """Numbers that meet at a place make what Python's integers do, or are refused."""
    rows, more = (matrix_of(random, dtype, 2, each) for each in (3, count))
    places = [[random.randrange(3) for _ in range(count)] for _ in rows]
    step = Along((0, 1, 2), dtype, Put(name), ((2, 3), (2, count), (2, count)), (1,), (3,))
    wanted = [
        [
            reduce(PUTTING[name], [n for p, n in zip(at, new, strict=True) if p == place], first)
            for place, first in enumerate(row)
        ]
        for row, at, new in zip(rows, places, more, strict=True)
    ]
    tiles = [tile_of(rows, dtype), tile_of(places, INT64), tile_of(more, dtype)]
    outcome(lambda: computed(Chain(3, (step,)), [tiles], dtype), wanted, dtype, "Put")


def test_products_beyond_64_bits() -> None:
    """Each factor is small: what they make together is told, and does not wrap."""
    step = Along((0, 1, 2), INT64, Put("prod"), ((1, 1), (1, 2), (1, 2)), (1,), (1,))
    tiles = [tile_of(each, INT64) for each in ([[2**21]], [[0, 0]], [[2**21, 2**22]])]
    chain = Chain(3, (step,))
    outcome(lambda: computed(chain, [tiles], INT64), [[2**64]], INT64, "Put")
    tiles[2] = tile_of([[2**20, 2**21]], INT64)
    assert [[2**62]] == computed(chain, [tiles], INT64)


def test_a_number_beside_larger_ones() -> None:
    """What is put to a place may be larger than all that was there."""
    dtype = TYPES["uint64"]
    step = Along((0, 1, 2), dtype, Put("set"), ((1, 2), (1, 1), (1, 1)), (1,), (2,))
    tiles = [tile_of([[1, 2]], dtype), tile_of([[1]], INT64), tile_of([[2**64 - 1]], dtype)]
    assert [[1, 2**64 - 1]] == computed(Chain(3, (step,)), [tiles], dtype)


@pytest.mark.parametrize("name", ["Picked", "Put"])
def test_places_that_are_not_there(name: str) -> None:
    """Places are counted from either end; the message says which there are."""
    x = tile_of([[5, 6, 7]], INT64)

    def of(places: list[int]) -> Any:
        grids: tuple[tuple[int, ...], ...] = ((1, 3), (1, 2))
        tiles = [x, tile_of([places], INT64)]
        if name == "Put":
            step = Along((0, 1, 2), INT64, Put(), (*grids, (1, 2)), (1,), (3,))
            return computed(Chain(3, (step,)), [[*tiles, tile_of([[1, 2]], INT64)]], INT64)
        return computed(
            Chain(2, (Along((0, 1), INT64, Picked(), grids, (1,), (2,)),)), [tiles], INT64
        )

    assert of([-3, 2]) == ([[5, 7]] if name == "Picked" else [[1, 6, 2]])
    for first, last in ((-4, 0), (0, 3)):
        with pytest.raises(ValueError, match=r"^places ") as caught:
            of([last, first])
        assert str(caught.value) == (
            f"places {first} to {last} of a dimension are named: expected -3 to 2"
        )


def test_windows_of_large_integers() -> None:
    """A convolution of integers is exact beyond 64 bits on the way: refused, or what is left."""
    ones = (1, 1)
    windows = Windows((1, 2), ones, (0, 0), (0, 0), ones, ones)
    step = Convolved((0, 1, 2), INT64, windows, (1, 1, 1, 3), 1)
    most = 2**62
    tiles = [tile_of(each, INT64) for each in ([[most, most, -most]], [[3, 3]], [[-7]])]
    outcome(
        lambda: computed(Chain(3, (step,)), [tiles], INT64),
        [[6 * most - 7, -7]],
        INT64,
        "Convolved",
    )
    tiles[1] = tile_of([[2, 2]], INT64)
    tiles[0] = tile_of([[most, -most, most]], INT64)
    outcome(lambda: computed(Chain(3, (step,)), [tiles], INT64), [[-7, -7]], INT64, "Convolved")


def test_numbers_beside_integers() -> None:
    """An integer beside whole numbers is exact; beside floating-point ones it is one of these."""
    large = 2**53 + 1
    exact = Chain(1, (Pointwise((0, Number(large)), INT64, "sub"),))
    assert [[1]] == computed(exact, [[tile_of([[large + 1]], INT64)]], INT64)
    real = Chain(1, (Pointwise((0, Number(large)), FLOAT, "sub"),)).apply(
        tile_of([[2**53]], np.dtype(np.float32))
    )
    assert real.data is not None
    assert [[0.0]] == real.data.tolist()

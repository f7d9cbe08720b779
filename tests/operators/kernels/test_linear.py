from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fabric import Program, Report, simulate
from operators.kernels.kernel import Kernel
from operators.kernels.model import Model, wire
from operators.kernels.off_chip import Gather, Store
from operators.kernels.product import batched, linear
from operators.kernels.schedule import Order, Schedule
from operators.kernels.tensors import Stored, View
from tests.profiles import examples, spread

FLOAT32 = np.dtype(np.float32)
ORDERS: tuple[Order, ...] = ("row", "weight", "output")
SIZES = st.sampled_from([1, 2, 3, 4, 7, 8, 12, 13])


def stored(name: str, array: np.ndarray | tuple[int, ...]) -> View:
    if isinstance(array, tuple):
        return View.of(Stored.of(name, array, FLOAT32, None))
    return View.of(Stored.of(name, array.shape, FLOAT32, lambda: array))


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).integers(-4, 5, shape).astype(np.float32)


def program_of(*kernels: Kernel, schedule: Schedule, expected: np.ndarray | None = None) -> Program:
    model = Model()
    model.kernels.extend(kernels)
    (result,) = kernels[-1].results
    model.kernels.append(Store.of("y", View.of(result), schedule))
    with Program("linear") as program:
        wire(program, model)
    if expected is not None:
        program.expect(y=lambda: expected)
    return program


def checked(program: Program) -> Report:
    report = simulate(program, mode="functional")
    assert report.verified
    assert simulate(program, mode="timing").cycles == report.cycles
    return report


@given(
    st.lists(SIZES, max_size=2),
    SIZES,
    SIZES | st.just(97),
    st.booleans(),
    st.sampled_from(ORDERS),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([2, 3, 8]),
    st.sampled_from([1, 1, 2, 5]),
)
@example([6], 8, 97, True, "weight", 2, 8, 1)
@examples(quick=4, deep=60)
def test_bytes_and_operations_equal_the_closed_form(
    lead: list[int],
    inner: int,
    size: int,
    adds: bool,
    order: Order,
    rows: int,
    cols: int,
    units: int,
) -> None:
    schedule = Schedule(tile_rows=rows, tile_cols=cols, tile_inner=cols, order=order, units=units)
    x, weight, bias = numbers(*lead, inner), numbers(size, inner), numbers(size)
    added = stored("bias", bias) if adds else None
    kernel = linear("linear", stored("x", x), stored("w", weight), added, FLOAT32, schedule)
    expected = (x @ weight.T + (bias if adds else 0)).reshape(*lead, size)

    report = checked(program_of(kernel, schedule=schedule, expected=expected))

    down, across = kernel.nest.row_tiles, kernel.nest.size // (kernel.nest.cols * kernel.nest.units)
    padded = 104 if (size, cols) == (97, 8) else size  # nothing near 8 divides 97
    # A whole tile of the left operand stays on chip while all columns pass.
    often = across if kernel.nest.groups else 1
    times = {"row": (1, down), "weight": (1, 1), "output": (often, down)}[kernel.nest.order]
    products = math.prod(lead) * inner * padded
    assert report.off_chip_traffic_bytes == 4 * (
        x.size * times[0] + padded * inner * times[1] + padded * adds + expected.size
    )
    assert report.flops == 2 * products + math.prod(lead) * padded * adds


@given(st.lists(st.integers(1, 3), max_size=2), SIZES, SIZES, SIZES, st.sampled_from(ORDERS))
@examples(quick=5, deep=40)
def test_products_of_batches_equal_numpy(
    batches: list[int], rows: int, inner: int, cols: int, order: Order
) -> None:
    schedule = Schedule(tile_rows=3, tile_cols=4, tile_inner=2, order=order)
    a, b = numbers(*batches, rows, inner), numbers(*batches, cols, inner)
    eye = numbers(inner, inner)
    first = linear("first", stored("a", a), stored("eye", eye), None, FLOAT32, schedule)
    swapped = (*range(len(batches)), len(batches) + 1, len(batches))
    left, right = View.of(first.results[0]), stored("b", b).permuted(swapped)
    second = batched("second", left, right, None, FLOAT32, schedule)
    expected = (a @ eye.T) @ np.swapaxes(b, -1, -2)

    report = checked(program_of(first, second, schedule=schedule, expected=expected))

    assert not second.transposed  # memory gives the stored operand in any order
    products = a.size * first.nest.size + math.prod(batches) * rows * inner * cols
    assert report.flops == 2 * products


@given(st.lists(st.integers(1, 6), max_size=2), SIZES, st.sampled_from([1, 2, 4]))
@examples(quick=5, deep=30)
def test_rows_of_a_table_equal_numpy(shape: list[int], cols: int, rows: int) -> None:
    table = numbers(9, cols)
    places = np.random.default_rng(cols).integers(0, 9, shape)
    source = stored("table", table).source
    assert isinstance(source, Stored)
    schedule = Schedule(tile_rows=rows)
    kernel = Gather("rows", source, places, schedule)

    report = checked(program_of(kernel, schedule=schedule, expected=table[places]))

    assert report.off_chip_traffic_bytes == 2 * 4 * places.size * cols


@pytest.mark.parametrize("order", spread(ORDERS, 1))
def test_weights_of_four_bits_take_half_a_byte(order: Order) -> None:
    x, weight = numbers(6, 8), numbers(12, 8)

    def run(dtype: Literal["int4"] | None) -> Report:
        schedule = Schedule(tile_rows=6, tile_cols=4, order=order, weight_dtype=dtype)
        kernel = linear("linear", stored("x", x), stored("w", weight), None, FLOAT32, schedule)
        return checked(program_of(kernel, schedule=schedule, expected=x @ weight.T))

    wide, narrow = run(None), run("int4")

    assert wide.off_chip_traffic_bytes is not None
    assert narrow.off_chip_traffic_bytes is not None
    saved = wide.off_chip_traffic_bytes - narrow.off_chip_traffic_bytes
    assert saved == weight.size * 4 - weight.size // 2

"""Linear layers and tables as kernels: numbers by numpy, bytes and operations in closed form."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Layout, Program, Report, simulate
from operators import Accum, LinearOffChipLoad, Map
from operators.bufferize import Bufferize
from operators.expand import Repeat
from operators.kernels.kernel import Kernel
from operators.kernels.model import Model, wire
from operators.kernels.off_chip import Gather, Store
from operators.kernels.product import Product, batched, linear
from operators.kernels.schedule import Order, Schedule
from operators.kernels.tensors import Computed, Stored, View
from operators.of_the_fabric import Broadcast
from operators.reassemble import Reassemble
from tests.profiles import examples

FLOAT32 = np.dtype(np.float32)
ORDERS: tuple[Order, ...] = ("row", "weight", "output")
SIZES = st.sampled_from([1, 2, 3, 4, 7, 8, 12, 13])


def stored(name: str, array: np.ndarray | tuple[int, ...]) -> View:
    """Return a tensor in off-chip memory, without data where only its shape is given."""
    if isinstance(array, tuple):
        return View.of(Stored.of(name, array, FLOAT32, None))
    return View.of(Stored.of(name, array.shape, FLOAT32, lambda: array))


def numbers(*shape: int) -> np.ndarray:
    """Return integers, so that sums are the same in any order."""
    return np.random.default_rng(shape).integers(-4, 5, shape).astype(np.float32)


def program_of(*kernels: Kernel, schedule: Schedule, expected: np.ndarray | None = None) -> Program:
    """Return the program that stores what the last kernel gives."""
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
    """Run a program both ways."""
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
@examples(quick=6, deep=100)
def test_bytes_and_operations(
    lead: list[int],
    inner: int,
    size: int,
    adds: bool,
    order: Order,
    rows: int,
    cols: int,
    units: int,
) -> None:
    """Of R tiles of rows and C of columns, each order reads again what it does not keep.

    Units that share the columns share a reading of the rows.
    """
    schedule = Schedule(tile_rows=rows, tile_cols=cols, tile_inner=cols, order=order, units=units)
    x, weight, bias = numbers(*lead, inner), numbers(size, inner), numbers(size)
    added = stored("bias", bias) if adds else None
    kernel = linear("linear", stored("x", x), stored("w", weight), added, FLOAT32, schedule)
    expected = (x @ weight.T + (bias if adds else 0)).reshape(*lead, size)

    report = checked(program_of(kernel, schedule=schedule, expected=expected))

    down, across = kernel.nest.row_tiles, kernel.nest.size // (kernel.nest.cols * kernel.nest.units)
    padded = kernel.nest.size
    # A tile of the left operand that is whole stays while all columns pass.
    often = across if kernel.nest.groups else 1
    times = {"row": (1, down), "weight": (1, 1), "output": (often, down)}[kernel.nest.order]
    products = math.prod(lead) * inner * padded
    assert report.off_chip_traffic_bytes == 4 * (
        x.size * times[0] + padded * inner * times[1] + padded * adds + expected.size
    )
    assert report.flops == 2 * products + math.prod(lead) * padded * adds


@pytest.mark.parametrize("order", ORDERS)
def test_features_that_nothing_divides(order: Order) -> None:
    """97 features in tiles of 8: seven more rows of zeros are read, and nothing more is stored."""
    schedule = Schedule(tile_rows=2, tile_cols=8, order=order)
    x, weight = numbers(6, 8), numbers(97, 8)
    kernel = linear("linear", stored("x", x), stored("w", weight), None, FLOAT32, schedule)

    checked(program_of(kernel, schedule=schedule, expected=x @ weight.T))

    assert kernel.nest.size == 104
    assert kernel.results[0].shape == (6, 97)


@pytest.mark.parametrize("shape", [(), (1,), (97,), (6, 1), (6, 97)])
def test_what_is_added_to_padded_features(shape: tuple[int, ...]) -> None:
    """One number is the same for all features; others are padded as these are."""
    schedule = Schedule(tile_rows=2, tile_cols=8)
    x, weight, bias = numbers(6, 8), numbers(97, 8), numbers(*shape)
    kernel = linear(
        "linear", stored("x", x), stored("w", weight), stored("bias", bias), FLOAT32, schedule
    )
    assert kernel.nest.size == 104
    checked(program_of(kernel, schedule=schedule, expected=x @ weight.T + bias))


@pytest.mark.parametrize("order", ["row", "weight"])
def test_columns_are_summed_as_they_come(order: Order) -> None:
    """A product's columns are the next one's inner dimension: nothing waits for whole rows."""
    schedule = Schedule(tile_rows=4, tile_cols=2, order=order)
    x, up, down = numbers(4, 6), numbers(8, 6), numbers(5, 8)
    first = linear("up", stored("x", x), stored("u", up), None, FLOAT32, schedule)
    second = linear("down", View.of(first.results[0]), stored("d", down), None, FLOAT32, schedule)
    program = program_of(first, second, schedule=schedule, expected=x @ up.T @ down.T)

    checked(program)

    assert not [each for each in program.nodes if "bufferize" in each.name]
    (summing,) = [each.operator for each in program.nodes if each.name == "down"]
    assert isinstance(summing, Accum)


@given(st.lists(st.integers(1, 3), max_size=2), SIZES, SIZES, SIZES, st.sampled_from(ORDERS))
@examples(quick=10, deep=40)
def test_batches(batches: list[int], rows: int, inner: int, cols: int, order: Order) -> None:
    """A product batch by batch, of an operand that is stored and one that is computed."""
    schedule = Schedule(tile_rows=3, tile_cols=4, tile_inner=2, order=order)
    a, b = numbers(*batches, rows, inner), numbers(*batches, cols, inner)
    eye = numbers(inner, inner)
    first = linear("first", stored("a", a), stored("eye", eye), None, FLOAT32, schedule)
    swapped = (*range(len(batches)), len(batches) + 1, len(batches))
    second = batched(
        "second",
        View.of(first.results[0]),
        stored("b", b).permuted(swapped),
        None,
        FLOAT32,
        schedule,
    )
    expected = (a @ eye.T) @ np.swapaxes(b, -1, -2)

    report = checked(program_of(first, second, schedule=schedule, expected=expected))

    products = a.size * first.nest.size + math.prod(batches) * rows * inner * cols
    assert report.flops == 2 * products


@given(st.lists(st.integers(1, 6), max_size=2), SIZES, st.sampled_from([1, 2, 4]))
@examples(quick=10, deep=30)
def test_tables(shape: list[int], cols: int, rows: int) -> None:
    """Each row of a table is read as often as its number comes."""
    table = numbers(9, cols)
    places = np.random.default_rng(cols).integers(0, 9, shape)
    source = stored("table", table).source
    assert isinstance(source, Stored)
    schedule = Schedule(tile_rows=rows)

    report = checked(
        program_of(
            Gather("rows", source, places, schedule), schedule=schedule, expected=table[places]
        )
    )

    assert report.off_chip_traffic_bytes == 2 * 4 * places.size * cols


@pytest.mark.parametrize("order", ["row", "weight"])
def test_a_large_vocabulary(order: Order) -> None:
    """151,936 features without data: 2,374 tiles of weights, each read once."""
    schedule = Schedule(order=order)
    x, weight = stored("x", (1, 16, 128)), stored("w", (151_936, 128))
    kernel = linear("head", x, weight, None, FLOAT32, schedule)

    report = simulate(program_of(kernel, schedule=schedule), mode="timing")

    assert report.off_chip_traffic_bytes == 4 * (16 * 128 + 151_936 * 128 + 16 * 151_936)
    assert report.flops == 2 * 16 * 128 * 151_936


def test_reading_follows_what_comes() -> None:
    """Heads that come behind each other are tiles of the inner dimension."""
    layout = Layout.tiled((2, 4, 6, 3), (1, 1, 2, 3), (0, 2, 1, 3))
    layout = layout.nested([loop for loop in layout.loops if loop.trips > 1])
    heads = View.of(Computed("heads", (2, 4, 6, 3), FLOAT32, layout))
    x = heads.permuted((0, 2, 1, 3)).reshaped((2, 6, 12))

    def wired(tile_rows: int) -> Product:
        schedule = Schedule(order="row", tile_rows=tile_rows)
        return linear("out", x, stored("w", (12, 12)), None, FLOAT32, schedule)

    # Far fewer rows than wished are put together.
    assert wired(16).nest.left.rows == 12
    kernel = wired(4)
    assert kernel.nest.groups == 1
    (left, right) = kernel.operands
    assert left.layout is not None
    assert left.layout.same_order(Layout.tiled((2, 6, 12), (1, 2, 3)))
    assert right.layout is not None
    assert right.layout.tile == (12, 3)


@pytest.mark.parametrize("order", ORDERS)
def test_units_take_turns(order: Order) -> None:
    """Four units read four tiles of weights side by side: far fewer cycles for the same bytes."""
    x, weight = numbers(32, 64), numbers(256, 64)

    def run(units: int) -> Report:
        schedule = Schedule(tile_rows=8, tile_cols=16, tile_inner=64, order=order, units=units)
        kernel = linear("linear", stored("x", x), stored("w", weight), None, FLOAT32, schedule)
        assert kernel.nest.units == units
        return checked(program_of(kernel, schedule=schedule, expected=x @ weight.T))

    one, four = run(1), run(4)

    assert four.cycles is not None
    assert one.cycles is not None
    assert 3 * four.cycles < one.cycles
    assert four.flops == one.flops


@pytest.mark.parametrize("order", ORDERS)
def test_narrow_weights(order: Order) -> None:
    """Weights of four bits are half a byte each where they lie; what is computed stays."""
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


def computed(shape: tuple[int, ...], tile: tuple[int, ...]) -> View:
    """Return what a kernel gives in these tiles."""
    return View.of(Computed("given", shape, FLOAT32, Layout.tiled(shape, tile)))


PLANS: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    # 12 rows in three tiles of 4; 40 columns in five of 8. Loops: n is the one of five.
    ({}, ("weight", (4, 24), 8, 1, None, (5, 3))),
    ({"order": "row"}, ("row", (4, 24), 8, 1, None, (3, 5))),
    ({"order": "output"}, ("output", (4, 6), 8, 1, None, (3, 5, 4))),
    ({"order": "output", "tile_rows": 12}, ("output", (12, 6), 8, 1, None, (5, 4))),
    # All rows in one tile: the weights pass once anyway.
    ({"tile_rows": 12}, ("row", (12, 24), 8, 1, None, (5,))),
    # 20 columns for each of two units: 5 divides that, and is not far from 8. Three divide nothing.
    ({"units": 2}, ("weight", (4, 24), 5, 2, None, (4, 3))),
    ({"units": 3}, ("weight", (4, 24), 5, 2, None, (4, 3))),
    ({"units": 2, "size": 26}, ("weight", (4, 24), 13, 2, None, (1, 3))),
    # Nothing near 8 divides 97: 13 tiles, the last one padded.
    ({"size": 97}, ("weight", (4, 24), 8, 1, 97, (13, 3))),
    # Units with 262 columns each have tiles of 2, an eighth of the wish; with 131 they had 1.
    ({"units": 2, "size": 524, "tile_cols": 16}, ("weight", (4, 24), 2, 2, None, (131, 3))),
    ({"units": 2, "size": 262, "tile_cols": 16}, ("weight", (4, 24), 16, 1, 262, (17, 3))),
    # A bias that is computed cannot be padded.
    (
        {"units": 2, "size": 262, "tile_cols": 16, "bias": computed((262,), (262,))},
        ("weight", (4, 24), 2, 1, None, (131, 3)),
    ),
    # Columns are summed as they come, in rows up to four times as wide as what comes.
    (
        {"order": "row", "size": 32, "x": computed((12, 8), (4, 2))},
        ("row", (4, 2), 32, 1, None, (3, 1, 4)),
    ),
    (
        {"order": "row", "size": 32, "units": 4, "x": computed((12, 8), (4, 2))},
        ("row", (4, 2), 8, 4, None, (3, 1, 4)),
    ),
    (
        {"order": "row", "size": 33, "x": computed((12, 8), (4, 2))},
        ("row", (4, 8), 3, 1, None, (3, 11)),
    ),
    (
        {"size": 32, "x": computed((4, 8), (4, 2))},
        ("row", (4, 2), 32, 1, None, (1, 4)),
    ),
    # Tiles with less than a quarter of the rows wished are put together.
    ({"tile_rows": 5, "size": 16, "x": computed((20, 8), (1, 8))},
     ("weight", (5, 8), 8, 1, None, (2, 4))),
    ({"tile_rows": 4, "size": 16, "x": computed((20, 8), (1, 8))},
     ("weight", (1, 8), 8, 1, None, (2, 20))),
    # But not where no tiles of what is there make them: six rows of 8 are one and a half of 32.
    ({"tile_rows": 8, "size": 16,
      "x": computed((12, 8), (1, 8)).reshaped((3, 32)).reshaped((12, 8))},
     ("weight", (1, 8), 8, 1, None, (2, 3, 4))),
    # 241 is prime, but sixteen padded tiles are even.
    ({"units": 2, "size": 241, "tile_cols": 16}, ("weight", (4, 24), 16, 2, 241, (8, 3))),
    ({"units": 2, "size": 241, "tile_cols": 16, "bias": stored("bias", (1,))},
     ("weight", (4, 24), 16, 2, 241, (8, 3))),
    # Tiles that come whole are cut where sums are, and their rows are followed.
    ({"order": "output", "x": computed((2, 12, 24), (1, 3, 24))},
     ("output", (1, 3, 6), 8, 1, None, (2, 4, 5, 4))),
    ({"order": "output", "x": computed((2, 12, 24), (1, 3, 12))},
     ("output", (1, 3, 12), 8, 1, None, (2, 4, 5, 2))),
    ({"x": computed((2, 12, 24), (1, 3, 12))}, ("weight", (1, 3, 12), 8, 1, None, (5, 2, 4, 2))),
    # Weights in blocks of 32 come in whole blocks, or in whole rows.
    ({"order": "output", "x": stored("x", (2, 12, 64)), "tile_inner": 16},
     ("output", (1, 4, 16), 8, 1, None, (2, 3, 5, 4))),
    ({"order": "output", "x": stored("x", (2, 12, 64)), "tile_inner": 16,
      "weight_dtype": "mxfp8_e4m3"}, ("output", (1, 4, 64), 8, 1, None, (2, 3, 5))),
    ({"order": "output", "x": stored("x", (2, 12, 64)), "tile_inner": 32,
      "weight_dtype": "mxfp8_e4m3"}, ("output", (1, 4, 32), 8, 1, None, (2, 3, 5, 2))),
]  # fmt: skip


@pytest.mark.parametrize(("given_", "plan"), PLANS)
def test_how_linear_layers_are_tiled(given_: dict[str, Any], plan: tuple[Any, ...]) -> None:
    """Order, tiles of rows, columns of a tile, units, columns kept of padded ones, and loops."""
    wishes = {"tile_rows": 4, "tile_cols": 8, "tile_inner": 6} | given_
    size, x = wishes.pop("size", 40), wishes.pop("x", stored("x", (12, 24)))
    bias = wishes.pop("bias", None)
    weight = stored("w", (size, x.shape[-1]))
    kernel = linear("linear", x, weight, bias, FLOAT32, Schedule(**wishes))

    nest = kernel.nest
    assert plan == (nest.order, nest.left.tile, nest.cols, nest.units, kernel.keeps, nest.trips)


BATCHED: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({}, ("weight", (1, 4, 24), 8, False, (2, 5, 3))),
    ({"order": "row"}, ("row", (1, 4, 24), 8, False, (2, 3, 5))),
    ({"order": "output"}, ("output", (1, 4, 6), 8, False, (2, 3, 5, 4))),
    ({"tile_rows": 12}, ("row", (1, 12, 24), 8, False, (2, 5))),
    # Columns come eight times as wide as wished, and wider than that.
    (
        {"right": computed((2, 24, 64), (1, 24, 64))},
        ("weight", (1, 4, 24), 64, False, (2, 1, 3)),
    ),
    (
        {"right": computed((2, 24, 72), (1, 24, 72))},
        ("weight", (1, 4, 24), 8, False, (2, 9, 3)),
    ),
    # By rows of its columns, and in tiles of both batches.
    (
        {"right": computed((2, 40, 24), (1, 10, 24)).permuted((0, 2, 1))},
        ("weight", (1, 4, 24), 10, True, (2, 4, 3)),
    ),
    (
        {"right": computed((2, 24, 40), (2, 24, 10))},
        ("weight", (1, 4, 24), 10, False, (2, 4, 3)),
    ),
    # Of several batches in one tile the columns are those wished for.
    (
        {"left": stored("a", (2, 3, 12, 24)), "right": computed((2, 3, 24, 40), (1, 1, 24, 10))},
        ("weight", (1, 1, 4, 24), 10, False, (2, 3, 4, 3)),
    ),
    (
        {"left": stored("a", (2, 3, 12, 24)), "right": computed((2, 3, 24, 40), (2, 1, 24, 10))},
        ("weight", (1, 1, 4, 24), 8, False, (2, 3, 5, 3)),
    ),
    # Rows that come of one batch are followed, of several batches they are not.
    ({"left": computed((2, 12, 24), (1, 3, 24))}, ("weight", (1, 3, 24), 8, False, (2, 5, 4))),
    ({"left": computed((2, 12, 24), (2, 3, 24))}, ("weight", (1, 4, 24), 8, False, (2, 5, 3))),
    # Two halves of rows one below the other are no tiles of what is there: single numbers are.
    (
        {
            "order": "output",
            "tile_inner": 4,
            "left": stored("a", (12, 8)),
            "right": computed((4, 6), (4, 6))
            .reshaped((4, 2, 3))
            .permuted((2, 0, 1))
            .reshaped((8, 3)),
        },
        ("output", (4, 1), 1, False, (3, 3, 8)),
    ),
]


@pytest.mark.parametrize(("given_", "plan"), BATCHED)
def test_how_products_of_batches_are_tiled(given_: dict[str, Any], plan: tuple[Any, ...]) -> None:
    """Order, tiles of rows, columns of a tile, whether they are turned, and loops."""
    wishes = {"tile_rows": 4, "tile_cols": 8, "tile_inner": 6} | given_
    right = wishes.pop("right", stored("b", (2, 24, 40)))
    left = wishes.pop("left", stored("a", (2, 12, 24)))
    kernel = batched("p", left, right, None, FLOAT32, Schedule(**wishes))

    nest = kernel.nest
    assert plan == (nest.order, nest.left.tile, nest.cols, kernel.transposed, nest.trips)


@pytest.mark.parametrize(
    ("given_", "size", "counts"),
    [
        # Repeat, Broadcast, Accum, Map, Reassemble, Bufferize and loads. All rows in one tile:
        # they are repeated for each tile of weights, and nothing is kept.
        ({"tile_rows": 4}, 16, (1, 0, 0, 1, 0, 0, 2)),
        ({"tile_rows": 4, "tile_cols": 16}, 16, (0, 0, 0, 1, 0, 0, 2)),
        # Rows are kept, and a tile of weights is repeated; or a tile of rows is.
        ({"order": "weight"}, 16, (1, 0, 0, 1, 0, 1, 2)),
        ({}, 16, (1, 0, 0, 1, 0, 0, 2)),
        ({"tile_cols": 16}, 16, (0, 0, 0, 1, 0, 0, 2)),
        ({"order": "output"}, 16, (0, 0, 1, 0, 0, 0, 2)),
        ({"order": "output", "tile_inner": 8}, 16, (1, 0, 0, 1, 0, 0, 2)),
        # What is added is loaded, and kept for the next tile of rows.
        ({"tile_rows": 4, "bias": True}, 16, (1, 0, 0, 2, 0, 0, 3)),
        ({"bias": True}, 16, (1, 0, 0, 2, 0, 1, 3)),
        ({"order": "output", "bias": True}, 16, (0, 0, 1, 1, 0, 1, 3)),
        # Units have weights and sums of their own, and the same rows.
        ({"tile_rows": 4, "units": 2}, 16, (0, 1, 0, 2, 1, 0, 3)),
        ({"tile_rows": 4, "units": 2}, 32, (2, 1, 0, 2, 1, 0, 3)),
        ({"tile_rows": 4, "units": 2, "bias": True}, 32, (2, 1, 0, 4, 1, 0, 5)),
        ({"order": "weight", "units": 2}, 32, (2, 1, 0, 2, 1, 1, 3)),
        # Padding is cut off whole rows, which are put together first.
        ({"tile_rows": 4}, 97, (1, 0, 1, 2, 0, 0, 2)),
        ({}, 97, (1, 0, 1, 2, 0, 0, 2)),
        ({"order": "weight"}, 97, (1, 0, 1, 2, 0, 2, 2)),
    ],
)
def test_operators(given_: dict[str, Any], size: int, counts: tuple[int, ...]) -> None:
    """As few as an order takes, for 4 x 8 in tiles of two rows and four of the inner dimension."""
    wishes: dict[str, Any] = {"tile_rows": 2, "tile_cols": 8, "tile_inner": 4, "order": "row"}
    wishes |= given_
    bias = stored("bias", (size,)) if wishes.pop("bias", False) else None
    schedule = Schedule(**wishes)
    kernel = linear("p", stored("x", (4, 8)), stored("w", (size, 8)), bias, FLOAT32, schedule)
    program = program_of(kernel, schedule=schedule)

    kinds = Repeat, Broadcast, Accum, Map, Reassemble, Bufferize, LinearOffChipLoad
    operators = [node.operator for node in program.nodes]
    assert counts == tuple(sum(isinstance(each, kind) for each in operators) for kind in kinds)
    assert simulate(program, mode="timing").status == "completed"

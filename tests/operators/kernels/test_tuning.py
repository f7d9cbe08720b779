"""Schedules found by trying: the shortest of the candidates, and channels that keep it so."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fabric import CapacityError, ConfigurationError, Program, simulate
from operators import LinearOffChipLoad, LinearOffChipStore
from operators.kernels.kernel import Operand
from operators.kernels.model import Model
from operators.kernels.off_chip import Store
from operators.kernels.product import linear
from operators.kernels.realise import realised
from operators.kernels.schedule import (
    Order,
    Schedule,
    at_most,
    candidates,
    divisors,
    fit,
    number_of,
    tuned,
)
from operators.kernels.tensors import Stored, View
from operators.sources import RaggedIntegers
from tests.profiles import spread

FLOAT = np.dtype(np.float32)
ROWS, WIDTH, HIDDEN = 32, 64, 128


def numbers(name: str, *shape: int) -> np.ndarray:
    """A tensor that is always the same."""
    seed = sum(map(ord, name))
    return np.random.default_rng(seed).standard_normal(shape).astype(FLOAT)


def stored(name: str, *shape: int) -> View:
    """The same in off-chip memory."""
    return View.of(Stored.of(name, shape, FLOAT, lambda: numbers(name, *shape)))


def layers(schedule: Schedule) -> Program:
    """Two products, one behind the other."""
    model = Model()
    x = stored("x", ROWS, WIDTH)
    for name, wide, narrow in (("up", HIDDEN, WIDTH), ("down", WIDTH, HIDDEN)):
        kernel = linear(name, x, stored(name, wide, narrow), None, FLOAT, schedule)
        model.kernels.append(kernel)
        x = View.of(kernel.results[0]).sliced(1, 0, wide)
    layout = x.layout
    assert layout is not None
    model.kernels.append(Store("y", Operand(x, layout), x.shape))
    program = realised("layers", model, schedule)
    up, down = numbers("up", HIDDEN, WIDTH), numbers("down", WIDTH, HIDDEN)
    program.expect(y=lambda: numbers("x", ROWS, WIDTH) @ up.T @ down.T, rtol=1e-4, atol=1e-4)
    return program


def cycles(program: Program, mode: str = "timing") -> int:
    """Of a run that completes."""
    report = simulate(program, mode=mode)
    assert report.status == "completed"
    assert report.verified in (True, None)
    assert report.cycles is not None
    return report.cycles


@pytest.mark.parametrize(
    "asked",
    spread(
        [
            Schedule.auto(),
            Schedule.auto(on_chip_bytes=40_000),
            Schedule.auto(flops_per_cycle=1_024),
            Schedule.auto(on_chip_bytes=0, flops_per_cycle=1_024),
        ],
        2,
    ),
    ids=["free", "on chip", "compute", "both"],
)
def test_no_candidate_is_shorter(asked: Schedule) -> None:
    """All of them are run, the default schedule among them."""
    found = tuned(asked, layers)

    others = []
    for each in candidates(asked):
        try:
            others.append(cycles(layers(each)))
        except CapacityError:
            continue
    assert len(others) > 1
    assert cycles(found) <= min(others)
    assert cycles(found, "functional") == cycles(found)


def test_it_is_always_the_same() -> None:
    """Two programs of one schedule have one report."""
    asked = Schedule.auto(on_chip_bytes=40_000, flops_per_cycle=4_096)

    first, second = tuned(asked, layers), tuned(asked, layers)

    assert first.depths == second.depths
    first_report, second_report = simulate(first), simulate(second)
    assert first_report.extra == second_report.extra
    assert first_report.units == second_report.units


def test_the_bandwidth_is_what_was_asked_for() -> None:
    """All compute units together have no more."""
    report = simulate(tuned(Schedule.auto(flops_per_cycle=1_000), layers))

    assert report.allocated_flops_per_cycle is not None
    assert 0 < report.allocated_flops_per_cycle <= 1_000


def test_a_budget_that_nothing_fits_is_the_first_candidates_error() -> None:
    """What no candidate can do is said of the schedule that was asked for."""

    def build(schedule: Schedule) -> Program:
        raise CapacityError(f"tiles of {schedule.tile_cols} do not fit")

    with pytest.raises(CapacityError, match=r"^tiles of 64 do not fit$"):
        tuned(Schedule.auto(), build)


ORDERS = [(order, tile) for order in ("weight", "row", "output") for tile in (16, 64, 256)]


def test_candidates() -> None:
    """The schedule itself, and then tiles of three sizes in three orders, each schedule once."""

    def named(schedule: Schedule) -> list[tuple[object, ...]]:
        return [
            (each.order, each.tile_rows, each.tile_cols, each.tile_inner, each.tile_keys)
            for each in candidates(schedule)
        ]

    others: list[tuple[object, ...]] = [(order, *[tile] * 4) for order, tile in ORDERS]
    assert named(Schedule(units=2)) == [("weight", 16, 64, 64, 64), *others]
    small = Schedule(tile_rows=64, order="row")
    assert named(small) == [others[4], *others[:4], *others[5:]]
    assert all(each.units == 2 for each in candidates(Schedule(units=2)))


def stores(sizes: dict[tuple[str, int], tuple[int, int]], schedule: Schedule) -> Program:
    """A program that stores 9 rows, or as many of such a width as ``sizes`` says."""
    key = schedule.order, schedule.tile_rows
    rows, cols = sizes.get(key, (9, 4))
    if not rows:
        raise CapacityError("no room")
    with Program(f"{key[0]} {key[1]}") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(np.ones((rows, cols)), (1, cols))())
    return program


SHORT = {("row", 64): (5, 4), ("output", 16): (5, 4)}
SIZED, NOT_SIZED = "channels sized (validated)", "channels not sized"


@pytest.mark.parametrize(
    ("sizes", "most_run", "most_sized", "name", "text"),
    [
        ({}, 9, 9, "weight 16", f"tiles of 16x64x64, order weight, 1 of 10 run, {SIZED}"),
        (SHORT, 9, 9, "row 64", f"tiles of 64x64x64, order row, 1 of 10 run, {SIZED}"),
        (SHORT, 5, 5, "row 64", f"tiles of 64x64x64, order row, 1 of 10 run, {SIZED}"),
        (SHORT, 4, 9, "row 64", f"tiles of 64x64x64, order row, by lower bounds, {NOT_SIZED}"),
        (
            SHORT, 5, 4, "row 64",
            "tiles of 64x64x64, order row, 1 of 10 run, channels as deep as a run has filled them",
        ),
        (
            SHORT | {("row", 64): (0, 0), ("weight", 16): (0, 0)}, 9, 9, "output 16",
            f"tiles of 16x16x16, order output, 1 of 7 run, {SIZED}",
        ),
        # What is too large to be run is not what decides, however short it may be.
        (
            dict.fromkeys(ORDERS, (2, 4096)) | {("row", 64): (5, 4)}, 4, 9, "weight 16",
            f"tiles of 16x64x64, order weight, 1 of 10 run, {SIZED}",
        ),
    ],
)  # fmt: skip
def test_what_is_tried_and_said(
    sizes: dict[tuple[str, int], tuple[int, int]],
    most_run: int,
    most_sized: int,
    name: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Candidates are run while one may be shorter, up to a size; of equal ones the first counts."""
    monkeypatch.setattr("operators.kernels.schedule._MOST_RUN", most_run)
    monkeypatch.setattr("operators.kernels.schedule._MOST_SIZED", most_sized)

    found = tuned(Schedule.auto(), lambda each: stores(sizes, each))

    assert (name, text) == (found.name, found.extra["schedule"]())


def test_patterns_and_regions() -> None:
    """The first pattern that matches counts; a region has as many groups as the others."""
    schedule = Schedule(
        order="output",
        orders={"*.up": "row", "a*": "weight"},
        weight_dtypes={"a*": "int4", "a.up": "int8"},
        regions=(2, 3),
    )
    names = ("a.up", "a.down", "b.up", "b.down")
    assert ["row", "weight", "row", "output"] == [schedule.order_of(name) for name in names]
    assert ["int4", "int4", None, None] == [schedule.weight_dtype_of(name) for name in names]
    assert [2, 3] == [schedule.regions_of(layer, 6) for layer in (0, 1)]
    assert [6, 6, 3] == [
        Schedule(regions=each).regions_of(9, 6) for each in (None, 6, 3)
    ]  # fmt: skip
    for regions, layer, message in (
        ((2, 3), 2, r"^regions is \(2, 3\): expected a number for ragged layer 2, too$"),
        ((2, 4), 1, "^regions is 4 for ragged layer 1: expected a divisor of the number of groups"),
        (0, 0, "^regions is 0 for ragged layer 0: expected a divisor"),
        (12, 0, "^regions is 12 for ragged layer 0: expected a divisor"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            Schedule(regions=regions).regions_of(layer, 6)
    assert {1, 2, 3, 4, 6, 9, 12, 18, 36} == divisors(36)
    assert [1, 1, 2, 3, 6, 6] == [at_most(wish, 6) for wish in (1, 1, 2, 5, 6, 7)]


def test_channels_of_a_larger_program_are_as_deep_as_its_run_uses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run with these depths is the same, and no channel has a slot that it never uses."""
    monkeypatch.setattr("operators.kernels.schedule._MOST_SIZED", 0)

    found = tuned(Schedule.auto(), layers)

    report = simulate(found)
    assert report.cycles == min(cycles(layers(each)) for each in candidates(Schedule.auto()))
    assert all(
        each.depth == max(each.peak_occupancy, 1)
        for each in report.channels_counters
        if each.elements
    )
    assert any(each.depth > 1 for each in report.channels_counters)
    assert "as deep as a run has filled them" in report.extra["schedule"]


@pytest.mark.parametrize("order", ["weight", "row", "output"])
def test_buffers_of_a_group_fit_or_it_is_refused(order: Order) -> None:
    """What is left of buffers of stored tensors that are read again counts."""
    refused = 0
    for budget in (0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000):
        schedule = Schedule(order=order, tile_rows=8, tile_cols=8, on_chip_bytes=budget)
        try:
            program = layers(schedule)
        except CapacityError:
            refused += 1
            continue
        assert program.extra["largest_group_buffer_bytes"]() <= budget  # type: ignore[operator]
    assert refused < 9


@pytest.mark.parametrize(
    ("size", "wish", "found"),
    [
        (12, 12, 12),
        (12, 5, 4),
        (12, 1, 1),
        (3, 8, 3),
        # A quarter of the wish will do; less than that will not.
        (76, 16, 4),
        (76, 17, 19),
        (57, 12, 3),
        (57, 13, 19),
        # Of a small tensor it is a quarter of the tensor's.
        (7, 6, 7),
        (5, 4, 1),
        (5, 3, 1),
        (10, 9, 5),
        # Up to eight times the wish.
        (97, 13, 97),
        (97, 12, 1),
        (2 * 41, 9, 41),
    ],
)
def test_fit(size: int, wish: int, found: int) -> None:
    """The largest divisor up to the wish, or the smallest above it."""
    assert found == fit(size, wish)
    assert found in divisors(size)


def test_numbers_of_dimensions() -> None:
    """A mean of 5 / 3 is rounded up, three times that is 5; of what is not bound there is none."""
    with Program("sizes") as program:
        stream = RaggedIntegers([[1], [2, 3, 4], [5]])()
    ragged, count = stream.shape[-1], stream.type.count
    assert [3, None, None] == [number_of(program, each) for each in (3, ragged, count)]
    program.bind(ragged, Fraction(5, 3))
    assert [3, 2, 5] == [number_of(program, each) for each in (3, ragged, count)]

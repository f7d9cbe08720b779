from __future__ import annotations

import numpy as np
import pytest

from fabric import CapacityError, Program, simulate
from operators.kernels.kernel import Operand
from operators.kernels.model import Model
from operators.kernels.off_chip import Store
from operators.kernels.product import linear
from operators.kernels.realise import realised
from operators.kernels.schedule import Schedule, candidates, tuned
from operators.kernels.tensors import Stored, View
from tests.profiles import spread

FLOAT = np.dtype(np.float32)
ROWS, WIDTH, HIDDEN = 32, 64, 128


def numbers(name: str, *shape: int) -> np.ndarray:
    seed = sum(map(ord, name))
    return np.random.default_rng(seed).standard_normal(shape).astype(FLOAT)


def stored(name: str, *shape: int) -> View:
    return View.of(Stored.of(name, shape, FLOAT, lambda: numbers(name, *shape)))


def layers(schedule: Schedule) -> Program:
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
    report = simulate(program, mode=mode)
    assert report.status == "completed"
    assert report.verified in (True, None)
    assert report.cycles is not None
    return report.cycles


@pytest.mark.parametrize(
    "asked",
    spread([Schedule.auto(), Schedule.auto(on_chip_bytes=0, flops_per_cycle=1_024)], 1),
    ids=["free", "both"],
)
def test_tuned_schedule_takes_the_fewest_cycles(asked: Schedule) -> None:
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


def test_the_bandwidth_is_what_was_asked_for() -> None:
    report = simulate(tuned(Schedule.auto(flops_per_cycle=1_000), layers))

    assert report.allocated_flops_per_cycle is not None
    assert 0 < report.allocated_flops_per_cycle <= 1_000


def test_a_budget_that_nothing_fits_is_the_first_candidates_error() -> None:
    def build(schedule: Schedule) -> Program:
        raise CapacityError(f"tiles of {schedule.tile_cols} do not fit")

    with pytest.raises(CapacityError, match=r"^tiles of 64 do not fit$"):
        tuned(Schedule.auto(), build)


def test_channels_of_a_larger_program_are_as_deep_as_its_run_uses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("operators.kernels.schedule._MOST_SIZED", 0)

    found = tuned(Schedule.auto(), layers)

    report = simulate(found)
    assert report.cycles == min(cycles(layers(each)) for each in candidates(Schedule.auto()))
    assert all(
        each.depth == max(each.peak_occupancy, 1) for each in report.channels_counters if each.taken
    )
    assert any(each.depth > 1 for each in report.channels_counters)
    assert "as deep as a run has filled them" in report.extra["schedule"]

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Layout, Program, simulate
from operators.kernels import recurrence
from operators.kernels.kernel import Operand
from operators.kernels.model import Model, OutOfStepError, check_loops, wire
from operators.kernels.off_chip import Store
from operators.kernels.tensors import Computed, Stored, View
from tests.fabric.layouts.layouts import layouts, places
from tests.operators.kernels.test_realise import Added
from tests.profiles import examples

FLOAT = np.dtype(np.float32)


def stored(array: np.ndarray) -> View:
    return View.of(Stored.of("x", array.shape, FLOAT, array.copy))


@given(layouts(), st.sampled_from([2, 3, 4]))
@examples(quick=20, deep=2_000)
def test_layouts_by_steps_hold_whole_steps(layout: Layout, steps: int) -> None:
    if not recurrence.is_by_steps(layout, steps):
        return
    each, walk = layout.shape[0] // steps, places(layout)
    count = len(walk) // steps
    assert (each * steps, count * steps) == (layout.shape[0], len(walk))
    for step in range(steps):
        for place in walk[step * count : (step + 1) * count]:
            assert step * each <= place[0] <= (step + 1) * each - layout.tile[0]


def looped(w: np.ndarray, first: np.ndarray, across: str = "") -> Model:
    steps, *shape = w.shape
    states = recurrence.States("states", stored(first), steps, 2)
    coming = recurrence.Entrance("coming", stored(w), steps, 2)
    backwards = recurrence.Reversed("backwards", View.of(coming.results[0]), 2)
    layout = states.result.layout
    sums = Added("sums", [View.of(states.result), View.of(backwards.results[0])], layout)
    made: View = View.of(sums.results[0])
    if across:
        of_all = Layout(w.shape, (steps, 1, shape[1]), (shape[0],), (1,), (1,))
        late = Added("late", [made, stored(w)], of_all if "reads" in across else layout)
        given = of_all if "gives" in across else layout
        late.results = (Computed("late", w.shape, FLOAT, given),)
        made = View.of(late.results[0])
    behind = recurrence.Behind("behind", states, made)
    loop = recurrence.Recurrence(steps, "model.py", 7, {0: states}, {0: behind})
    extra = [late] if across else []
    model = Model([coming, backwards, states, sums, *extra, behind], {}, {0: loop})
    result = View.of(behind.result)
    model.kernels.append(Store("y", Operand(result, behind.result.layout), result.shape))
    return model


@pytest.mark.parametrize("steps", [2, 3])
def test_loop_equals_numpy(steps: int) -> None:
    w = np.arange(steps * 24, dtype=FLOAT).reshape(steps, 4, 6)
    first = np.full((4, 6), 100, FLOAT)
    model = looped(w, first)
    check_loops(model)
    assert ["states", "sums", "behind"] == [each.name for each in model.round(model.loops[0])]
    with Program("loop", mode="functional") as program:
        wire(program, model)
    program.expect(y=lambda: first + w.sum(axis=0))
    report = simulate(program)
    assert report.verified
    # All steps are read once; the state is read once and stored once.
    assert report.off_chip_traffic_bytes == w.nbytes + 2 * first.nbytes


@pytest.mark.parametrize("across", ["reads", "gives", "reads, gives"])
def test_kernel_that_waits_for_a_later_step_is_named(across: str) -> None:
    model = looped(np.ones((3, 4, 6), FLOAT), np.ones((4, 6), FLOAT), across)
    with pytest.raises(OutOfStepError) as caught:
        check_loops(model)
    assert ("model.py", 7) == (caught.value.file, caught.value.line)
    assert caught.value.message == (
        "late (sum) is in a loop of 3 steps, and does not take them one after the other: "
        "expected calls that proceed step by step"
    )

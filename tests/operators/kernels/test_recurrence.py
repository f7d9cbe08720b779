"""Recurrences: which layouts take one step after the other, and a loop of a model by numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Layout, Program, simulate
from operators.kernels.kernel import Operand
from operators.kernels.model import Model, OutOfStepError, check_loops, wire
from operators.kernels.off_chip import Store
from operators.kernels.realise import realised
from operators.kernels.recurrence import (
    Behind,
    Entrance,
    Recurrence,
    Reversed,
    States,
    by_steps,
    is_by_steps,
)
from operators.kernels.schedule import Schedule
from operators.kernels.tensors import Computed, Stored, View
from tests.fabric.layouts.layouts import layouts, places
from tests.operators.kernels.test_realise import Added
from tests.profiles import examples

FLOAT = np.dtype(np.float32)


def stored(array: np.ndarray) -> View:
    """Return an array in off-chip memory."""
    return View.of(Stored.of("x", array.shape, FLOAT, array.copy))


@given(layouts(), st.sampled_from([2, 3, 4]))
@examples(quick=40, deep=2_000)
def test_steps_one_after_the_other(layout: Layout, steps: int) -> None:
    """Where it is said so, every tile of a step is in its part, and its parts are walked alike."""
    if not is_by_steps(layout, steps):
        return
    each, walk = layout.shape[0] // steps, places(layout)
    count = len(walk) // steps
    assert (each * steps, count * steps) == (layout.shape[0], len(walk))
    for step in range(steps):
        for place in walk[step * count : (step + 1) * count]:
            assert step * each <= place[0] <= (step + 1) * each - layout.tile[0]


@given(layouts(), st.integers(2, 4))
@examples(quick=40, deep=1_000)
def test_a_layout_by_steps(layout: Layout, steps: int) -> None:
    """The walk of one tensor, step by step."""
    found = by_steps(steps, layout)
    assert (steps, *layout.shape) == found.shape
    assert places(found) == [(step, *place) for step in range(steps) for place in places(layout)]
    assert is_by_steps(found, steps)


@pytest.mark.parametrize(
    ("layout", "steps"),
    [
        (Layout((), (), (), (), ()), 2),
        (Layout.tiled((9, 2), (1, 2)), 2),
        (Layout((9, 2), (1, 2), (4,), (1,), (0,)), 2),
        (Layout((8, 2), (1, 2), (3,), (1,), (0,)), 2),
        (Layout.tiled((4, 6), (1, 3), (1, 0)), 2),
        # Loops that part no step from the next, and steps of another size.
        (Layout((6, 2), (1, 2), (3, 2), (1, 3), (0, 0)), 2),
        (Layout((4, 2), (3, 2), (2,), (1,), (0,)), 2),
        (Layout((8, 2), (1, 2), (2, 2), (5, 1), (0, 0)), 2),
    ],
)
def test_steps_that_are_not_one_after_the_other(layout: Layout, steps: int) -> None:
    """Sizes that steps do not divide, another dimension outside, and steps of another size."""
    assert not is_by_steps(layout, steps)


def test_up_to_the_next_step() -> None:
    """The last tile of a step may end where the next step begins."""
    assert is_by_steps(Layout((8, 2), (1, 2), (2, 2), (4, 2), (0, 0), (1, 0)), 2)
    assert is_by_steps(Layout((8, 2), (2, 2), (2, 3, 2), (4, 1, 2), (0, None, 0)), 2)


def test_layouts_of_states() -> None:
    """A state is in tiles of rows, step by step; one number is a tensor of one element."""
    states = States("s", stored(np.ones((4, 6))), 3, 2)
    behind = Behind("b", states, View.of(states.result))
    assert states.result.layout == Layout((3, 4, 6), (1, 2, 6), (3, 2), (1, 2), (0, 1))
    assert behind.result.layout == Layout((4, 6), (2, 6), (2,), (2,), (0,))
    assert (2, (4, 6)) == (states.tiles, behind.result.shape)

    number = States("n", stored(np.ones(())), 3, 2)
    assert number.result.layout == Layout((3,), (1,), (3,), (1,), (0,))
    assert number.operands[0].layout == Layout((1,), (1,), (), (), ())
    assert (1, 1) == (number.tiles, Behind("b", number, View.of(number.result)).result.layout.count)


def looped(w: np.ndarray, first: np.ndarray, across: str = "") -> Model:
    """Add a part of ``w`` to a state in each step, of the steps from the last one on.

    Args:
        w: of each step.
        first: the state before the first one.
        across: what one more kernel does across all steps: *reads*, *gives*, or *reads, gives*.
    """
    steps, *shape = w.shape
    states = States("states", stored(first), steps, 2)
    coming = Entrance("coming", stored(w), steps, 2)
    backwards = Reversed("backwards", View.of(coming.results[0]), 2)
    layout = states.result.layout
    sums = Added("sums", [View.of(states.result), View.of(backwards.results[0])], layout)
    made: View = View.of(sums.results[0])
    if across:
        of_all = Layout(w.shape, (steps, 1, shape[1]), (shape[0],), (1,), (1,))
        late = Added("late", [made, stored(w)], of_all if "reads" in across else layout)
        given = of_all if "gives" in across else layout
        late.results = (Computed("late", w.shape, FLOAT, given),)
        made = View.of(late.results[0])
    behind = Behind("behind", states, made)
    loop = Recurrence(steps, "model.py", 7, {0: states}, {0: behind})
    extra = [late] if across else []
    model = Model([coming, backwards, states, sums, *extra, behind], {}, {0: loop})
    result = View.of(behind.result)
    model.kernels.append(Store("y", Operand(result, behind.result.layout), result.shape))
    return model


@pytest.mark.parametrize("steps", [2, 3])
def test_a_loop(steps: int) -> None:
    """What a step gives is what the next one begins with; the last one comes out."""
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
    # All steps come once, the state twice: it is read, and stored.
    assert report.off_chip_traffic_bytes == w.nbytes + 2 * first.nbytes


def test_a_loop_as_reports_have_it() -> None:
    """Four tensors of three steps are given from kernel to kernel, and one state is stored."""
    program = realised("loop", looped(np.ones((3, 4, 6), FLOAT), np.ones((4, 6))), Schedule())
    said = {key: value() for key, value in program.extra.items()}
    assert [6, 1, 5, 0] == [
        said[key] for key in ("kernels", "kernel_groups", "edges_on_chip", "edges_through_memory")
    ]
    assert said["intermediate_unfused_bytes"] == 4 * 3 * 96
    # What is read backwards is kept: two buffers of six tiles of 48 bytes, and the one that comes.
    assert said["intermediate_buffer_bytes"] == 0
    assert said["largest_group_buffer_bytes"] == (2 * 6 + 1) * 48


@pytest.mark.parametrize("across", ["reads", "gives", "reads, gives"])
def test_a_kernel_that_waits_for_a_later_step(across: str) -> None:
    """It is named, with the loop and its place in the model."""
    model = looped(np.ones((3, 4, 6), FLOAT), np.ones((4, 6), FLOAT), across)
    with pytest.raises(OutOfStepError) as caught:
        check_loops(model)
    assert ("model.py", 7) == (caught.value.file, caught.value.line)
    assert caught.value.message == (
        "late (sum) is in a loop whose number of steps is 3, and does not take them one after the "
        "other: expected calls that do"
    )


def test_backwards() -> None:
    """The places of the first dimension, the last one first."""
    x = np.arange(5 * 8, dtype=FLOAT).reshape(5, 4, 2)
    model = Model()
    entrance = Entrance("entrance", stored(x), 5, 2)
    kernel = Reversed("turned", View.of(entrance.results[0]), 2)
    (result,) = kernel.results
    assert isinstance(result, Computed)
    assert result.layout == Layout((5, 4, 2), (1, 2, 2), (5, 2), (1, 2), (0, 1))
    store = Store("y", Operand(View.of(result), result.layout), x.shape)
    model.kernels.extend([entrance, kernel, store])
    with Program("backwards", mode="functional") as program:
        wire(program, model)
    program.expect(y=lambda: x[::-1])
    assert simulate(program).verified


def test_what_nobody_reads_is_dropped() -> None:
    """Kernels in front of it, too; outputs and what goes round are read."""
    layout = Layout.tiled((4, 6), (2, 6))
    x = stored(np.ones((4, 6)))
    one = Added("one", [x], layout)
    two = Added("two", [View.of(one.results[0])], layout)
    three = Added("three", [View.of(two.results[0])], layout)
    model = Model([one, two, three], {"y": View.of(one.results[0])})
    assert {x.source: 1, one.results[0]: 2, two.results[0]: 1} == model.readers()
    edges = [(each.producer.name, each.consumer.name, each.operand) for each in model.edges()]
    assert [("one", "two", 0), ("two", "three", 0)] == edges
    model.drop_unread()
    assert [one] == model.kernels
    assert ["n", "n_2", "m", "n_3"] == [model.name(wish) for wish in ("n", "n", "m", "n")]

    w = np.ones((2, 4, 6), FLOAT)
    loop = looped(w, w[0])
    loop.kernels.pop()
    loop.drop_unread()
    assert [False] == [each.is_read for each in loop.loops[0].behind.values()]
    assert len(loop.kernels) == 5

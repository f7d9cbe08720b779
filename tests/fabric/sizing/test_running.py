from __future__ import annotations

import signal
from collections.abc import Callable

import numpy as np
import pytest
from typing_extensions import override

from fabric import (
    ConfigurationError,
    OperatorError,
    Program,
    ProgramError,
    Tile,
    simulate,
)
from fabric.explore.sizing.running import Stuck, cycles_of, recorded, unbounded
from fabric.graph.loading.program_file import load_on
from fabric.timing.retiming.retimer import Retimer
from operators import (
    Consumer,
    Flatten,
    Function,
    LinearOffChipLoad,
    LinearOffChipStore,
    Map,
    Metadata,
    Partition,
    Selectors,
    SiLU,
)


def loads() -> Program:
    with Program("loads") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(np.ones((8, 64)), tile=(2, 64))())
    return program


def numbers(count: int, rows: int = 1) -> Program:
    with Program("numbers") as program:
        Consumer()(Metadata(np.arange(rows * count).reshape(rows, count) % count)())
    return program


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("build", [loads, lambda: numbers(7)])
def test_repeats_carry_n_times_the_elements(build: Callable[[], Program], count: int) -> None:
    program = build()
    once = recorded(program, unbounded(program)).record.elements

    ran = recorded(program, unbounded(program), repeats=count)

    assert (ran.record.elements == count * once).all()


def test_repeats_of_requested_cycles_continue() -> None:
    once, thrice = numbers(5), numbers(5, rows=3)

    found = recorded(once, unbounded(once), repeats=3)
    retimer = Retimer(found.record)

    assert retimer.time(found.record.depths).cycles == found.cycles == 3 * 5 + 1
    assert simulate(thrice).cycles == found.cycles
    # Nothing is visible in the cycle in which it is sent.
    assert list(retimer.visible) == [1, *range(1, 3 * 5)]


def test_repeats_take_equal_cycles_in_both_engines() -> None:
    with Program("both") as program:
        Consumer()(Selectors(np.zeros((4, 1), int), width=2)())
        LinearOffChipStore("y")(LinearOffChipLoad(np.ones((8, 64)), tile=(2, 64))())

    assert recorded(program, {}, repeats=3).cycles == cycles_of(program, {}, 3)


def test_depth_of_an_unknown_channel_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--depth"):
        recorded(loads(), {"nobody.0": 3})


def test_deadlock_of_a_recorded_run_is_explained() -> None:
    program = load_on(None, "programs/matrix_vector.py", [], {}).program

    with pytest.raises(
        Stuck,
        match=r"^matrix-vector: deadlock at cycle [\d,]+ with 2 inputs one after the other: "
        "expected it to complete with these depths$",
    ) as caught:
        recorded(program, {}, repeats=2)

    assert caught.value.ending == "deadlock"
    assert caught.value.state.waiting
    assert caught.value.explained.cycle == caught.value.state.stopped_cycle
    (loop,) = caught.value.explained.loops
    assert "pack_5 has 3 of the 16 elements that make its output 1" in loop.cause
    # Shapes say how many elements one input has.
    assert {each.expected for each in loop.channels} == {"unknown"}
    assert cycles_of(program, {}, 2) is None


@pytest.mark.parametrize("run", [recorded, cycles_of])
def test_operator_error_of_a_recorded_run_is_raised(run: Callable[..., object]) -> None:
    program = mapped(Failing())

    with pytest.raises(OperatorError, match="failing_1: ZeroDivisionError"):
        run(program, {})


def test_assumption_is_checked_for_one_input_only() -> None:
    route = np.array([[0], [1], [1], [0]])
    with Program("assumed") as program:
        rows = Flatten(0, 2)(LinearOffChipLoad(np.ones((4, 8)), tile=(1, 8))())
        even, odd = Partition(2)(rows, Flatten(0, 1)(Selectors(route, width=2)()))
        Consumer()(even.assume(3))
        Consumer()(odd)

    with pytest.raises(ProgramError, match="is 2: expected 3, as the program assumes"):
        recorded(program, {})

    assert recorded(program, {}, repeats=2).state.channels[0].taken == 8


@pytest.mark.parametrize("run", [recorded, cycles_of])
def test_interrupt_of_a_recorded_run_is_raised(run: Callable[..., object]) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(mapped(Interrupting()), {})


class Failing(SiLU):
    @override
    def apply(self, *inputs: Tile) -> Tile:
        raise ZeroDivisionError


class Interrupting(SiLU):
    @override
    def apply(self, *inputs: Tile) -> Tile:
        signal.raise_signal(signal.SIGINT)
        return super().apply(*inputs)


def mapped(function: Function) -> Program:
    with Program("mapped") as program:
        Consumer()(Map(function)(LinearOffChipLoad(np.ones((8, 64)), tile=(2, 64))()))
    return program

from __future__ import annotations

import signal

import numpy as np
import pytest
from typing_extensions import override

import fabric as fab
import operators as op
from fabric.explore.sizing.running import Stuck, recorded
from fabric.graph.loading.program_file import load_on


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
    # Shapes give the elements of one input, and this run has two.
    assert {each.expected for each in loop.channels} == {"unknown"}


def test_operator_error_of_a_recorded_run_is_raised() -> None:
    with pytest.raises(fab.OperatorError, match="failing_1: ZeroDivisionError"):
        recorded(mapped(Failing()), {})


def test_assumption_is_checked_for_one_input_only() -> None:
    route = np.array([[0], [1], [1], [0]])
    with fab.Program("assumed") as program:
        rows = op.Flatten(0, 2)(op.LinearOffChipLoad(np.ones((4, 8)), tile=(1, 8))())
        even, odd = op.Partition(2)(rows, op.Flatten(0, 1)(op.Selectors(route, width=2)()))
        op.Consumer()(even.assume(3))
        op.Consumer()(odd)

    with pytest.raises(fab.ProgramError, match="is 2: expected 3, as the program assumes"):
        recorded(program, {})

    assert recorded(program, {}, repeats=2).state.channels[0].taken == 8


def test_interrupt_of_a_recorded_run_is_raised() -> None:
    with pytest.raises(KeyboardInterrupt):
        recorded(mapped(Interrupting()), {})


class Failing(op.SiLU):
    @override
    def apply(self, *inputs: fab.Tile) -> fab.Tile:
        raise ZeroDivisionError


class Interrupting(op.SiLU):
    @override
    def apply(self, *inputs: fab.Tile) -> fab.Tile:
        signal.raise_signal(signal.SIGINT)
        return super().apply(*inputs)


def mapped(function: op.Function) -> fab.Program:
    with fab.Program("mapped") as program:
        op.Consumer()(op.Map(function)(op.LinearOffChipLoad(np.ones((8, 64)), tile=(2, 64))()))
    return program

"""Runs for sizing: what a run with several inputs moves, how runs fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fabric import ConfigurationError, Program, simulate
from fabric.sizing.running import Stuck, cycles_of, recorded, unbounded
from operators import Consumer, LinearOffChipLoad, LinearOffChipStore, Metadata, Selectors


def loads() -> Program:
    """Return a program of one load and one store."""
    with Program("loads") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(np.ones((8, 64)), tile=(2, 64))())
    return program


def numbers(count: int, rows: int = 1) -> Program:
    """Return a program that reads numbers, each at its own cycle."""
    with Program("numbers") as program:
        Consumer()(Metadata(np.arange(rows * count).reshape(rows, count) % count)())
    return program


class TestRepeats:
    """``repeats`` inputs, one after the other."""

    def test_one(self) -> None:
        """A recorded run takes what any run does."""
        program = loads()

        ran = recorded(program, {})

        assert simulate(program).cycles == ran.cycles == ran.record.cycles
        assert ran.cycles == ran.state.cycles == cycles_of(program, {})

    @pytest.mark.parametrize("count", [1, 2, 5])
    @pytest.mark.parametrize("build", [loads, lambda: numbers(7)])
    def test_elements(self, build: Callable[[], Program], count: int) -> None:
        """Each channel carries so many times the elements."""
        program = build()
        once = recorded(program, unbounded(program)).record.elements

        ran = recorded(program, unbounded(program), repeats=count)

        assert (ran.record.elements == count * once).all()

    def test_requested_cycles(self) -> None:
        """Cycles that a source asks for go on: as one source that has all the numbers."""
        once, thrice = numbers(5), numbers(5, rows=3)

        found = recorded(once, unbounded(once), repeats=3)

        assert simulate(thrice).cycles == found.cycles == 3 * 5 + 1

    def test_engines(self) -> None:
        """The compiled engine takes as long as the recorded run."""
        with Program("both") as program:
            Consumer()(Selectors(np.zeros((4, 1), int), width=2)())
            LinearOffChipStore("y")(LinearOffChipLoad(np.ones((8, 64)), tile=(2, 64))())

        assert recorded(program, {}, repeats=3).cycles == cycles_of(program, {}, 3)


class TestFailures:
    """What does not complete."""

    def test_unknown_channel(self) -> None:
        """A depth that names no channel is refused as it always is."""
        with pytest.raises(ConfigurationError, match="--depth"):
            recorded(loads(), {"nobody.0": 3})

    def test_deadlock(self) -> None:
        """A deadlock says how it ended, and has the state and the plan."""
        from fabric.loading.program_file import load_on

        program = load_on(None, "programs/breadth_first_search.py", [], {}).program

        with pytest.raises(Stuck, match="breadth-first-search: deadlock at cycle") as caught:
            recorded(program, unbounded(program), repeats=2)

        assert caught.value.ending == "deadlock"
        assert caught.value.state.waiting
        assert caught.value.plan.program is program
        assert cycles_of(program, unbounded(program), 2) is None

"""Depths that delay nothing: no stamp changes with them, and one does with one slot less."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given

from fabric import FabricError, Program
from fabric.explore.sizing.problem import Depths, Problem, variable_of
from fabric.explore.sizing.search import high_water
from fabric.timing.engine.machine_code import Counters
from fabric.timing.retiming import events as e
from fabric.timing.retiming.record import Record, RecordedChannel
from fabric.timing.retiming.retimer import Retimer
from tests.deadlock.parts import Script
from tests.deadlock.test_random import Network, networks
from tests.fabric.scripted import Stage
from tests.fabric.sizing.problems import deep_record, problem_of
from tests.profiles import examples

Stamps = tuple[list[int], list[int], list[int], list[int]]


def stamps(problem: Problem, record: Record, depths: Depths) -> Stamps | None:
    """Return every stamp of ``record`` with ``depths``; None where it does not complete."""
    retimer = Retimer(record)
    retimed = retimer.time(np.array(depths, np.int64)[variable_of(problem, record)])
    if retimed.cycles is None:
        return None
    elements = int(retimer.base[-1])
    return (
        retimer.issued[:elements].tolist(),
        retimer.visible[:elements].tolist(),
        retimer.usable[:elements].tolist(),
        retimer.clocks.tolist(),
    )


def most_at_once(issued: Counters, usable: Counters) -> int:
    """Return the most slots in use, counted one element after the other in a queue."""
    in_use: deque[int] = deque()
    most = 1
    for taken, back in zip(issued.tolist(), usable.tolist(), strict=True):
        while in_use and in_use[0] <= taken:
            in_use.popleft()
        in_use.append(back)
        most = max(most, len(in_use))
    return most


@examples(quick=50, deep=500)
@given(networks(merging=False))
def test_nothing_is_later(network: Network) -> None:
    """With these depths every stamp is that of channels without bounds; with one less, not."""
    record = deep_record(network.program)
    assume(record is not None)
    assert record is not None
    problem = problem_of(record)
    unbounded = stamps(problem, record, problem.most)

    depths = high_water(problem)

    assert unbounded is not None
    assert unbounded == stamps(problem, record, depths)
    for number, depth in enumerate(depths):
        if depth > 1:
            fewer = (*depths[:number], depth - 1, *depths[number + 1 :])
            assert unbounded != stamps(problem, record, fewer)


@examples(quick=25, deep=100)
@given(networks(merging=False))
def test_counted(network: Network) -> None:
    """A queue that is filled and emptied element by element holds as many."""
    record = deep_record(network.program)
    assume(record is not None)
    assert record is not None
    retimer = Retimer(record)
    retimer.time([10_000] * len(record.channels))
    bounds = retimer.base.tolist()

    assert tuple(
        most_at_once(retimer.issued[start:stop], retimer.usable[start:stop])
        for start, stop in itertools.pairwise(bounds)
    ) == high_water(problem_of(record))


def slow_reader(count: int, work_cycles: int) -> Program:
    """Return a source of an element a cycle and a reader that works on each."""
    with Program("slow_reader") as program:
        (stream,) = Stage(count, name="source")()
        Stage(count, outputs=0, work_cycles=(work_cycles,), name="reader")(stream)
    return program


class TestByHand:
    def test_slow_reader(self) -> None:
        """10 elements in cycles 0 to 9; the reader takes one in cycles 1, 4, 7 and so on.

        Credits are back in cycles 2, 5 and 8, so of the 10 slots 7 are in use in cycle 9.
        """
        record = deep_record(slow_reader(10, 3))
        assert record is not None

        assert (7,) == high_water(problem_of(record))

    def test_left_over(self) -> None:
        """A reader that takes one of six and ends after 20 cycles leaves five slots in use."""
        with Program("left_over") as program:
            (stream,) = Stage(6, name="source")()
            Script(("r0", "c20"), rounds=1, counts=(), name="reader")(stream)
        record = deep_record(program)
        assert record is not None

        assert (5,) == high_water(problem_of(record))

    def test_together(self) -> None:
        """Channels that share a depth have that of the fuller one, over all records."""
        with Program("pair") as program:
            for name, work_cycles in (("slow", 3), ("slower", 4)):
                (stream,) = Stage(10, name=f"{name}_source")()
                Stage(10, outputs=0, work_cycles=(work_cycles,), name=name)(stream)
        record = deep_record(program)
        assert record is not None
        longer = record.with_work([record.units.index("slow")], 8)

        assert (7, 8) == high_water(problem_of(record))
        assert (8,) == high_water(problem_of(record, together=[(0, 1)]))
        assert (9, 8) == high_water(problem_of(record, longer))
        assert (9,) == high_water(problem_of(record, longer, together=[(0, 1)]))

    def test_pinned(self) -> None:
        """A variable is not taken out of its limits."""
        record = deep_record(slow_reader(10, 3))
        assert record is not None
        problem = problem_of(record)
        (variable,) = problem.variables
        for least, most, expected in ((1, 4, 4), (8, 9, 8), (3, 3, 3)):
            bound = replace(variable, least=least, most=most)
            assert (expected,) == high_water(replace(problem, variables=(bound,)))

    def test_left_over_out_of_order(self) -> None:
        """A reader that has ended takes the second of three elements before the first.

        The first is visible in cycle 100 as it was asked to be, the second in cycle 2. The third,
        sent in cycle 10, needs a slot of its own: credits are spent in the order of elements.
        """
        channel = RecordedChannel("reader.0", "source.0 -> reader.0", 0, 1, 9, 1, 1, 3, 1)
        events = [(e.AT, 100), (e.SEND, 0), (e.SEND, 1), (e.SEND, 9), (e.FINISH, 0), (e.FINISH, 0)]
        record = Record(
            "late", ("source", "reader"), (channel,), np.array([0, 5, 6]), np.array(events), 10
        )

        assert (3,) == high_water(problem_of(record))


def test_stuck_at_the_most() -> None:
    """Where even the most does not do, it says who waits for what."""
    with Program("gathered") as program:
        first, second = Script(("s0", "s0", "s1"), rounds=1, counts=(2, 1), name="source")()
        Script(("r1", "r0", "r0"), rounds=1, counts=(), name="reader")(first, second)
    record = deep_record(program)
    assert record is not None
    problem = problem_of(record)
    bound = tuple(replace(each, most=1) for each in problem.variables)

    with pytest.raises(
        FabricError,
        match=r"^gathered: source waits for ever on \[source\.0 -> reader\.0\] with every channel "
        r"at its most: expected a most of all channels with which it completes$",
    ):
        high_water(replace(problem, variables=bound))

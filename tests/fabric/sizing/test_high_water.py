from __future__ import annotations

import numpy as np
from hypothesis import assume, given

from fabric import Program
from fabric.analysis.depths.problem import Depths, Problem, variable_of
from fabric.explore.sizing.high_water import high_water
from fabric.timing.engine import log as e
from fabric.timing.retiming.record import Record, RecordedChannel
from fabric.timing.retiming.retimer import Retimer
from tests.deadlock.test_random import Network, networks
from tests.fabric.scripted import Stage
from tests.fabric.sizing.problems import deep_record, problem_of
from tests.profiles import examples

Stamps = tuple[list[int], list[int], list[int], list[int]]


def stamps(problem: Problem, record: Record, depths: Depths) -> Stamps | None:
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


@examples(quick=25, deep=500)
@given(networks(merging=False))
def test_high_water_depths_delay_nothing_and_one_less_does(network: Network) -> None:
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


def test_high_water_of_shared_depths_is_the_fullest() -> None:
    with Program("pair") as program:
        for name, work_cycles in (("slow", 3), ("slower", 4)):
            (stream,) = Stage(10, name=f"{name}_source")()
            Stage(10, outputs=0, work_cycles=(work_cycles,), name=name)(stream)
    record = deep_record(program)
    assert record is not None
    longer = record.with_pace([record.units.index("slow")], 8)

    assert (7, 8) == high_water(problem_of(record))
    assert (8,) == high_water(problem_of(record, together=[(0, 1)]))
    assert (9, 8) == high_water(problem_of(record, longer))
    assert (9,) == high_water(problem_of(record, longer, together=[(0, 1)]))


def test_high_water_counts_credits_in_the_order_of_elements() -> None:
    # The first element is visible in cycle 100, as requested, and the second in cycle 2. The third,
    # sent in cycle 10, needs a further slot, because credits are spent in the order of elements.
    channel = RecordedChannel(0, "source.0 -> reader.0", "reader.0", 0, 1, "tile", 9, 1, 1, 3, 1)
    events = [(e.AT, 100), (e.SEND, 0), (e.SEND, 1), (e.SEND, 9), (e.FINISH, 0), (e.FINISH, 0)]
    record = Record(
        "late", ("source", "reader"), (channel,), np.array([0, 5, 6]), np.array(events), 10
    )

    assert (3,) == high_water(problem_of(record))

from __future__ import annotations

from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.machine.machine import cycles_of, state_of
from tests.deadlock.cases import CASES


def test_state_before_a_run_stays_as_it_was() -> None:
    run = Execution(CASES["pack_rows"].build(), Settings(mode="timing"))
    before, again = state_of(run.machine), state_of(run.machine)
    run.execute()
    after = state_of(run.machine)

    assert before == again
    assert hash(before) == hash(again)
    assert before != after
    assert (0, 0, 0) == (before.cycles, before.elements, before.waiting)
    assert cycles_of(run.machine) == after.cycles
    assert run.machine.elements == after.elements

from __future__ import annotations

import pytest

from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.machine.machine import cycles_of, state_of
from tests.deadlock.cases import CASES


def execution(name: str) -> Execution:
    return Execution(CASES[name].build(), Settings(mode="timing"))


def test_state_before_a_run_stays_as_it_was() -> None:
    run = execution("pack_rows")
    before, again = state_of(run.machine), state_of(run.machine)
    run.execute()
    after = state_of(run.machine)

    assert before == again
    assert hash(before) == hash(again)
    assert before != after
    assert (0, 0, 0) == (before.cycles, before.elements, before.waiting)
    assert cycles_of(run.machine) == after.cycles
    assert (run.machine.elements, run.machine.waiting) == (after.elements, after.waiting)


def test_state_is_read_only() -> None:
    run = execution("pack_rows")
    run.execute()
    state = state_of(run.machine)
    waits = [unit.wait for unit in state.units if unit.wait is not None]

    for part in (state, state.units[0], state.channels[0], state.on_chip, waits[0]):
        for name in getattr(part, "_fields", ("cycles", "units", "channels")):
            with pytest.raises(AttributeError):
                setattr(part, name, None)

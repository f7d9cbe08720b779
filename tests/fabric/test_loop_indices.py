"""Compiled loops do not read or write outside of their arrays, which machine code does not check.

The loops run in Python on arrays that refuse indices below 0 or beyond the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabric import open_run, simulate
from fabric.analysis.trace.analysis.moment import state_in
from fabric.graph.hardware.memory_models import BankedDescription
from fabric.timing.memories.banked import BankedMemory
from fabric.timing.retiming.retimer import Retimer
from tests.compiled.both import run
from tests.compiled.odd_programs import STAY
from tests.fabric.loops_in_python import Guarded, in_python
from tests.fabric.retiming.networks import Network, networks
from tests.fabric.trace.recording import program as recorded_program
from tests.fabric.trace.recording import record
from tests.memories.counting import loads
from tests.memories.driven import answers, clients_of
from tests.memories.random_memories import Script, descriptions, scripts
from tests.profiles import examples, spread
from tests.programs.loading import program

FEW = examples(quick=7, deep=60)


@pytest.fixture(autouse=True)
def _in_python() -> Iterator[None]:
    with in_python():
        yield


def test_guarded_array_refuses_other_indices() -> None:
    array = Guarded(np.zeros(3, np.int64))
    for index in (-1, 3):
        with pytest.raises(AssertionError):
            array[index]
        with pytest.raises(AssertionError):
            array[index] = 0
    array[2] = (1 << 64) + 5
    assert array[2] == 5


@pytest.mark.parametrize(
    "build", spread([lambda: program("top2_moe", tokens=4, experts=4), *STAY], 3)
)
def test_operator_loop_stays_within_its_arrays(build: Callable[[], Any], tmp_path: Path) -> None:
    assert run(build, "compiled", tmp_path, livelock_cycles=10_000).compiled


@FEW
@given(descriptions(), scripts())
def test_banked_loop_stays_within_its_arrays(hbm: BankedDescription, script: Script) -> None:
    units = clients_of(script)
    memory = BankedMemory(hbm, units[::2], units[1::2])
    answers(memory, units, script, [1 << 40])
    memory.counters()


@pytest.mark.deep
def test_banked_run_stays_within_its_arrays() -> None:
    report = simulate(loads(BankedDescription(channels=1, requests_per_bundle=16), 4))
    assert report.hbm is not None


@FEW
@given(networks(), st.data())
def test_retiming_loops_stay_within_their_arrays(network: Network, data: st.DataObject) -> None:
    found, _ = network.recorded([1 << 20] * len(network.options))
    assume(found is not None)
    assert found is not None
    retimer = Retimer(found)
    depths = data.draw(st.tuples(*[st.integers(1, 4)] * len(found.channels)))
    retimer.blamed(retimer.time(depths, data.draw(st.integers(0, 200))))


@pytest.mark.parametrize("name", ["simplified_moe", "merge_in_a_loop", "leaking_slots"])
def test_log_loops_stay_within_their_arrays(name: str, tmp_path: Path) -> None:
    _, trace = record(recorded_program(name), tmp_path)
    with open_run(recorded_program(name)) as held:
        for cycle in (trace.cycles // 3, trace.cycles // 2):
            assert held.until(cycle=cycle).state.channels
            assert state_in(trace, cycle).channels

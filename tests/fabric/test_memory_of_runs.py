"""A process that runs many programs returns the memory of each run."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from fabric import simulate
from fabric.analysis.trace.selection import TraceOptions
from fabric.graph.wiring.collector import only_young_garbage
from fabric.timing.machine.machine import Machine
from tests.fabric.trace.chains import chain
from tests.profiles import spread


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Machine]]:
    built: list[weakref.ref[Machine]] = []
    build = Machine.__init__

    def remember(machine: Machine, *arguments: object, **named: object) -> None:
        built.append(weakref.ref(machine))
        build(machine, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Machine, "__init__", remember)
    return built


@pytest.mark.parametrize("trace", spread([None, TraceOptions()], 1))
def test_machine_is_young_garbage(
    machines: list[weakref.ref[Machine]], tmp_path: Path, trace: TraceOptions | None
) -> None:
    # The first run imports modules, which stay.
    simulate(chain(("s0",), ("r0",), elements=5), log_dir=tmp_path, trace=trace)
    machines.clear()
    gc.collect()
    for _ in range(20):
        simulate(chain(("s0",), ("r0", "s0"), elements=5), log_dir=tmp_path, trace=trace)
        gc.collect(1)

    assert 20 == len(machines)
    assert [None] * 20 == [machine() for machine in machines]
    assert 0 == gc.get_freeze_count()


def test_runs_side_by_side_restore_the_collector() -> None:
    before = gc.get_threshold()
    first, second = only_young_garbage(), only_young_garbage()
    seen = []
    for step in (first.__enter__, second.__enter__):
        step()
        seen.append(gc.get_threshold())
    for run in (first, second):
        seen.append(gc.get_threshold())
        run.__exit__(None, None, None)

    assert [(*before[:2], 1 << 30)] * 4 == seen
    assert before == gc.get_threshold()

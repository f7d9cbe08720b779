from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
import pytest

from fabric.explore.sizing.running import cycles_of, recorded
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import load_program
from fabric.timing.retiming.retimer import Retimer
from tests.benchmarks.processes import QWEN, ROOT

pytestmark = pytest.mark.benchmark

_TIMES: Final = 50
_RUNS: Final = 3


def test_layer_is_timed_again_in_a_twentieth_of_its_run(benchmark: Any) -> None:
    given = QWEN if benchmark.enabled else ("model=tiny", "batch=8")
    program = load_program(ROOT / "programs" / "moe.py", list(given), Hardware()).program
    record = recorded(program, {}).record
    retimer = Retimer(record)
    rng = np.random.default_rng(0)
    vectors = rng.integers(1, 5, (_TIMES, len(record.channels)))
    retimer.time(record.depths)
    cycles_of(program, {})
    begun = time.process_time()
    for depths in vectors:
        retimer.time(depths)
    again = (time.process_time() - begun) / _TIMES
    begun = time.process_time()
    for _ in range(_RUNS):
        cycles_of(program, {})
    run = (time.process_time() - begun) / _RUNS
    events = len(record.events) / again
    benchmark.extra_info["ratio"], benchmark.extra_info["events_per_second"] = run / again, events
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"\ntimed again: a run takes {run / again:,.0f} times as long; {events:,.0f} events/s")
    if benchmark.enabled:
        assert run >= 20 * again

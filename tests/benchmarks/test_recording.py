from __future__ import annotations

import time
from statistics import median
from typing import Any, Final, NamedTuple

import pytest

from fabric import Program
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import load_program
from fabric.graph.wiring.collector import only_young_garbage
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs.execution import Execution
from fabric.runs.options import Settings
from fabric.timing.retiming.record_making import Recording
from tests.benchmarks.processes import QWEN, ROOT, taken_by

pytestmark = pytest.mark.benchmark

_TURNS: Final = 9
_TRANSFERS: Final = 10_000_000
_ROOM_BYTES: Final = 2_000_000_000


class _Taken(NamedTuple):
    run: float
    record: float


@only_young_garbage()
def _taken(program: Program, *, recorded: bool) -> _Taken:
    begun = time.process_time()
    plan = elaborate(program)
    keepers = (Recording(plan),) if recorded else ()
    execution = Execution(program, Settings(mode="timing"), plan, keepers=keepers)
    assert execution.execute() == "completed"
    done = time.process_time()
    for each in keepers:
        assert each.record(execution.machine).cycles == execution.state.cycles
    return _Taken(done - begun, time.process_time() - done)


def test_recorded_layer_takes_less_than_15_percent_longer(benchmark: Any) -> None:
    given = QWEN if benchmark.enabled else ("model=tiny", "batch=8")
    program = load_program(ROOT / "programs" / "moe.py", list(given), Hardware()).program
    for recorded in (False, True):
        _taken(program, recorded=recorded)
    turns = [
        (_taken(program, recorded=False), _taken(program, recorded=True))
        for _ in range(_TURNS if benchmark.enabled else 1)
    ]
    runs = median(watched.run / plain.run for plain, watched in turns)
    ratio = median(sum(watched) / plain.run for plain, watched in turns)
    benchmark.extra_info["ratio"], benchmark.extra_info["ratio_of_runs"] = ratio, runs
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"\nrecorded: {ratio:.3f} times the run, {runs:.3f} without the making of the record")
    if benchmark.enabled:
        assert ratio <= 1.15


_LINE: Final = """
import sys
import numpy as np
from fabric import Program, StreamType, Tile, TileType
from fabric.explore.sizing.running import recorded
from operators import Consumer, Map, Repeat, SiLU
from tests.operators.driving import Emit
from tests.resident import peak_bytes

with Program("line", mode="timing", channel_depth=16) as program:
    kind = np.dtype(np.float32)
    stream = Emit(StreamType((1,), TileType(1, 1, kind)), [(Tile(1, 1, kind), 0)])()
    stream = Repeat(800)(Repeat(int(sys.argv[1]))(stream))
    for _ in range(15):
        stream = Map(SiLU(), flops_per_cycle=1)(stream)
    Consumer()(stream)
print(recorded(program, {}).record.elements.sum(), peak_bytes())
"""
"""A line of operators; many elements go through it."""


def test_record_of_ten_million_transfers_takes_less_than_2_gb(benchmark: Any) -> None:
    taken = taken_by("-c", _LINE, "800" if benchmark.enabled else "2")
    transfers, peak_bytes = map(int, taken.printed.split())
    benchmark.extra_info["peak_bytes"] = peak_bytes
    benchmark.pedantic(lambda: None, rounds=1)
    print(f"\n{transfers:,} transfers: {peak_bytes / 1e9:.2f} GB, {taken.seconds:.1f} s")
    if benchmark.enabled:
        assert transfers >= _TRANSFERS
    assert peak_bytes < _ROOM_BYTES

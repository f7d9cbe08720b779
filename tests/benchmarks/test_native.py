from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from fabric import Program
from fabric.explore.sizing.running import recorded
from fabric.graph.hardware.description import Hardware
from fabric.graph.loading.program_file import load_program
from fabric.timing.engine import log as e
from fabric.timing.retiming.record import Record
from fabric.timing.retiming.retimer import Retimer
from tests.benchmarks.yardsticks import seconds_alone

pytestmark = pytest.mark.benchmark

PROGRAM: Final = Path(__file__).parents[2] / "programs" / "attention.py"
SOURCE: Final = Path(__file__).with_name("native.cpp")
ROUNDS: Final = 5


def _numbers(record: Record) -> bytes:
    codes, amounts = record.events.T
    channels = [
        (
            channel.producer,
            channel.consumer,
            channel.depth,
            channel.forward_cycles,
            channel.backward_cycles,
            channel.elements + channel.unused,
        )
        for channel in record.channels
    ]
    parts = (
        (len(record.units), len(record.channels), len(record.events)),
        record.first,
        np.array(channels).ravel(),
        np.stack((codes >> e.SHIFT, codes & e.KIND, amounts), axis=1).ravel(),
    )
    return np.concatenate(parts).astype(np.int64).tobytes()


def _native(record: Record, folder: Path, rounds: int) -> tuple[float, list[int]]:
    binary = folder / "native"
    command = ["g++", "-O3", "-march=native", "-std=c++17", "-Wall", "-Werror"]
    subprocess.run([*command, "-o", binary, SOURCE], check=True)
    said = subprocess.run(
        [binary, str(rounds)], input=_numbers(record), capture_output=True, check=True
    ).stdout.split()
    return float(said[0]), [int(each) for each in said[1:]]


def _attention(requests: int) -> Program:
    parameters = [f"requests={requests}", "strategy=dynamic"]
    return load_program(str(PROGRAM), parameters, Hardware()).program


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_attention_takes_at_most_one_and_a_half_times_native_code(
    benchmark: Any, tmp_path: Path
) -> None:
    # The native model receives results of a run: the operations of each operator and the latencies
    # of the memory.
    requests = 64 if benchmark.enabled else 4
    rounds = ROUNDS if benchmark.enabled else 1
    record = recorded(_attention(requests), {}).record
    retimer = Retimer(record)
    retimer.time(record.depths)
    times = []
    for _ in range(rounds):
        start = time.process_time()
        retimer.time(record.depths)
        times.append(time.process_time() - start)
    native, ended = _native(record, tmp_path, rounds)
    seconds_alone(_attention(requests), "compiled")
    alone = min(seconds_alone(_attention(requests), "compiled") for _ in range(rounds))

    again, whole = min(times) / native, alone / native
    benchmark.extra_info["again_times_native"] = again
    benchmark.extra_info["run_times_native"] = whole
    benchmark.pedantic(lambda: None, rounds=1)
    print(
        f"\nattention, {requests} requests, {len(record.events):,} events: timed again "
        f"{again:.2f} times as long as by a native model, the run alone {whole:.0f} times"
    )
    assert ended == retimer.clocks[record.first[1:] - 1].tolist()
    if benchmark.enabled:
        assert again <= 1.5

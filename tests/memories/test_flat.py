from __future__ import annotations

import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.description import FlatDescription
from fabric.messages.errors import Refusal
from fabric.timing.memories.flat import MOST_REQUESTS, REQUESTS_PER_CALL, FlatMemory
from tests.memories.driven import answers, clients_of
from tests.profiles import examples

# The bursts of each client: cycles after the last answer, and requests.
Script = list[list[tuple[int, int]]]


def _stepped(  # noqa: C901 - the whole rule on one page
    hbm: FlatDescription, script: Script
) -> list[list[int]]:
    offset = 0
    free = [0] * hbm.channels
    queues: list[deque[tuple[int, int]]] = [deque() for _ in range(hbm.channels)]
    bundles: list[deque[tuple[int, int]]] = [deque() for _ in script]
    awaited = [0] * len(script)
    latest = [0] * len(script)
    todo = [deque(bursts) for bursts in script]
    seen: list[list[int]] = [[] for _ in script]

    def submit(client: int, clock: int) -> None:
        if not todo[client]:
            return
        gap, requests = todo[client].popleft()
        start = clock + gap
        awaited[client] = requests
        latest[client] = start
        for number in range(0, requests, hbm.requests_per_bundle):
            bundle = min(hbm.requests_per_bundle, requests - number)
            index = number // hbm.requests_per_bundle
            bundles[client].append((max(start + index, start + 1), bundle))

    for client in range(len(script)):
        submit(client, 0)
    cycle = 0
    while any(awaited):
        for queue in queues:
            if queue and queue[0][0] <= cycle:
                _, client = queue.popleft()
                awaited[client] -= 1
                latest[client] = max(latest[client], cycle + 1)
                if not awaited[client]:
                    seen[client].append(latest[client])
                    submit(client, latest[client])
        gathered = []
        for client, pending in enumerate(bundles):
            if pending and pending[0][0] <= cycle:
                gathered += [client] * pending.popleft()[1]
        for index, client in enumerate(gathered):
            channel = (offset + index * (index + 1) // 2) % hbm.channels
            start = max(free[channel], cycle + 1)
            free[channel] = start + hbm.initiation_interval_cycles
            queues[channel].append((start + hbm.startup_cycles + hbm.latency_cycles, client))
        offset = (offset + len(gathered) * (len(gathered) + 1) // 2) % hbm.channels
        cycle += 1
    return seen


def _burst(requests: int) -> Burst:
    return Burst(0, requests, 64, 64, write=False)


def _advanced(
    hbm: FlatDescription,
    script: Script,
    horizons: list[int],
    requests_per_call: int = REQUESTS_PER_CALL,
) -> list[list[int]]:
    units = clients_of(script)
    memory = FlatMemory(hbm, units, [])
    memory.requests_per_call = requests_per_call
    bursts = [[(gap, _burst(requests)) for gap, requests in asked] for asked in script]
    return answers(memory, units, bursts, horizons)


@st.composite
def _descriptions(draw: st.DrawFn) -> FlatDescription:
    return FlatDescription(
        channels=draw(st.integers(1, 9)),
        latency_cycles=draw(st.integers(0, 4)),
        initiation_interval_cycles=draw(st.integers(1, 4)),
        startup_cycles=draw(st.integers(0, 15)),
        requests_per_bundle=draw(st.integers(1, 5)),
    )


_scripts = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 40)), max_size=4), min_size=1, max_size=6
)


class TestLoop:
    @examples(quick=37, deep=300)
    @given(
        _descriptions(),
        _scripts,
        st.lists(st.integers(1, 50), min_size=1, max_size=5),
        st.sampled_from([REQUESTS_PER_CALL, 1, 2, 7, 30]),
    )
    def test_matches_a_model_that_steps_through_cycles(
        self, hbm: FlatDescription, script: Script, horizons: list[int], requests_per_call: int
    ) -> None:
        assert _stepped(hbm, script) == _advanced(hbm, script, horizons, requests_per_call)

    def test_more_than_a_day_of_requests_is_refused(self) -> None:
        (unit,) = units = clients_of([()])
        memory = FlatMemory(FlatDescription(), units, [])
        with pytest.raises(Refusal, match="17,280,000,000,001 requests to the HBM, 1 day of"):
            memory.submit(unit, _burst(MOST_REQUESTS + 1))
        assert not memory.pending
        memory.submit(unit, _burst(MOST_REQUESTS))
        assert (memory.pending, memory.served(unit)) == (True, 0)


@pytest.mark.parametrize(
    ("memory", "rows"),
    [
        ("flat.FlatMemory(d.FlatDescription(), units, [])", 10**13),
        ("banked.BankedMemory(d.BankedDescription(channels=1), units, [])", 1 << 25),
    ],
)
def test_signal_during_a_burst_is_answered(memory: str, rows: int) -> None:
    script = (
        "import signal\n"
        "import fabric.extend as d\n"
        "from fabric.timing.memories import banked, flat\n"
        "from tests.memories.driven import Burst, clients_of\n"
        "units = clients_of([()])\n"
        f"memory = {memory}\n"
        f"memory.submit(units[0], Burst(0, {rows}, 64, 1 << 12, write=False))\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "memory.advance(10)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "try:\n"
        "    memory.advance(1 << 50)\n"
        "except KeyboardInterrupt:\n"
        "    print('answered')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
    )
    assert "answered\n" == done.stdout

"""The flat memory: its compiled loop against a model of every response queue, cycle by cycle."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric import Program, simulate
from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.description import FlatDescription
from fabric.messages.telling.errors import Refusal
from fabric.messages.telling.place import Place
from fabric.timing.engine.unit import MemoryUnit
from fabric.timing.memories.flat import MOST_REQUESTS, REQUESTS_PER_CALL, FlatMemory
from operators import Consumer, LinearOffChipLoad, Tensor
from tests.memories.driven import answers, clients_of
from tests.profiles import examples

Script = list[list[tuple[int, int]]]
"""For each client its bursts: cycles between the last answer and the submission, requests."""


def _stepped(  # noqa: C901 - the whole rule on one page
    hbm: FlatDescription, script: Script
) -> list[list[int]]:
    """Return when each client sees each of its bursts complete."""
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
    @examples(quick=75, deep=300)
    @given(
        _descriptions(),
        _scripts,
        st.lists(st.integers(1, 50), min_size=1, max_size=5),
        st.sampled_from([REQUESTS_PER_CALL, 1, 2, 7, 30]),
    )
    def test_matches_a_model_that_steps_through_cycles(
        self, hbm: FlatDescription, script: Script, horizons: list[int], requests_per_call: int
    ) -> None:
        """Every burst of every client completes in the same cycle, wherever the loop stops."""
        assert _stepped(hbm, script) == _advanced(hbm, script, horizons, requests_per_call)

    @pytest.mark.parametrize("requests", [1, 4, 5, 8, 9])
    def test_silence(self, requests: int) -> None:
        """Alone, a burst is seen complete in the cycle after those that the memory is silent."""
        hbm = FlatDescription(
            channels=64,
            latency_cycles=3,
            initiation_interval_cycles=1,
            startup_cycles=5,
            requests_per_bundle=4,
        )
        (unit,) = units = clients_of([()])
        memory = FlatMemory(hbm, units, [])
        unit.now = 10
        memory.submit(unit, _burst(requests))
        # Bundles from cycle 11 on, each on its way a cycle later, and an answer after 8.
        seen = 10 + -(-requests // 4) + 1 + 8 + 1
        assert memory.silent_until == seen - 1
        # What is left to hand over says the same; of a burst that is on its way all is known.
        assert memory.advance(11) == ([] if requests > 4 else units)
        assert memory.silent_until == (seen - 1 if requests > 4 else 1 << 62)
        assert requests <= 4 or memory.advance(seen) == units
        assert (memory.pending, unit.now, memory.silent_until) == (False, seen, 1 << 62)

    def test_most_requests(self) -> None:
        """A day of simulation is taken, a request more is not."""
        (unit,) = units = clients_of([()])
        memory = FlatMemory(FlatDescription(), units, [])
        with pytest.raises(Refusal, match="17,280,000,000,001 requests to the HBM, 1 day of"):
            memory.submit(unit, _burst(MOST_REQUESTS + 1))
        assert (memory.pending, memory.requests) == (False, 0)
        memory.submit(unit, _burst(MOST_REQUESTS))
        assert (memory.pending, memory.requests, memory.served(unit)) == (True, MOST_REQUESTS, 0)

    def test_signals_are_answered(self) -> None:
        """In the middle of a burst that takes hours."""
        script = (
            "import signal\n"
            "import fabric.timing.memories.flat\n"
            "from tests.memories.test_flat import FlatDescription, _advanced\n"
            "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
            "try:\n"
            "    _advanced(FlatDescription(), [[(0, 10**13)]], [1 << 50])\n"
            "except KeyboardInterrupt:\n"
            "    print('answered')\n"
        )
        root = Path(__file__).parents[2]
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            timeout=60,
        )
        assert "answered\n" == done.stdout

    def test_what_takes_more_than_a_day(self) -> None:
        """A tile of so many requests is refused with the arithmetic, not begun."""
        with Program("huge") as program:
            Consumer()(LinearOffChipLoad(Tensor((2**50, 8)), (2**50, 8), name="load")())
        error = simulate(program).error
        assert error is not None
        assert error["message"] == (
            "load: a tile of 1,125,899,906,842,624 rows of 16 bytes takes 1,125,899,906,842,624 "
            "requests to the HBM, 65 days of simulation at 200,000,000 requests a second: "
            "expected at most 17,280,000,000,000, at cycle 0, element 0"
        )
        assert 2**50 / 200_000_000 / 86_400 // 1 == 65
        assert MOST_REQUESTS == 200_000_000 * 86_400

    def test_one_tile(self) -> None:
        """An uncontended tile of Q bundles is there Q + 18 cycles after it was asked for."""
        assert [[5 + 64 + 18]] == _advanced(FlatDescription(), [[(5, 64)]], [10_000])

    def test_what_was_moved_so_far(self) -> None:
        """A burst that is under way has moved what was taken, not all that was asked for."""
        unit = MemoryUnit("load", 0, Place("program.py", 1), bytes_per_cycle=64)
        memory = FlatMemory(FlatDescription(), [unit], [])
        memory.submit(unit, _burst(64))
        moved = []
        for horizon in (0, 10, 200):
            memory.advance(horizon)
            moved.append(memory.bytes_moved)
        assert [0, 10 * 64, 64 * 64] == moved

    def test_requests_of_a_tile(self) -> None:
        """A row is never merged with the next: 48 columns of 2 bytes cost two requests a row."""
        assert 20 == Burst(0, 10, 96, 96, write=False).requests(64)

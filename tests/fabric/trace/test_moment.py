from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from msgspec import structs
from typing_extensions import override

from fabric import Hop, Program, Stream, StreamType
from fabric.analysis.trace.analysis.moment import state_in
from fabric.extend import BoolType, Ports, Wiring
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs.execution import Execution
from fabric.timing.machine.machine import state_of
from fabric.timing.state.run_state import Ending, RunState
from tests.bases import Source
from tests.deadlock.cases import CASES
from tests.deadlock.parts import Script
from tests.deadlock.test_random import Network, networks
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import program, record
from tests.fabric.trace.replay import Observed, replay
from tests.profiles import examples, spread

PROGRAMS = (
    "simplified_moe", "swiglu", "moe dynamic", "attention",
    "pack_rows", "ring_of_7", "two_buffers", "lost_buffer", "leaking_slots", "merge_in_a_loop",
)  # fmt: skip


@pytest.mark.parametrize("name", spread(PROGRAMS, 1))
def test_state_of_a_program_is_that_of_the_replay(name: str, tmp_path: Path) -> None:
    wired = program(name)
    source = random.Random(name)
    hops = {
        edge.key: Hop(source.randint(1, 3), source.randint(1, 3)) for edge in elaborate(wired).edges
    }
    depths = CASES[name].given if name in CASES else {}
    _check(wired, tmp_path, source, depths, hops=hops, cycles=6)


@pytest.mark.deep
@examples(quick=5, deep=12)
@given(networks(merging=True))
def test_state_of_a_random_network_is_that_of_the_replay(network: Network) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _check(network.program, Path(folder), random.Random(1), network.depths, cycles=3)


def test_on_chip_holders_are_known_from_the_last_cycle(tmp_path: Path) -> None:
    _, trace = record(program("two_buffers"), tmp_path)
    before, last, after = (state_in(trace, trace.cycles + each).on_chip for each in (-1, 0, 1))
    assert before.held is None
    assert last.held
    assert last.held == after.held == state_in(trace).on_chip.held


def test_state_with_elements_left_over_is_that_of_the_replay(tmp_path: Path) -> None:
    wired = chain(("s0", "c3"), ("r0", "s0", "s0", "s0"), ("r0",), elements=5)
    _check(wired, tmp_path, random.Random(1), {}, cycles=6)


@dataclass(frozen=True)
class BareStops(Source):
    count: int

    @override
    def infer(self, wiring: Wiring, *inputs: Stream) -> tuple[StreamType, ...]:
        return (StreamType((self.count, 0), BoolType()),)

    @override
    async def run(self, ports: Ports) -> None:
        for _ in range(self.count):
            await ports.sink.send_bare(1, 0)


def test_state_with_bare_stops_left_over_is_that_of_the_replay(tmp_path: Path) -> None:
    with Program("bare") as wired:
        stream = BareStops(4, name="sends")()
        Script(("r0",), rounds=1, counts=(), name="reads")(stream)
    _check(wired, tmp_path, random.Random(1), {}, cycles=6)


def _check(
    wired: Program,
    folder: Path,
    source: random.Random,
    depths: Mapping[str, int],
    cycles: int,
    hops: Mapping[str, Hop] | None = None,
) -> None:
    observed = Observed()
    states: list[RunState] = []
    execute = Execution.execute

    def executed(run: Execution) -> Ending:
        ending = execute(run)
        states.append(state_of(run.machine))
        observed.finish()
        return ending

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Execution, "execute", executed)
        _, trace = record(wired, folder, depths=depths, observers=[observed], hops=hops)
    (end,) = states
    after = trace.cycles + 5
    chosen = {0, trace.cycles, after, *source.choices(range(after), k=cycles)}
    waited_for = {number for unit in end.units if unit.wait for number in unit.wait.channels}
    whole = replace(
        end,
        # The trace does not record the end of a stream for which no unit waits.
        channels=tuple(
            each if each.number in waited_for else structs.replace(each, closed_cycle=None)
            for each in end.channels
        ),
    )
    request_bytes = wired.hardware.hbm.request_bytes
    for cycle, state in replay(observed, whole, request_bytes, chosen):
        _compare(state, state_in(trace, cycle), cycle)
    _compare(whole, state_in(trace), after)
    assert state_in(trace) == state_in(trace, after)


def _compare(expected: RunState, found: RunState, cycle: int) -> None:
    for one, other in zip(
        (*expected.units, *expected.channels), (*found.units, *found.channels), strict=True
    ):
        assert one == other, f"cycle {cycle}: {one} {other}"
    assert expected == found

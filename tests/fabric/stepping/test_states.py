from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from msgspec import structs

from fabric import Hop, Program, open_run
from fabric.analysis.trace.analysis.moment import state_in
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.causes import Operation
from fabric.timing.state.run_state import ChannelState, RunState, UnitState, WaitState
from tests.deadlock.cases import CASES
from tests.deadlock.test_random import Network, networks
from tests.fabric.trace.recording import program, record
from tests.outcomes import without_host
from tests.profiles import examples, spread
from tests.schedules import SCHEDULES, schedule

PROGRAMS = (
    "simplified_moe", "swiglu", "moe dynamic", "attention",
    "pack_rows", "ring_of_7", "two_buffers", "lost_buffer", "leaking_slots", "merge_in_a_loop",
)  # fmt: skip


@pytest.mark.parametrize("name", spread(PROGRAMS, 1))
def test_states_of_programs_equal_the_trace(name: str, tmp_path: Path) -> None:
    wired = program(name)
    source = random.Random(name)
    hops = {
        edge.key: Hop(source.randint(1, 3), source.randint(1, 3)) for edge in elaborate(wired).edges
    }
    depths = CASES[name].given if name in CASES else {}
    check(wired, tmp_path, source, depths, hops, cycles=30)


@examples(quick=3, deep=30)
@given(networks(merging=True))
def test_states_of_random_networks_equal_the_trace(network: Network) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(network.program, Path(folder), random.Random(1), network.depths, {}, cycles=10)


@pytest.mark.parametrize(
    "name", spread(["simplified_moe", "merge_in_a_loop", "attention", "pack_rows"], 2)
)
def test_states_are_equal_under_every_schedule(name: str) -> None:
    wired = program(name)
    seen = set()
    for order in SCHEDULES:
        with schedule(order), open_run(wired) as run:
            states = [run.step(7).state for _ in range(20)]
            seen.add((tuple(states), run.finish().cycles, run.state))
    assert len(seen) == 1


@examples(quick=5, deep=20)
@given(networks(merging=True))
def test_states_of_networks_are_equal_by_steps_and_cycles(network: Network) -> None:
    wired, depths = network.program, network.depths
    with open_run(wired, depths=depths) as steps, open_run(wired, depths=depths) as cycles:
        for _ in range(25):
            steps.step()
            cycles.until(cycle=steps.cycle)
            assert steps.state == cycles.state


def check(
    wired: Program,
    folder: Path,
    source: random.Random,
    depths: Mapping[str, int],
    hops: Mapping[str, Hop],
    cycles: int,
) -> None:
    """Compare the trace of ``wired`` with a held run in several cycles, up to beyond the end."""
    report, trace = record(wired, folder, depths=depths, hops=hops)
    last = trace.cycles
    chosen = sorted(
        {0, min(1, last), max(0, last - 1), last, *source.choices(range(last + 1), k=cycles)}
    )
    states = {}
    with open_run(wired, depths=depths, hops=hops) as run:
        for cycle in chosen:
            states[cycle] = run.until(cycle=cycle).state
            assert (run.cycle, run.over) == (cycle, cycle == last)
        run.until(cycle=last + 1_000)
        assert run.cycle == last
        again = run.finish()
        assert run.state == states[last]
    assert without_host(again) == without_host(report)
    machine = run._stepper.machine
    # Units that wait for the ends of several streams see these ends only when the last stream ends.
    draining = {unit.index for unit in machine.units if unit.drains and not unit.finished}
    for cycle, state in states.items():
        compare(state, state_in(trace, None if cycle == last else cycle), cycle, draining)


def compare(found: RunState, expected: RunState, cycle: int, draining: set[int]) -> None:
    for unit, other in zip(found.units, expected.units, strict=True):
        if unit.number not in draining or unit.wait is None:
            assert _same_unit(unit, found, other) == other, f"cycle {cycle}"
    for channel, wanted in zip(found.channels, expected.channels, strict=True):
        if channel.consumer in draining:
            channel = structs.replace(channel, empty_cycles=wanted.empty_cycles)  # noqa: PLW2901
        assert _recorded(channel, wanted) == wanted, f"cycle {cycle}"
    assert found.on_chip == expected.on_chip or expected.on_chip.held is not None
    assert found.on_chip.requests == expected.on_chip.requests
    assert (found.program, found.cycles, found.hbm_bytes_moved, found.hbm) == (
        expected.program, expected.cycles, expected.hbm_bytes_moved, expected.hbm,
    )  # fmt: skip


def _same_unit(unit: UnitState, state: RunState, recorded: UnitState) -> UnitState:
    wait, other = unit.wait, recorded.wait
    if wait is not None and other is not None:
        unit = structs.replace(unit, wait=_same_wait(wait, other, unit, state))
    # The trace has the FLOPs of a waiting unit earlier than the held run.
    assert unit.flops == recorded.flops or unit.flops is None
    return structs.replace(unit, flops=recorded.flops)


def _same_wait(wait: WaitState, recorded: WaitState, unit: UnitState, state: RunState) -> WaitState:
    """Return ``recorded`` if both are waits for the first element of several streams."""
    several = wait.any_of or recorded.any_of or recorded.operation is Operation.REACH
    if not several or wait.since_cycle != recorded.since_cycle:
        return wait
    if wait.operation is Operation.CAPACITY:
        return recorded
    assert wait.operation is Operation.RECEIVE
    # The trace names the channel that was first, or at the end of the run the empty ones.
    assert set(recorded.channels) <= set(wait.channels)
    assert all(state.channels[each].consumer == unit.number for each in wait.channels)
    return recorded


def _recorded(channel: ChannelState, recorded: ChannelState) -> ChannelState:
    """Return ``channel`` without its stream's last cycle if the trace does not have it."""
    if recorded.closed_cycle is None:
        return structs.replace(channel, closed_cycle=None)
    return channel

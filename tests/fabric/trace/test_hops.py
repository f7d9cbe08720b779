"""Traces of channels that are longer than a cycle: as true as of any other."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fabric import Hop, Program, simulate
from fabric.analysis.trace.analysis.moment import analysed, state_in
from fabric.analysis.trace.analysis.roots import HOP, Root
from fabric.analysis.trace.analysis.stalls import Accounts
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.reading.queries import QUERIES
from fabric.graph.wiring.elaborate import elaborate
from fabric.runs.execution import Execution
from fabric.timing.machine.machine import state_of
from fabric.timing.state.run_state import RunState
from tests.deadlock.cases import CASES
from tests.fabric.scripted import Charge, Relay, Ticks
from tests.fabric.trace.recording import PROGRAMS, program, record
from tests.profiles import spread


def _hops(wired: Program) -> dict[str, Hop]:
    """Return hops of 1 to 5 cycles each way for all channels of a program."""
    source = random.Random(wired.name)
    return {
        edge.key: Hop(source.randint(1, 5), source.randint(1, 5)) for edge in elaborate(wired).edges
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_channel_rules(name: str, tmp_path: Path) -> None:
    """Elements and credits take the cycles of their channel."""
    wired = program(name)
    hops = _hops(wired)
    _, trace = record(wired, tmp_path, hops=hops)
    rows = trace.rows(
        "SELECT reader, element, depth, reserved_cycle, sent_cycle, visible_cycle, "
        "seen_cycle, taken_cycle, send_wait_cycles, receive_wait_cycles "
        "FROM transfers JOIN channels USING (channel) ORDER BY channel, element"
    )
    taken = {(reader, element): row[5] for reader, element, *row in rows}

    for reader, element, depth, *stamps, send_wait, receive_wait in rows:
        reserved, sent, visible, seen, dequeued = stamps
        credit = 0
        if element >= depth:
            credit = taken[reader, element - depth] + hops[reader].backward_cycles
        assert max(reserved - send_wait, credit) == reserved <= sent
        assert sent + hops[reader].forward_cycles <= visible <= seen <= dequeued
        assert max(seen - receive_wait, visible) == seen


@pytest.mark.parametrize("name", spread([*PROGRAMS, "pack_rows", "ring_of_7"], 3))
def test_state(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace has the engine's state and counters, and the ready query says the same."""
    states: list[RunState] = []
    execute = Execution.execute

    def executed(run: Execution) -> Any:
        ending = execute(run)
        states.append(state_of(run.machine))
        return ending

    monkeypatch.setattr(Execution, "execute", executed)
    wired = program(name)
    report, trace = record(wired, tmp_path, hops=_hops(wired))
    (state,) = states
    # When a stream was ended that nobody waits for is not recorded.
    found = [each._replace(closed_cycle=None) for each in state_in(trace).channels]
    assert [each._replace(closed_cycle=None) for each in state.channels] == found

    counted = {each.name: each for each in report.channels_counters}
    for channel, depth, empty, full, credit in trace.rows(QUERIES["slowest-channels"].sql):
        counters = counted[channel]
        assert (depth, empty) == (counters.depth, counters.empty_cycles)
        assert (full, credit) == (counters.full_cycles, counters.credit_cycles)


def test_roots(tmp_path: Path) -> None:
    """What an element and a credit are on their way is charged to the hops, all the rest is not."""
    with Program("line", channel_depth=1) as wired:
        Charge(name="sink")(Relay(name="relay")(Ticks(10, name="source")()))
    hops = {"relay.0": Hop(3, 4), "sink.0": Hop(5, 6)}
    report, trace = record(wired, tmp_path, hops=hops)
    accounts = Accounts(trace)

    # The slow channel passes an element in 11 cycles; all wait for its way, there or back.
    assert 3 + 5 + 9 * 11 + 1 == report.cycles
    stalled = sum(unit.stalled for unit in accounts.units)
    assert stalled == sum(accounts.charged.values())
    worked = Counter({root: n for root, n in accounts.charged.items() if root != HOP})
    assert {root.kind for root in worked} <= {"unit"}
    assert accounts.charged[HOP] > 0.9 * stalled
    path = accounts.on_path()
    assert 3 + 5 + 9 * 11 == path[HOP]
    assert 1 == path[Root("unit", 2)]


@pytest.mark.parametrize("name", ["pack_rows", "packed_experts"])
def test_remedy(name: str, tmp_path: Path) -> None:
    """What is tried has the hops of the run that stopped, and so do the last events."""
    wired = program(name)
    hops = _hops(wired)
    report, trace = record(wired, tmp_path, hops=hops, depths=CASES[name].given)
    assert report.deadlock is not None
    remedy = report.deadlock["remedy"]
    depths = {each["option"]: each["after"] for each in remedy["depths"]}
    cured = simulate(program(name), depths={**CASES[name].given, **depths}, hops=hops)
    assert ("completed", remedy["cycles"]) == (cured.status, cured.cycles)
    assert cured.cycles != simulate(program(name), depths={**CASES[name].given, **depths}).cycles

    (trace.folder.parent / "deadlock.json").unlink()
    alone = analysed(Trace(trace.folder))
    assert alone is not None
    assert report.deadlock["last_events"] == alone.as_json()["last_events"]

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fabric import Hop, Program, simulate
from fabric.analysis.trace.analysis.moment import analysed
from fabric.analysis.trace.opened import Trace
from fabric.graph.wiring.elaborate import elaborate
from tests.deadlock.cases import CASES
from tests.fabric.trace.recording import PROGRAMS, program, record
from tests.profiles import spread


def _hops(wired: Program) -> dict[str, Hop]:
    source = random.Random(wired.name)
    return {
        edge.key: Hop(source.randint(1, 5), source.randint(1, 5)) for edge in elaborate(wired).edges
    }


@pytest.mark.parametrize("name", spread(PROGRAMS, 2))
def test_stamps_with_hops_obey_the_channel_rules(name: str, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ["pack_rows", "packed_experts"])
def test_remedy_of_a_trace_with_hops_is_that_of_the_run(name: str, tmp_path: Path) -> None:
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

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fabric import Hop, Program, simulate
from fabric.analysis.trace.analysis.moment import deadlock_of
from fabric.analysis.trace.opened import Trace
from fabric.graph.wiring.elaborate import elaborate
from tests.deadlock.cases import CASES
from tests.fabric.trace.recording import program, record


def _hops(wired: Program) -> dict[str, Hop]:
    source = random.Random(wired.name)
    return {
        edge.key: Hop(source.randint(1, 5), source.randint(1, 5)) for edge in elaborate(wired).edges
    }


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
    alone = deadlock_of(Trace(trace.folder))
    assert alone is not None
    assert report.deadlock["last_events"] == alone.as_json()["last_events"]

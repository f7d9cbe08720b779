from __future__ import annotations

import random
from collections import Counter

import pytest

from fabric import Report
from fabric.analysis.trace.analysis.accounts import Accounts
from fabric.analysis.trace.analysis.critical import critical_path
from fabric.analysis.trace.analysis.roots import HOP, NETWORK, UNTRACED, Root, Roots
from fabric.analysis.trace.analysis.timeline import Interval, Timelines
from fabric.analysis.trace.opened import Trace
from fabric.messages.causes import SHOWN, Cause
from tests.deadlock.cases import CASES
from tests.fabric.trace.recording import PROGRAMS, pairs, program, record
from tests.profiles import of_profile, spread

STOPPING = [name for name, case in CASES.items() if case.code != "FAB-L001"][::4]


@pytest.fixture(scope="module", params=spread([*PROGRAMS, *STOPPING], 4))
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Report, Trace]:
    name = request.param
    depths = CASES[name].given if name in CASES else {}
    return record(program(name), tmp_path_factory.mktemp("run"), depths=depths)


def test_columns_of_units_are_their_counters(run: tuple[Report, Trace]) -> None:
    report, trace = run
    accounts = Accounts(trace)

    for unit, counters in zip(accounts.units, report.units, strict=True):
        assert (
            counters.busy_cycles,
            counters.empty_cycles,
            counters.full_cycles + counters.credit_cycles,
            counters.hbm_cycles,
            counters.capacity_cycles,
            counters.idle_cycles,
        ) == tuple(getattr(unit, cause.column) for cause in SHOWN)
        assert report.cycles == unit.busy_cycles + unit.stalled_cycles + unit.idle_cycles


def test_critical_path_covers_all_cycles(run: tuple[Report, Trace]) -> None:
    report, trace = run
    path = Accounts(trace).path

    cycles = report.cycles or 0
    assert cycles == sum(step.end - step.start for step in path)
    assert all(before.end == after.start for before, after in pairs(path))
    assert not path or (0, cycles) == (path[0].start, path[-1].end)


def drawn_timelines(seed: int) -> Timelines:
    drawn = random.Random(seed)
    waits: list[list[Interval]] = [[] for _ in range(4)]
    final = [0] * 4
    order = drawn.sample(range(4), 4)
    for place, unit in enumerate(order):
        cycle = 0
        spans = waits[unit]
        for _ in range(drawn.randint(0, 4)):
            start = cycle + drawn.randint(0, 3)
            cycle = start + drawn.randint(1, 6)
            peer = drawn.choice([-1, *order[:place]])
            if peer < 0:
                cause = drawn.choice([Cause.HBM, Cause.CAPACITY])
                spans.append(Interval(start, cycle, cause, -1, -1, cycle, False, 0, False))
                continue
            links = drawn.choice([0, drawn.randint(0, cycle - start)])
            until = drawn.randint(max(0, start - 2), cycle - links)
            late = drawn.random() < 0.5
            until = min(until, final[peer])
            spans.append(Interval(start, cycle, Cause.EMPTY, 3, peer, until, late, links, False))
        final[unit] = cycle + drawn.randint(0, 8)
    first = drawn.choice([0, drawn.randint(0, 5)])
    traced = [drawn.random() < 0.8 for _ in range(4)]
    last = first + drawn.randint(1, 40)
    return Timelines([*"abcd"], first, last, waits, final, [None] * 4, traced)


def _of_work(lines: Timelines, unit: int) -> Root:
    return Root("unit", unit) if lines.traced[unit] else UNTRACED


def _way(wait: Interval, cycle: int) -> Root:
    if cycle >= wait.end - wait.links:
        return NETWORK
    return Root("unit", wait.peer) if wait.late else HOP


@pytest.mark.parametrize("seed", range(of_profile(12, 400)))
def test_drawn_waits_have_the_root_of_each_cycle(seed: int) -> None:
    lines = drawn_timelines(seed)

    def root(unit: int, cycle: int) -> Root:
        wait = next((each for each in lines.waits[unit] if each.start <= cycle < each.end), None)
        if wait is None:
            return _of_work(lines, unit)
        if wait.peer < 0:
            return Root(wait.cause, unit)
        return root(wait.peer, cycle) if cycle < wait.until else _way(wait, cycle)

    roots = Roots(lines)
    for unit, waits in enumerate(lines.waits):
        waited = [cycle for wait in waits for cycle in range(wait.start, wait.end)]
        if lines.traced[unit]:
            inside = [cycle for cycle in waited if lines.first <= cycle < lines.last]
            assert Counter(root(unit, cycle) for cycle in inside) == roots.charged(unit)


@pytest.mark.parametrize("seed", range(of_profile(12, 400)))
def test_critical_path_of_drawn_waits_follows_their_ends(seed: int) -> None:
    lines = drawn_timelines(seed)
    unit = lines.final.index(max(lines.final))
    end = lines.final[unit]
    found = {cycle: Root(Cause.HBM, unit) for cycle in range(end, lines.last)}
    cycle = min(end, lines.last)
    while cycle > lines.first:
        wait = next((each for each in lines.waits[unit] if each.start < cycle <= each.end), None)
        if wait is not None and wait.peer >= 0:
            found |= {each: _way(wait, each) for each in range(wait.until, cycle)}
            unit, cycle = wait.peer, min(wait.until, cycle)
            continue
        cycle -= 1
        found[cycle] = _of_work(lines, unit) if wait is None else Root(wait.cause, unit)

    steps = critical_path(lines)
    assert all(before.end == after.start for before, after in pairs(steps))
    assert all(step.start < step.end for step in steps)
    walked = {each: step.root for step in steps for each in range(step.start, step.end)}
    inside = range(lines.first, lines.last)
    assert {each: walked[each] for each in inside} == {each: found[each] for each in inside}

"""Every cycle of every unit is accounted for once, and charged to what it really waited for."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

# Any: timelines that have a first and a last cycle.
from typing import Any

import pytest

from fabric import Program, Report, simulate
from fabric.analysis.trace.analysis.critical import Step, critical_path, path_note, phases
from fabric.analysis.trace.analysis.roots import HOP, NETWORK, OPEN, UNTRACED, Root, Roots
from fabric.analysis.trace.analysis.stalls import Accounts
from fabric.analysis.trace.analysis.timeline import Interval, Timelines, timelines
from fabric.analysis.trace.analysis.what_if import Gain
from fabric.analysis.trace.opened import Trace
from fabric.analysis.trace.selection import TraceOptions
from fabric.messages.telling.causes import Cause
from tests.deadlock.cases import CASES
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import PROGRAMS, pairs, program, record
from tests.profiles import of_profile, spread

STOPPING = [name for name, case in CASES.items() if case.code != "FAB-L001"]


@pytest.fixture(scope="module", params=spread([*PROGRAMS, *STOPPING], 7))
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Report, Trace]:
    """Run each program once."""
    name = request.param
    depths = CASES[name].given if name in CASES else {}
    return record(program(name), tmp_path_factory.mktemp("run"), depths=depths)


class TestEveryProgram:
    def test_columns(self, run: tuple[Report, Trace]) -> None:
        """Columns equal the counters that the units kept, and sum to the run's cycles."""
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
            ) == (unit.busy, unit.empty, unit.full, unit.hbm, unit.capacity, unit.idle)
            assert report.cycles == unit.busy + unit.stalled + unit.idle

    def test_roots(self, run: tuple[Report, Trace]) -> None:
        """The roots are those that a walk from unit to unit finds in every single cycle."""
        _, trace = run
        lines = timelines(trace)
        roots = Roots(lines)
        starts = [[wait.start for wait in waits] for waits in lines.waits]
        assert starts == [sorted(each) for each in starts]

        for unit in range(len(lines.names)):
            walked: Counter[Root] = Counter()
            for wait in lines.waits[unit]:
                cycles = range(wait.start, wait.end)
                walked.update(_walk(lines, starts, unit, cycle) for cycle in cycles)
            assert walked == roots.charged(unit)

    def test_critical_path(self, run: tuple[Report, Trace]) -> None:
        """The path covers all cycles, without gaps and overlaps."""
        report, trace = run
        path = Accounts(trace).path

        cycles = report.cycles or 0
        assert cycles == sum(step.end - step.start for step in path)
        assert all(before.end == after.start for before, after in pairs(path))
        assert not path or (0, cycles) == (path[0].start, path[-1].end)

    def test_operations(self, run: tuple[Report, Trace]) -> None:
        """Work between operations, before any wait, is what the units were charged."""
        report, trace = run

        found = dict(
            trace.rows(
                "SELECT unit, sum(work_cycles)::BIGINT + any_value(s.cycle) - max(o.cycle) "
                "FROM operations o JOIN states s USING (unit) GROUP BY unit"
            )
        )
        expected = {
            unit: counters.busy_cycles
            for unit, counters in enumerate(report.units)
            if unit in found
        }
        assert expected == found
        assert [(0,)] == trace.rows("SELECT count(*) FROM operations WHERE work_cycles < 0")


def _walk(lines: Timelines, starts: list[list[int]], unit: int, cycle: int) -> Root:
    """Follow the waits of one cycle to their end, one by one; open waits may come back or stop."""
    passed: set[int] = set()
    while unit not in passed:
        passed.add(unit)
        at = bisect_right(starts[unit], cycle) - 1
        wait = lines.waits[unit][at] if at >= 0 else None
        if wait is None or cycle >= wait.end:
            return Root("unit", unit) if cycle < lines.final[unit] else OPEN
        if wait.peer < 0:
            return Root(wait.cause, unit)
        if cycle >= wait.until:
            late = wait.cause == "empty" and wait.end > wait.until + 1
            return Root("unit", wait.peer) if late else HOP
        unit = wait.peer
    return OPEN


def drawn_timelines(seed: int) -> Timelines:
    """Draw a window of units that wait for those before them, for links or for memories."""
    drawn = random.Random(seed)
    waits: list[list[Interval]] = [[] for _ in range(4)]
    final = [0] * 4
    order = drawn.sample(range(4), 4)
    for place, unit in enumerate(order):
        cycle = 0
        its = waits[unit]
        for _ in range(drawn.randint(0, 4)):
            start = cycle + drawn.randint(0, 3)
            cycle = start + drawn.randint(1, 6)
            peer = drawn.choice([-1, *order[:place]])
            if peer < 0:
                cause = drawn.choice([Cause.HBM, Cause.CAPACITY])
                its.append(Interval(start, cycle, cause, -1, -1, cycle, False, 0, False))
                continue
            links = drawn.choice([0, drawn.randint(0, cycle - start)])
            until = drawn.randint(max(0, start - 2), cycle - links)
            late = drawn.random() < 0.5
            until = min(until, final[peer])
            its.append(Interval(start, cycle, Cause.EMPTY, 3, peer, until, late, links, False))
        final[unit] = cycle + drawn.randint(0, 8)
    first = drawn.choice([0, drawn.randint(0, 5)])
    traced = [drawn.random() < 0.8 for _ in range(4)]
    last = first + drawn.randint(1, 40)
    return Timelines([*"abcd"], first, last, waits, final, [None] * 4, traced)


def _of_work(lines: Timelines, unit: int) -> Root:
    return Root("unit", unit) if lines.traced[unit] else UNTRACED


def _way(wait: Interval, cycle: int) -> Root:
    """Return what a cycle is charged to after that in which the wait was ended."""
    if cycle >= wait.end - wait.links:
        return NETWORK
    return Root("unit", wait.peer) if wait.late else HOP


@pytest.mark.parametrize("seed", range(of_profile(12, 400)))
def test_each_cycle_of_a_wait_has_a_root(seed: int) -> None:
    """Up to its end a wait has the root of its peer, then the way here has it, then the links."""
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
def test_the_path_goes_back_to_what_ended_a_wait(seed: int) -> None:
    """From the unit that ends last, the first of several, cycle by cycle; the HBM stops last."""
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


class TestKnownCases:
    def test_slow_last_unit(self, tmp_path: Path) -> None:
        """What a slow reader holds up is charged to it, also two units further up."""
        accounts = _accounts(chain(("s0",), ("r0", "s0"), ("r0", "c10"), elements=50), tmp_path)
        _, middle, last = accounts.units

        assert 500 == last.busy
        assert Root("unit", 2) == accounts.by_unit[0].most_common(1)[0][0]
        assert Root("unit", 2) == accounts.by_unit[1].most_common(1)[0][0]
        assert middle.full > 400
        none, half = (
            simulate(chain(("s0",), ("r0", "s0"), ("r0", work), elements=50)).cycles
            for work in ("c0", "c5")
        )
        assert accounts.gains is not None
        assert ("unit_2", none, half, False) == accounts.gains[0][1:5]
        assert accounts.verdict() == (
            f"Bound by unit_2 (chains.py:17): {none} cycles instead of 502 if it took no time, "
            f"{half} if half as long."
        )

    def test_two_slow_units(self, tmp_path: Path) -> None:
        """Of two units that work as long each, none bounds the run, whomever others wait for."""
        steps = ("s0",), ("r0", "c10", "s0"), ("r0", "c10")
        accounts = _accounts(chain(*steps, elements=50), tmp_path)
        quicker = [
            simulate(chain(*steps[:at], tuple(s.replace("c10", "c0") for s in steps[at]),
                           *steps[at + 1 :], elements=50)).cycles
            for at in (1, 2)
        ]  # fmt: skip

        assert accounts.gains is not None
        assert Counter(quicker) == Counter(gain.cycles for gain in accounts.gains)
        assert accounts.verdict().startswith("Nothing alone bounds it, not even unit_")

    def test_slow_first_unit(self, tmp_path: Path) -> None:
        """What a slow producer starves is charged to it; the way of an element to the hops."""
        accounts = _accounts(chain(("c10", "s0"), ("r0", "s0"), ("r0",), elements=50), tmp_path)

        assert 500 == accounts.units[0].busy
        # It sends in cycles 10, 20, ... 500; each element is seen one cycle later, the end at once.
        assert {Root("unit", 0): 451, HOP: 50} == accounts.by_unit[1]
        assert 501 == accounts.units[1].empty

    def test_off_chip(self, tmp_path: Path) -> None:
        """A program that only loads is bound by the HBM, and takes no time without it."""
        accounts = _accounts(program("swiglu"), tmp_path)

        assert accounts.verdict().startswith("Bound by the HBM: ")

    def test_part_of_a_run(self, tmp_path: Path) -> None:
        """What was not traced whole cannot be timed again: its path is all there is to say."""
        options = TraceOptions(window=(0, 100))
        accounts = Accounts(record(program("swiglu"), tmp_path, options)[1])

        assert accounts.gains is None
        assert accounts.verdict().startswith("Most of the critical path: the HBM, ")


class TestVerdicts:
    """Sentences about accounts that are put together by hand."""

    def test_gains(self, tmp_path: Path) -> None:
        """Who gains a tenth bounds a run; the next best is named, and nobody after it."""
        accounts = _accounts(chain(("s0",), ("r0",), elements=5), tmp_path)
        hbm, family = (
            Gain("memory", "the HBM", 900, 950, False),
            Gain("family", "x_0..1", 950, 1_000, True, "/a/y.py", 7),
        )
        links = Gain("links", "the links of the network", 1, 600, True)
        depth = Gain("depth", "channel depth", 800, None, False)
        vars(accounts)["cycles"] = 1_000
        for gains, verdict in (
            (
                (hbm,),
                "Bound by the HBM: 900 cycles instead of 1,000 if it took no time, 950 if half as "
                "long.",
            ),
            (
                (hbm._replace(cycles=901), family),
                "Nothing alone bounds it, not even the HBM: 901 cycles instead of 1,000 if it took "
                "no time, 950 if half as long. Next x_0..1 (y.py:7): about 950 cycles if it took "
                "no time, 1,000 if half as long.",
            ),
            (
                (links, depth, hbm),
                "Bound by the links of the network: about 1 cycle instead of 1,000 if they were "
                "unlimited, 600 if twice as wide. Next channel depth: 800 cycles if it were "
                "unlimited.",
            ),
            (
                (),
                "Nothing alone bounds it: no memory, unit or channel by itself makes it shorter.",
            ),
        ):
            vars(accounts)["gains"] = gains
            assert verdict == accounts.verdict()
        vars(accounts)["cycles"] = 0
        assert "The run took no cycles." == accounts.verdict()

    def test_stopped(self, tmp_path: Path) -> None:
        """Who still waits, since when, and how much of the traced cycles that was."""
        accounts = _accounts(chain(("s0",), ("r0", "s0"), ("r0",), elements=5), tmp_path)
        first, last = (
            Interval(start, 1_010, Cause.EMPTY, 0, 1, start, False, 0, True)
            for start in (1_004, 1_007)
        )
        for waits, status, since, said in (
            ([[first], [last], []], "killed", 1_000,
             ". 2 of 3 units were waiting when it stopped, the first since cycle 1,004, the last "
             "since cycle 1,007: 30.0 % of all units' cycles."),
            ([[], [first], []], "deadlock", 1_000,
             ". 1 of 3 units wait for ever, since cycle 1,004: 20.0 % of all units' cycles."),
            ([[last], [first], []], "livelock", 1_005,
             ". 2 of 3 units were waiting when it stopped, the first since cycle 1,004, the last "
             "since cycle 1,007: 53.3 % of all units' cycles."),
            ([[], [first._replace(open=False)], []], "error", 1_000, "."),
        ):  # fmt: skip
            lines = replace(accounts.timelines, first=since, last=1_010, waits=waits)
            vars(accounts).update(timelines=lines, status=status, cycles=1_010 - since)
            assert f"Not completed ({status}), so nothing bounds it{said}" == accounts.verdict()


def _accounts(wired: Program, folder: Path) -> Accounts:
    _, trace = record(wired, folder)
    assert isinstance(trace, Trace)
    return Accounts(trace)


@pytest.mark.parametrize(
    ("window", "path", "expected"),
    [
        ((10, 30), "10-15:b 15-16:c 16-30:a", "10-14:b:1.0 14-16:c:0.5 16-30:a:1.0"),
        ((0, 20), "0-15:b 15-20:a", "0-16:b:0.9375 16-20:a:1.0"),
        ((0, 20), "0-15:a 15-20:b", "0-14:a:1.0 14-20:b:0.833"),
        ((0, 3), "0-1:a 1-3:a", "0-3:a:1.0"), ((5, 7), "5-6:b 6-7:a", "5-6:b:1.0 6-7:a:1.0"),
        # Edges are at 0, 2, 5, 7, 10, 12, 15, 17, 20, 22 and 25.
        ((0, 25), "0-3:a 3-4:b 4-5:c 5-7:a 7-25:b", "0-2:a:1.0 2-5:c:0.333 5-7:a:1.0 7-25:b:1.0"),
        ((0, 10), "0-10:c", "0-10:c:1.0"),
    ],
)  # fmt: skip
def test_phases(window: tuple[int, int], path: str, expected: str) -> None:
    """What most of each tenth went through, of as much the last root; neighbours are one."""
    roots = {name: Root("unit", number) for number, name in enumerate("abc")}
    steps = []
    for word in path.split():
        cycles, _, name = word.partition(":")
        start, end = map(int, cycles.split("-"))
        steps.append(Step(start, end, roots[name]))
    lines: Any = SimpleNamespace(first=window[0], last=window[1])
    names = {root: name for name, root in roots.items()}
    found = [
        f"{start}-{end}:{names[root]}:{round(share, 4 if share > 0.9 else 3)}"
        for start, end, root, share in phases(lines, steps)
    ]
    assert expected == " ".join(found)


@pytest.mark.parametrize("status", ["completed", "deadlock", "error", "killed", "aborted", ""])
def test_note_of_the_path(status: str) -> None:
    """Only a run that completed is told whole."""
    stopped = "of what happened until the run stopped"
    assert ("" if status == "completed" else stopped) == path_note(status)

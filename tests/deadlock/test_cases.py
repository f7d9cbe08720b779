"""Programs that get stuck in known ways: golden reports, and remedies that work."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
import pytest

from fabric import Report, simulate
from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.deadlock.text import LINES, report_lines
from tests.deadlock.cases import CASES
from tests.outcomes import outcome_under_every_schedule
from tests.profiles import spread

LIVELOCK_CYCLES = 10_000
# A case for each code, and for each way in which a report shortens a list.
GOLDEN = (
    *("pack_rows", "loop_of_40", "three_rings", "sums_without_a_first"),
    *("ended_behind_a_chain", "lost_buffer", "all_together", "round_and_round"),
)


def run(name: str, depths: dict[str, int] | None = None, **wired: int) -> Report:
    case = CASES[name]
    return simulate(
        case.build(**wired), depths=case.given | (depths or {}), livelock_cycles=LIVELOCK_CYCLES
    )


@cache
def stuck(name: str) -> DeadlockReport:
    return explained(run(name))


def explained(report: Report) -> DeadlockReport:
    found = msgspec.convert(report.deadlock, DeadlockReport, strict=True)
    assert report.deadlock == found.as_json()
    return found


@pytest.mark.parametrize("name", CASES)
class TestCase:
    def test_report_fits_on_a_screen(self, name: str) -> None:
        lines = report_lines(stuck(name))

        assert "\n".join(lines).isascii()
        assert len(lines) <= LINES

    def test_verdict_and_remedy_are_those_of_the_case(self, name: str) -> None:
        case = CASES[name]
        found = stuck(name)

        depths = {depth.option: depth.after for depth in found.remedy.depths} or None
        capacity = found.remedy.capacity
        capacity_bytes = None if capacity is None else capacity.after_bytes
        loops = tuple(len(loop.units) for loop in found.loops)
        assert (case.code, case.depths, case.loops) == (found.code, depths, loops)
        assert case.capacity_bytes == capacity_bytes
        assert ({case.begun} - {0}) == {front.count for front in found.remedy.initial}
        helped = bool(depths or capacity or case.begun)
        assert helped == found.remedy.irreducible == (found.remedy.cycles is not None)

    def test_remedy_completes_and_one_less_does_not(self, name: str) -> None:
        remedy = stuck(name).remedy
        depths = {depth.option: depth.after for depth in remedy.depths}
        wired = {}
        if remedy.capacity is not None:
            wired["capacity_bytes"] = remedy.capacity.after_bytes
        if remedy.initial:
            (wired["begun"],) = {front.count for front in remedy.initial}
        if not depths and not wired:
            assert remedy.why_not.startswith(("no depth helps", "no depth was tried"))
            return
        completed = run(name, depths, **wired)

        assert ("completed", remedy.cycles) == (completed.status, completed.cycles)
        for depth in remedy.depths:
            less = explained(run(name, depths | {depth.option: depth.after - 1}, **wired))
            assert depth.rejected_cycle == less.cycle
        begun = [("begun", front) for front in remedy.initial]
        for parameter, rejected in (("capacity_bytes", remedy.capacity), *begun):
            if rejected is not None:
                fewer = wired | {parameter: wired[parameter] - 1}
                assert rejected.rejected_cycle == explained(run(name, depths, **fewer)).cycle


@pytest.mark.parametrize("name", GOLDEN)
def test_report_of_a_case_equals_its_golden_text(
    name: str, golden: Callable[[str, str], None]
) -> None:
    found = stuck(name)
    golden(f"{name}.txt", "\n".join([*report_lines(found), "", found.summary, ""]))


def test_report_in_72_columns_equals_its_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("all_together_72.txt", "\n".join([*report_lines(stuck("all_together"), 72), ""]))


@pytest.mark.parametrize("name", spread(CASES, 1))
def test_report_is_equal_under_every_schedule(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    outcome_under_every_schedule(
        case.build, tmp_path, depths=case.given, livelock_cycles=LIVELOCK_CYCLES
    )

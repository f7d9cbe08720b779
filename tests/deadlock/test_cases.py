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
from tests.profiles import spread
from tests.telling import told_under_every_schedule

LIVELOCK_CYCLES = 10_000


def run(name: str, depths: dict[str, int] | None = None, **wired: int) -> Report:
    """Run a case, with parameters of its own, with the depths it is given and ``depths``."""
    case = CASES[name]
    return simulate(
        case.build(**wired), depths=case.given | (depths or {}), livelock_cycles=LIVELOCK_CYCLES
    )


@cache
def stuck(name: str) -> DeadlockReport:
    """Return the deadlock of a case as it stands."""
    return explained(run(name))


def explained(report: Report) -> DeadlockReport:
    """Return the deadlock of a report; its object has exactly the documented fields."""
    found = msgspec.convert(report.deadlock, DeadlockReport, strict=True)
    assert report.deadlock == found.as_json()
    return found


@pytest.mark.parametrize("name", CASES)
class TestCase:
    def test_golden(self, name: str, golden: Callable[[str, str], None]) -> None:
        """The text is the golden one: at most 40 lines of ASCII, and the short form."""
        found = stuck(name)
        lines = report_lines(found)
        text = "\n".join([*lines, "", found.summary, ""])

        assert text.isascii()
        assert len(lines) <= LINES
        golden(f"{name}.txt", text)

    def test_known(self, name: str) -> None:
        """The class, the sizes of the loops, and the depths are those that the case names."""
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

    def test_remedy(self, name: str) -> None:
        """With the changes it completes, in the cycles stated; with one less it does not."""
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


@pytest.mark.parametrize("name", spread(CASES, 4))
def test_schedules(name: str, tmp_path: Path) -> None:
    """Report, text and log are the same in whatever order the operators run."""
    case = CASES[name]
    told_under_every_schedule(
        case.build, tmp_path, depths=case.given, livelock_cycles=LIVELOCK_CYCLES
    )


def test_enough_cases() -> None:
    """There are at least 25 of them, of every class."""
    assert len(CASES) >= 25
    assert {*(f"FAB-D00{number}" for number in (1, 2, 3, 5, 6)), "FAB-L001"} == {
        case.code for case in CASES.values()
    }

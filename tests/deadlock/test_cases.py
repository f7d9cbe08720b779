"""Programs that get stuck in known ways: golden reports, and remedies that work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from fabric import Report, simulate
from fabric.deadlock.document import DeadlockReport
from fabric.deadlock.text import LINES, report_lines
from tests.deadlock.cases import CASES, two_buffers
from tests.telling import told_under_every_schedule

LIVELOCK_CYCLES = 10_000


def run(name: str, depths: dict[str, int] | None = None) -> Report:
    """Run a case with the depths it is given and ``depths``."""
    case = CASES[name]
    return simulate(
        case.build(), depths=case.given | (depths or {}), livelock_cycles=LIVELOCK_CYCLES
    )


def explained(report: Report) -> DeadlockReport:
    """Return the deadlock of a report; its object has exactly the documented fields."""
    found = msgspec.convert(report.deadlock, DeadlockReport, strict=True)
    assert report.deadlock == found.as_json()
    return found


@pytest.mark.parametrize("name", CASES)
class TestCase:
    def test_golden(self, name: str, golden: Callable[[str, str], None]) -> None:
        """The text is the golden one: at most 40 lines of ASCII, and the short form."""
        found = explained(run(name))
        lines = report_lines(found)
        text = "\n".join([*lines, "", found.summary, ""])

        assert text.isascii()
        assert len(lines) <= LINES
        golden(f"{name}.txt", text)

    def test_known(self, name: str) -> None:
        """The class, the sizes of the loops, and the depths are those that the case names."""
        case = CASES[name]
        found = explained(run(name))

        depths = {depth.option: depth.after for depth in found.remedy.depths} or None
        capacity = found.remedy.capacity
        capacity_bytes = None if capacity is None else capacity.after_bytes
        loops = tuple(len(loop.units) for loop in found.loops)
        assert (case.code, case.depths, case.loops) == (found.code, depths, loops)
        assert case.capacity_bytes == capacity_bytes
        assert bool(depths or capacity) == found.remedy.irreducible

    def test_remedy(self, name: str) -> None:
        """With the depths it completes, in the cycles stated; with one slot less it does not."""
        remedy = explained(run(name)).remedy
        depths = {depth.option: depth.after for depth in remedy.depths}
        if remedy.capacity is None and not depths:
            assert remedy.why_not.startswith(("no depth helps", "no depth was tried"))
            return
        if remedy.capacity is not None:
            assert name == two_buffers.__name__
            return
        completed = run(name, depths)

        assert ("completed", remedy.cycles) == (completed.status, completed.cycles)
        for depth in remedy.depths:
            less = explained(run(name, depths | {depth.option: depth.after - 1}))
            assert depth.rejected_cycle == less.cycle

    def test_schedules(self, name: str, tmp_path: Path) -> None:
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


def test_capacity() -> None:
    """On a chip as large as the remedy says it completes, with a byte less it does not."""
    found = explained(run("two_buffers")).remedy
    assert found.capacity is not None
    completed = simulate(two_buffers(found.capacity.after_bytes))
    less = explained(simulate(two_buffers(found.capacity.after_bytes - 1)))

    assert ("completed", found.cycles) == (completed.status, completed.cycles)
    assert found.capacity.rejected_cycle == less.cycle

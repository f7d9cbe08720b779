"""The report a person reads, from a report made by hand: every outcome, wide and narrow."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from fabric.analysis.deadlock.document import BlockedUnit, DeadlockReport, Loop, Remedy
from fabric.messages.terminal.tables import print_sheet
from fabric.runs.counters import UnitCounters
from fabric.runs.printing import report_sheet
from fabric.runs.report import Failure, Report


def unit(name: str, line: int, elements: int, **cycles: int) -> UnitCounters:
    """Return the counters of a unit in a run of 2,000 cycles; idle where nothing else is said."""
    causes = ("busy", "empty", "full", "credit", "hbm", "capacity")
    spent = {f"{cause}_cycles": cycles.get(cause, 0) for cause in causes}
    return UnitCounters(
        name=name,
        operator=name,
        kind="compute",
        file="programs/small.py",
        line=line,
        elements=elements,
        **spent,
        idle_cycles=2000 - sum(spent.values()),
        flops=0,
        flops_per_cycle=0,
    )


COMPLETED = Report(
    name="small",
    program="programs/small.py",
    mode="functional",
    status="completed",
    verified=True,
    cycles=2000,
    off_chip_traffic_bytes=1_234_567,
    hbm_bytes_moved=1_300_000,
    on_chip_requirement_bytes=65_536,
    flops=9_000_000,
    allocated_flops_per_cycle=8192,
    compute_utilization=0.54931,
    off_chip_bandwidth_utilization=0.6,
    operators=4,
    channels=3,
    elements=60_000,
    wall_seconds=1.5,
    log_dir="logs/small-1",
    extra={"flops_artifact": 9_000_001},
    units=(
        unit("load", 11, 0, hbm=1500, full=100),
        unit("matmul", 12, 20_000, busy=1800, empty=200),
        unit("silu", 13, 20_000, busy=900, empty=1000),
        unit("store", 14, 20_000),
    ),
)


def text(report: Report, *, width: int = 100) -> str:
    """Return what is printed where output is piped, without the spaces that pad tables."""
    written = io.StringIO()
    print_sheet(report_sheet(report), Console(file=written, width=width, highlight=False))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def ending(report: Report, lines: int) -> str:
    """Return the last ``lines`` lines of what is printed."""
    return "\n".join(text(report).splitlines()[-lines:])


class TestCompleted:
    def test_wide(self) -> None:
        """Totals, then the busiest and the most stalled units; no host time, no folders."""
        expected = """\
small  programs/small.py
completed, verified in functional mode

cycles                       2,000
off-chip traffic         1,234,567  bytes
moved by the HBM         1,300,000  bytes
on-chip requirement         65,536  bytes
FLOPs                    9,000,000
allocated compute            8,192  FLOPs/cycle
compute utilisation           54.9  %
off-chip bandwidth used       60.0  %
operators                        4
channels                         3
elements                    60,000
flops_artifact           9,000,001

Busiest units, 2 of 4; % of all cycles
unit    busy  empty  idle  elements  wired at
matmul  90.0   10.0   0.0    20,000  small.py:12
silu    45.0   50.0   5.0    20,000  small.py:13

Most stalled units, 3 of 4; % of all cycles
unit    busy  empty  full   HBM  idle  elements  wired at
load     0.0    0.0   5.0  75.0  20.0         0  small.py:11
silu    45.0   50.0   0.0   0.0   5.0    20,000  small.py:13
matmul  90.0   10.0   0.0   0.0   0.0    20,000  small.py:12"""

        assert expected == text(COMPLETED)

    def test_narrow(self) -> None:
        """On 60 columns every figure is there, in two lines, and names are whole."""
        name = "a_very_long_name_of_an_operator"
        row = unit(name, 3, 7, busy=300, empty=300, full=300, credit=300, hbm=300, capacity=300)
        written = text(replace(COMPLETED, units=(row,)), width=60)

        expected = """\
unit                             busy  empty  full  credit
     HBM  capacity  idle  elements  wired at
a_very_long_name_of_an_operator  15.0   15.0  15.0    15.0
    15.0      15.0  10.0         7  small.py:3"""
        assert expected == "\n".join(written.splitlines()[-4:])

    @pytest.mark.parametrize(
        ("verified", "mode", "line"),
        [
            (True, "functional", "completed, verified in functional mode"),
            (False, "functional", "completed, the result is wrong in functional mode"),
            (None, "timing", "completed in timing mode"),
        ],
    )
    def test_verdict(self, verified: bool | None, mode: str, line: str) -> None:
        """The second line says what became of the run."""
        report = replace(COMPLETED, verified=verified, mode=mode)

        assert line == text(report).splitlines()[1]

    def test_most_units_are_left_out(self) -> None:
        """Eight units are shown, equals in the program's order."""
        units = tuple(unit(f"u{number}", number, 1, busy=2) for number in range(20))
        written = text(replace(COMPLETED, units=units)).splitlines()

        assert "Busiest units, 8 of 20; % of all cycles" == written[-10]
        assert [f"u{number}" for number in range(8)] == [line.split()[0] for line in written[-8:]]

    def test_markup_in_names(self) -> None:
        """Brackets in names are not markup."""
        report = replace(COMPLETED, name="[red]", units=(unit("[bold]", 1, 1, busy=1),))

        assert "[red]  programs/small.py" == text(report).splitlines()[0]
        assert "[bold]" == text(report).splitlines()[-1].split()[0]

    def test_warnings(self) -> None:
        """Warnings are not wrapped, so that they can be searched for."""
        warning = "channel a.0 -> b.0: 3 values were left over, " + "word " * 30 + "end"

        assert f"warning: {warning}" == ending(replace(COMPLETED, warnings=(warning,)), 1)

    def test_colour_on_terminals_only(self) -> None:
        """A terminal gets colours; what is piped is plain."""
        written = io.StringIO()
        print_sheet(report_sheet(COMPLETED), Console(file=written, width=100, force_terminal=True))

        assert "\x1b[" in written.getvalue()
        assert "\x1b[" not in text(COMPLETED)


LOOP = Loop(
    code="FAB-D002",
    units=[
        BlockedUnit(
            unit="relay",
            operator="Relay",
            operation="receive",
            any_of=False,
            channels=["relay.0 -> relay.0"],
            waits_for=["relay"],
            since_cycle=1118,
            file="programs/small.py",
            line=12,
            needs="element 1 from relay",
            seen_stop=None,
            awaited_stop=None,
        )
    ],
    channels=[],
    cause="relay needs element 1 from relay.",
    hint="",
)
DEADLOCK = DeadlockReport(
    schema=1,
    program="small",
    code="FAB-D002",
    kind="dependency deadlock",
    cycle=1120,
    loops=[LOOP],
    behind=[],
    finished=3,
    remedy=Remedy([], None, None, irreducible=False, trials=1, why_not="no depth helps"),
    last_events=[],
    summary="FAB-D002",
)


class TestOthers:
    def test_error(self) -> None:
        """The message and its place come first; what was not counted is left out."""
        failure = Failure("matmul raised ValueError: odd", "small.py", 12)
        report = Report(name="small", program="small.py", mode="timing", failure=failure)

        expected = """\
small  small.py
error in timing mode
error: small.py:12: matmul raised ValueError: odd
"""
        assert expected == text(report)

    def test_deadlock(self) -> None:
        """Why it does not move stands instead of totals that mean nothing then."""
        stuck = replace(COMPLETED, status="deadlock", verified=None, explained=DEADLOCK)

        expected = """\
small  programs/small.py
deadlock in functional mode

error[FAB-D002]: dependency deadlock at cycle 1,120: relay waits for itself

  the operator
    1  relay  RECV empty  .0 <- relay.0    cyc 1,118  small.py:12

  cause
    relay needs element 1 from relay.

  remedy
    no depth helps.

  finished: 3"""
        assert expected == text(stuck)

    def test_deadlock_in_colour(self) -> None:
        """On a terminal the code of the deadlock stands out; nothing else changes."""
        stuck = replace(COMPLETED, status="deadlock", verified=None, explained=DEADLOCK)
        written = io.StringIO()
        print_sheet(report_sheet(stuck), Console(file=written, width=100, force_terminal=True))

        assert "\x1b[1;31merror[FAB-D002]\x1b[0m" in written.getvalue()


class TestFamilies:
    def _folded(self, *, unfold: bool) -> list[list[str]]:
        """Return the words of each line: five loads of one family, one of which has no part."""
        units = tuple(
            replace(unit(f"load_{number}", 11, elements, busy=busy), operator="Load")
            for number, (elements, busy) in enumerate(
                ((4, 100), (9, 900), (5, 300), (0, 0), (2, 500))
            )
        )
        written = io.StringIO()
        console = Console(file=written, width=100, highlight=False)
        print_sheet(report_sheet(replace(COMPLETED, units=units), unfold=unfold), console)
        return [line.split() for line in written.getvalue().splitlines()]

    def test_one_row(self) -> None:
        """The median unit, the lower one of two, beside the least and the most; the absent last."""
        lines = self._folded(unfold=False)

        (row,) = (line for line in lines if line[:1] == ["load_0..4"])
        assert ["load_0..4", "4", "5.0", "45.0", "15.0", "85.0", "5", "small.py:11"] == row
        assert "1 unit never got an element: load_0..4" == " ".join(lines[-1])

    def test_a_row_each(self) -> None:
        """On request; who had no part has none."""
        names = [line[0] for line in self._folded(unfold=True) if line and "load" in line[0]]

        assert ["load_1", "load_4", "load_2", "load_0"] == names

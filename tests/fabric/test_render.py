"""The report a person reads, from a report made by hand: every outcome, wide and narrow."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from fabric.analysis.deadlock.document import BlockedUnit, DeadlockReport, Loop, Remedy
from fabric.analysis.symbolic.area import Area
from fabric.messages.terminal.tables import print_sheet
from fabric.runs.counters import ChannelCounters, Compared, Comparison, UnitCounters
from fabric.runs.pricing import Spending
from fabric.runs.printing import report_sheet, told_of_links, told_of_prices
from fabric.runs.report import Failure, Report
from fabric.runs.verification import Verification
from fabric.timing.state.resource_use import LinkUse, NetworkUse, RouteUse


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


def _route(name: str, waited: int, carried: int | None) -> RouteUse:
    return RouteUse(f"{name}.0 -> z.0", (0, 0), (1, 0), 3, carried, waited)


EVERYTHING = Report(
    name="all",
    program="all.py",
    mode="timing",
    exact=True,
    status="completed",
    cycles=1_000,
    on_chip_peak_bytes=640,
    on_chip_peak_pages=5,
    on_chip_map_bytes=7,
    on_chip_peak_empty_bytes=96,
    on_chip_wait_cycles=1_234,
    spilled_bytes=4_096,
    fetched_bytes=8_192,
    area_low_mm2=0.5,
    area_high_mm2=2.25,
    seconds=2e-6,
    joules=4e-5,
    spent=(
        Spending("hbm", 2_048.0, "bytes", 3e-5),
        Spending("fifo", 0.0, "bytes", 0.0),
        Spending("bfloat16_flop", 5e6, "FLOPs", 1e-5),
        Spending("static", None, "seconds", None),
    ),
    area=(
        Area("memory", 65_536, "bytes", 0.25, 1.5),
        Area("slot", 0, "bytes", 0.0, 0.0),
        Area("bfloat16_flop", 1_024, "FLOPs/cycle", None, None),
        Area("link", None, "bytes/cycle", None, None),
    ),
    stands_for_runs=3,
    tokens=1_024,
    token_phase="prefill",
    tokens_per_second=1_000.4,
    tokens_per_joule=12.3456,
    time_to_first_token_seconds=1.5,
    signal_to_noise_db={"y": None, "z": 63.26},
    extra={"notes": ["first", "second"], "empty": [], "loss": 1_000.5},
    network=NetworkUse(
        "put.toml",
        1,
        3,
        tuple(map(_route, "abcdef", (5, 50, 0, 1, 7, 3), (640, None, 9, 8, 1_000, 7))),
        (
            LinkUse("0,0 -> 1,0", 640, 8, ("a", "b")),
            LinkUse("out of 0,0", 900, None, ("a",)),
            LinkUse("1,0 -> 2,0", 8_000, 8, ("a", "b", "c", "d")),
            LinkUse("2,0 -> 1,0", 80, 8, ("a", "b", "c")),
            LinkUse("into 1,0", 1_600, 16, ("a",)),
            LinkUse("into 2,0", 160, 16, ("b",)),
        ),
    ),
    units=(unit("load", 11, 0, busy=250),),
    channels_counters=tuple(
        ChannelCounters(f"{name}.0 -> z.0", 2, elements, peak, 0, 0, 0, 0)
        for name, elements, peak in (("a_0", 5, 1), ("a_1", 7, 2), ("b", 1_000, 2))
    ),
    comparison=Comparison(
        (
            Compared("FLOPs", 9, 9),
            Compared("on-chip requirement, bytes", 1_000, 90, at_most=True),
            Compared("off-chip stores, bytes", 128, 120),
        ),
        (5, 6, 1_000),
    ),
)
"""Of a run of 1,000 cycles, with a line of each kind that there is."""


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

    @pytest.mark.parametrize("value", ["x" * 90, 10**60])
    def test_long_values(self, value: str | int) -> None:
        """A long value stands below the table, whose columns stay where they are."""
        report = text(replace(COMPLETED, extra={"loss": 0.5, "plan": value}), width=200)
        shown = f"{value:,}" if isinstance(value, int) else value
        assert "cycles                       2,000\n" in report
        assert f"loss                           0.5\nplan\n  {shown}\n" in report

    def test_everything(self) -> None:
        """Pages, prices, area, lists, links, noise and what was expected: each in its own table."""
        expected = """\
all  all.py
completed in timing mode, floats in float64

cycles                             1,000
on chip at the peak                  640  bytes
pages at the peak                      5  pages
map of these pages                     7  bytes
empty in pages at the peak            96  bytes
waited for pages, all units        1,234  cycles
spilled                            4,096  bytes
read back                          8,192  bytes
area                         0.5 to 2.25  mm²
time                                   2  μs
energy                                40  μJ
stands for                             3  such runs
their time, multiplied                 6  μs
their energy, multiplied             120  μJ
tokens                             1,024  prefill
tokens per second                  1,000
tokens per joule                   12.35
time to first token                  1.5  s
loss                             1,000.5
notes
  first
  second

Units are placed as put.toml says, on 1 site with at most 3 units each.
busiest links  bytes  % of what it can carry  channels
1,0 -> 2,0     8,000                   100.0         4
into 1,0       1,600                    10.0         1
0,0 -> 1,0       640                     8.0         2
2,0 -> 1,0        80                     1.0         3

channels whose readers wait for links  cycles waited  hop  bytes
b.0 -> z.0                                        50    3
e.0 -> z.0                                         7    3  1,000
a.0 -> z.0                                         5    3    640
f.0 -> z.0                                         3    3      7

in the declared types  signal to noise, dB
y                                 no error
z                                     63.3

energy                           amount    joules     %
moved by the HBM            2,048 bytes     30 μJ  75.0
operations on bfloat16  5,000,000 FLOPs     10 μJ  25.0
static                         no clock  no price   0.0

area, low to high                  amount          mm²
larger memory units          65,536 bytes  0.25 to 1.5
operations on bfloat16  1,024 FLOPs/cycle   not stated
links of the network             no limit   not stated

                              expected  measured
FLOPs                                9         9
on-chip requirement, bytes     ≤ 1,000        90
off-chip stores, bytes             128       120  differs
channels with these elements         3         2

Busiest units, 1 of 1; % of all cycles
unit  busy   idle  elements  wired at
load  25.0  175.0         0  small.py:11"""

        assert expected == text(EVERYTHING)

    def test_told_later(self) -> None:
        """A trace has the limited links, with two channels of each, and the rows about prices."""
        assert [
            ("0,0 -> 1,0", "640", "8.0", "a, b"),
            ("1,0 -> 2,0", "8,000", "100.0", "a, b, 2 more"),
            ("2,0 -> 1,0", "80", "1.0", "a, b, 1 more"),
            ("into 1,0", "1,600", "10.0", "a"),
            ("into 2,0", "160", "1.0", "b"),
        ] == [*told_of_links(EVERYTHING)]
        told = told_of_prices(EVERYTHING)
        assert [["static", "no clock", "no price", "0.0"]] == told["spent"][2:]
        assert ["tokens", "1,024", "prefill"] == told["totals"][5]
        no_clock = replace(EVERYTHING, seconds=None)
        assert 7 == len(told_of_prices(no_clock)["totals"]) == len(told["totals"]) - 2
        assert {} == told_of_prices(replace(no_clock, spent=()))
        assert [] == told_of_prices(replace(EVERYTHING, spent=()))["spent"]
        assert [] == [*told_of_links(COMPLETED)]

    @pytest.mark.parametrize(
        ("seconds", "told"),
        [
            (0.0, "0  s"), (1.0, "1  s"), (999.0, "999  s"), (1e3, "1  ks"),
            (2.5e13, "2.5e+04  Gs"), (1e-3, "1  ms"), (9.99e-4, "999  μs"), (4e-14, "0.04  ps"),
        ],
    )  # fmt: skip
    def test_prefixes(self, seconds: float, told: str) -> None:
        """Quantities have one to three digits before the point, from pico to giga."""
        lines = text(replace(COMPLETED, seconds=seconds)).splitlines()
        (line,) = (each for each in lines if each.startswith("time "))
        assert told == line.removeprefix("time").strip()

    def test_not_verified(self) -> None:
        """Why nothing was compared stands for the mode, where the run completed."""
        why = Verification(not_verified="timing mode")
        report = replace(EVERYTHING, verification=why)
        assert "completed, not verified: timing mode" == text(report).splitlines()[1]
        stopped = replace(report, status="interrupted")
        assert "interrupted in timing mode, floats in float64" == text(stopped).splitlines()[1]

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

    @pytest.mark.parametrize(
        ("status", "verified", "right"),
        [
            ("completed", True, True),
            ("completed", None, True),
            ("completed", False, False),
            ("interrupted", None, False),
            ("error", True, False),
        ],
    )
    def test_colour_of_the_end(self, status: Any, verified: bool | None, right: bool) -> None:
        """Green, or right in a notebook, is what completed and is not known to be wrong."""
        report = replace(COMPLETED, status=status, verified=verified, verification=None)
        written = io.StringIO()
        print_sheet(report_sheet(report), Console(file=written, width=100, force_terminal=True))

        assert f"\x1b[{32 if right else 31}m{status}" in written.getvalue()
        assert f'<p class="{"right" if right else "wrong"}">{status}' in (
            report._repr_html_() or ""
        )

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

    def test_beside_single_units(self) -> None:
        """Who is alone has no least and no most; of few families it is said how many are shown."""
        loads = tuple(
            replace(unit(f"load_{number}", 11, number, busy=busy, full=100), operator="Load")
            for number, busy in enumerate((40, 60, 20, 120))
        )
        others = (unit("sum", 14, 9, busy=500, credit=700), unit("relay", 15, 3))
        lines = text(replace(COMPLETED, units=(*loads, *others))).splitlines()

        assert [line.rstrip() for line in lines[-9:]] == [
            "Busiest families, 2 of 3, of 6 units; % of all cycles, of the median unit",
            "unit       units  least  most  busy  full  credit  idle  elements  wired at",
            "sum            1               25.0   0.0    35.0  40.0         9  small.py:14",
            "load_0..3      4    1.0   6.0   2.0   5.0     0.0  93.0         0  small.py:11",
            "",
            "Most stalled families, 2 of 3, of 6 units; % of all cycles, of the median unit",
            "unit       units  least  most  busy  full  credit  idle  elements  wired at",
            "sum            1               25.0   0.0    35.0  40.0         9  small.py:14",
            "load_0..3      4    5.0   5.0   3.0   5.0     0.0  92.0         1  small.py:11",
        ]

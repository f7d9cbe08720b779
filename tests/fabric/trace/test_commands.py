"""``python -m fabric trace``: what each command prints, and what it says when it cannot."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from fabric import simulate
from fabric.analysis.trace.analysis.critical import CriticalPath, PathShare, Phase, WaitRoot
from fabric.analysis.trace.analysis.diff import Parting, Setting, Stamps, TraceDiff, UnitChange
from fabric.analysis.trace.analysis.stalled import (
    ChannelWait,
    ChargedRoot,
    FoldedStalls,
    StageFigures,
    StalledFamily,
    StalledUnit,
    Stalls,
)
from fabric.analysis.trace.analysis.summary import TraceSummary, UnitLeft
from fabric.analysis.trace.analysis.what_if import Gain
from fabric.analysis.trace.printing import diff_sheet, stalls_sheet, stuck_sheet, summary_sheet
from fabric.analysis.trace.reading.queries import QUERIES
from fabric.messages.telling.causes import Operation
from fabric.messages.telling.sheet import Sheet
from fabric.messages.telling.vocabulary import FIELDS, TABLES
from fabric.messages.telling.wording import Family
from fabric.messages.terminal.tables import printed_sheet
from fabric.shell.cli import main
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import program, record


class Printed:
    """What a command printed, and what it exited with."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> None:
        """Run ``trace`` with ``arguments``."""
        self.status = main(["trace", *map(str, arguments)])
        self.out, self.err = capsys.readouterr()


@pytest.fixture(autouse=True)
def fixed_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as to a file."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of a chain whose last unit is slow."""
    wired = chain(("s0",), ("r0", "s0"), ("r0", "c10"), elements=5)
    return record(wired, tmp_path_factory.mktemp("slow"))[1].folder.parent


@pytest.fixture(scope="module")
def faster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of the same chain with a faster last unit."""
    wired = chain(("s0",), ("r0", "s0"), ("r0", "c4"), elements=5)
    return record(wired, tmp_path_factory.mktemp("faster"))[1].folder.parent


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run that deadlocked."""
    return record(program("pack_rows"), tmp_path_factory.mktemp("stuck"))[1].folder.parent


class TestTables:
    def test_stalls(self, capsys: pytest.CaptureFixture[str], slow: Path) -> None:
        """Both tables, the critical path, and the sentence that says what bounds the run."""
        printed = Printed(capsys, "stalls", slow)

        assert (0, "") == (printed.status, printed.err)
        assert STALLS == printed.out

    def test_narrow_terminal(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        slow: Path,
    ) -> None:
        """Nothing is left out: what does not fit stands below."""
        monkeypatch.setenv("COLUMNS", "60")
        printed = Printed(capsys, "stalls", slow)

        assert (0, "") == (printed.status, printed.err)
        assert NARROW == printed.out

    def test_summary(self, capsys: pytest.CaptureFixture[str], stuck: Path) -> None:
        """What was recorded, and who had not ended."""
        printed = Printed(capsys, "summary", stuck)

        assert 0 == printed.status
        assert "elements still held      4\n" in printed.out
        assert "Not ended\nunit" in printed.out

    def test_show(self, capsys: pytest.CaptureFixture[str], slow: Path) -> None:
        """What a unit and its neighbours were doing in one cycle."""
        printed = Printed(capsys, "show", slow, "--at", 20, "--around", "unit_1")

        assert (0, "") == (printed.status, printed.err)
        assert SHOWN == printed.out

    @pytest.mark.parametrize("name", QUERIES)
    def test_ready_queries(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
    ) -> None:
        """Each ready query has an answer for a program that uses everything."""
        _, trace = record(program("simplified_moe"), tmp_path)
        printed = Printed(capsys, "query", trace.folder, name)

        assert (0, "") == (printed.status, printed.err)
        assert len(printed.out.splitlines()) > 2

    def test_query(self, capsys: pytest.CaptureFixture[str], slow: Path) -> None:
        """SQL over the documented tables."""
        sql = "SELECT name, cycle FROM states JOIN units USING (unit)"
        printed = Printed(capsys, "query", slow, sql)

        expected = "name    cycle\nunit_0      4\nunit_1     23\nunit_2     52\n"
        assert (0, expected) == (printed.status, printed.out)

    def test_list(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The list needs no run; it has every query and every column."""
        printed = Printed(capsys, "query", "--list")

        words = set(printed.out.split())
        assert 0 == printed.status
        assert words.issuperset(QUERIES)
        assert words.issuperset(TABLES)
        assert words.issuperset(column for columns in TABLES.values() for column in columns)
        lines = printed.out.splitlines()
        assert ["Ready queries", f"  slowest-channels  {QUERIES['slowest-channels'].question}"] == (
            lines[:2]
        )
        for table in TABLES:
            assert "" == lines[lines.index(table) - 1]
        (line,) = (line for line in lines if line.startswith("  start_cycle "))
        assert line == f"  {'start_cycle':22}{FIELDS['start_cycle'].meaning} [cycles]"

    def test_diff(self, capsys: pytest.CaptureFixture[str], slow: Path, faster: Path) -> None:
        """Where two runs part, and who got slower."""
        printed = Printed(capsys, "diff", faster, slow)

        assert (0, "") == (printed.status, printed.err)
        assert DIFFERENCE == printed.out

    def test_no_difference(self, capsys: pytest.CaptureFixture[str], slow: Path) -> None:
        """A run does not differ from itself."""
        printed = Printed(capsys, "diff", slow, slow)

        assert "\n\nEvery transfer happened in the same cycles.\n" in printed.out

    def test_no_states(
        self, capsys: pytest.CaptureFixture[str], slow: Path, tmp_path: Path
    ) -> None:
        """Of a trace without states nobody can say what units waited for."""
        run = shutil.copytree(slow, tmp_path / "run")
        for file in (run / "trace").glob("states-*"):
            file.unlink()
        printed = Printed(capsys, "deadlock", run)

        assert 0 == printed.status
        assert "The trace does not say what units waited for.\n" == printed.out


def _left(name: str, channel: str, since: int | None = 1_100) -> UnitLeft:
    return UnitLeft(name, "/x/y.py", 3, Operation.RECEIVE, since, (channel,) if channel else ())


LEFT: Final = TraceSummary(
    name="some",
    program="p.py",
    parameters={"a": 1, "b": "x"},
    mode="timing",
    status="killed",
    outcome="killed",
    cycles=1,
    window=(1_000, 2_000),
    nodes="u*",
    units=1_001,
    channels=2,
    transfers=3,
    held_elements=4,
    bursts=5,
    hbm_bytes=6,
    waits=7_000,
    has_state=True,
    not_ended=(
        _left("load_0", "a_0 -> load_0.0"),
        _left("load_1", "a_1 -> load_1.0", 1_050),
        UnitLeft("s", "/x/z.py", 4, None, None, ()),
    ),
)


def _unit(name: str, line: int, elements: int, **cycles: int) -> StalledUnit:
    causes = ("busy", "empty", "links", "full", "hbm", "capacity")
    spent = {f"{cause}_cycles": cycles.get(cause, 0) for cause in causes}
    idle = 2_000 - sum(spent.values()) + spent["links_cycles"]
    mostly = ChannelWait("a -> b", "a", reads=True, cycles=3) if line == 3 else None
    return StalledUnit(
        name, "Load", "/x/y.py", line, **spent, idle_cycles=idle, elements=elements, mostly=mostly
    )


HOPS: Final = WaitRoot("hop", None, "hops between units")
LOADS: Final = (
    _unit("load_1", 3, 1, busy=1_500, empty=100, links=50),
    _unit("load_0", 3, 2, busy=1_000, empty=900, links=30),
    _unit("load_2", 3, 0, empty=1_200),
)
ALL_STALLS: Final = Stalls(
    cycles=2_000,
    units=(*LOADS, _unit("s", 4, 1, capacity=2)),
    roots=(ChargedRoot(HOPS, 2_100, 3), ChargedRoot(WaitRoot("unit", "s", "s"), 102, 1)),
    critical_path=CriticalPath(2_000, (), (PathShare(HOPS, 2_000),), (), "so far"),
    hbm=None,
    gains=(
        Gain("depth", "channel depth", 1_990, None, False),
        Gain("family", "load_0..2", 800, 1_400, True, "/x/y.py", 3),
        Gain("links", "the links of the network", 1_000, 1_500, True),
        Gain("memory", "on-chip capacity", 1_960, 1_980, True),
        Gain("memory", "the HBM", 1_950, 1_970, False),
    ),
    verdict="Bound by something.",
    folded=FoldedStalls(
        stages=(
            StageFigures("load_0..2", "/x/y.py", 3, 3, 1_500, 1_200, 4_096, None),
            StageFigures("s", "/x/y.py", 4, 1, 0, None, 0, 64),
        ),
        families=(
            StalledFamily("load_0..2", LOADS, "from a_0..2"),
            StalledFamily("s", (_unit("s", 4, 1, capacity=2),), ""),
        ),
        absent=(Family("gone_1..2", ("gone_1", "gone_2")),),
        roots=(ChargedRoot(HOPS, 2_202, 4),),
        critical_path=CriticalPath(
            2_000,
            (),
            (PathShare(HOPS, 1_500), PathShare(WaitRoot("unit", "s", "s"), 500)),
            (Phase(0, 1_800, HOPS, 0.75), Phase(1_800, 2_000, HOPS, 1.0)),
            "",
        ),
    ),
)

DIFFER: Final = TraceDiff(
    names=("a", "b"),
    outcomes=("completed", "killed"),
    cycles=(1_000, 1),
    settings=(Setting("hardware.channel.depth", 2, None),),
    parting=Parting(1_500, "x -> y", 2_000, None, Stamps(1_500, None)),
    units=tuple(
        UnitChange(name, "/x/y.py", 5, in_a, in_b, -1_000, 1, 2, 0, -3, 4)
        for name, in_a, in_b in (
            ("u0", True, True), ("u1", True, False), ("u2", None, True), ("u3", False, None),
        )
    ),
)  # fmt: skip


def lines(sheet: Sheet) -> str:
    """Return what is printed where there is room."""
    return printed_sheet(sheet, columns=120, plain=True)


class TestByHand:
    """Results that are put together here."""

    def test_summary(self) -> None:
        """Alike units in a row; what was asked for, and when the first and last began to wait."""
        assert SUMMARY == lines(summary_sheet(LEFT))
        unfolded = lines(summary_sheet(LEFT, unfold=True)).split("Not ended\n")[1]
        assert UNFOLDED == unfolded
        many = replace(
            LEFT, not_ended=tuple(_left(f"{each}", "") for each in "abcdefghijklmnopqrstu")
        )
        for unfold in (True, False):
            text = lines(summary_sheet(many, unfold=unfold))
            assert text.endswith("\nand 1 more\n")
        bare = replace(LEFT, parameters={}, window=None, nodes=None, not_ended=(), cycles=2)
        head, _, _ = lines(summary_sheet(bare)).partition("\n\n")
        assert "some  p.py\nkilled in timing mode, 2 cycles" == head
        assert "Not ended" not in lines(summary_sheet(bare))

    def test_nobody_stuck(self) -> None:
        """How many had ended, and how many waited for something."""
        assert lines(stuck_sheet(None, LEFT)) == (
            "No unit waits for ever: killed at cycle 1.\n"
            "998 of 1,001 units had ended, 2 waited for others.\n"
        )

    def test_stalls(self) -> None:
        """Families by their median unit, shared links beside what is empty, and gains by kind."""
        assert FOLDED == lines(stalls_sheet(ALL_STALLS))

    def test_stalls_unfolded(self) -> None:
        """Each unit, with the path and the roots of units; so many rows of each table."""
        text = lines(stalls_sheet(ALL_STALLS, 1, unfold=True))
        tables = {part.split(",")[0].split("\n")[0]: part for part in text.split("\n\n")}
        assert tables["Where the cycles went"].splitlines()[1:] == [
            "unit     busy  empty  for links  capacity  idle  mostly  wired at",
            "load_1  1,500    100         50         0   400  from a  y.py:3",
            "and 3 more",
        ]
        assert tables["Critical path"].splitlines() == [
            "Critical path, so far",
            "through             path cycles      %",
            "hops between units        2,000  100.0",
        ]
        assert tables["Whom they were waiting for"].endswith("\nand 1 more")

    def test_differences(self) -> None:
        """What differs in settings, in the first transfer, and in the ends of units."""
        assert DIFFERENCES == lines(diff_sheet(DIFFER, 3))


SUMMARY = """\
some  p.py
a=1, b=x
killed in timing mode, 1 cycle
only cycles 1,000 to 2,000 were traced
only channels of units u* were traced

Recorded
what                 count
units                1,001
channels                 2
transfers                3
elements still held      4
bursts                   5
bytes of the HBM         6
waits                7,000

Not ended
unit       units  waits for   channel                since  last since  wired at
load_0..1      2  an element  a_0..1 -> load_0..1.0  1,050       1,100  /x/y.py:3
s              1                                                        /x/z.py:4
"""

UNFOLDED = """\
unit    waits for   channel          since  wired at
load_0  an element  a_0 -> load_0.0  1,100  /x/y.py:3
load_1  an element  a_1 -> load_1.0  1,050  /x/y.py:3
s                                           /x/z.py:4
"""

FOLDED = """\
Stages, by their share of the critical path; headroom: saved if the stage took no time
stage      units  path, %  headroom, %  off-chip bytes  on-chip bytes  wired at
load_0..2      3     75.0         60.0           4,096                 y.py:3
s              1      0.0                            0             64  y.py:4

Where the cycles went, each row sums to 2,000 cycles: that of the median unit of a family, by its \
stalled cycles; for links is part of empty
unit       units   busy  empty  for links  capacity   idle  least stalled  most stalled  mostly  \
     wired at
load_0..2      3  1,000    900         30         0    100            100         1,200  from a_0\
..2  y.py:3
s              1      0      0          0         2  1,998                                       \
     y.py:4
2 units never got an element: gone_1..2 (x 2)

Whom they were waiting for, 2,202 stalled cycles of all units, each charged to the end of its chain
root                stalled cycles      %  units stalled
hops between units           2,202  100.0              4

Critical path
through             path cycles     %
hops between units        1,500  75.0
s                           500  25.0

Critical path over time
 from     to  % of it  mostly through
    0  1,800     75.0  hops between units
1,800  2,000    100.0  hops between units

What would help; `trace what-if` answers more
if                                       cycles  fewer, %
the HBM answered at once                  1,950       2.5  exact
on-chip capacity were unlimited           1,960       2.0  estimated
the links of the network were unlimited   1,000      50.0  estimated
load_0..2 took half as long               1,400      30.0  estimated
every channel were unbounded              1,990       0.5  exact

Bound by something.
"""

DIFFERENCES = """\
A  a  completed, 1,000 cycles
B  b  killed, 1 cycle
   hardware.channel.depth: 2 in A, None in B

They part at cycle 1,500: element 2,000 of x -> y
   in A it was not sent
   in B sent in cycle 1,500, still held

What changed from A to B, cycles more (+) or fewer (-)
unit  end       busy  empty  full  HBM  capacity  wired at
u0    -1,000      +1     +2    +0   -3        +4  y.py:5
u1    not in B    +1     +2    +0   -3        +4  y.py:5
u2    not in A    +1     +2    +0   -3        +4  y.py:5
and 1 more
"""


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["stalls", "nowhere"], "nowhere: there is no trace here: expected the folder of a run "
             "with --trace events"),
            (["show", "{run}", "--at", "99"], "cycle 99: expected a cycle from 0 to 52"),
            (["show", "{run}", "--at", "9", "--around", "unit_9"],
             "unit unit_9: expected one of unit_0, unit_1, unit_2 (did you mean unit_2?)"),
            (["query", "{run}", "SELECT"], "query 'SELECT': Parser Error: SELECT clause without "
             "selection list: expected SQL over the tables " + ", ".join(TABLES) + ", or one of "
             + ", ".join(QUERIES)),
            (["export", "{run}", "--csv", "-o", "/nowhere/run.csv"],
             "/nowhere/run.csv: No such file or directory"),
        ],
    )  # fmt: skip
    def test_message(
        self,
        capsys: pytest.CaptureFixture[str],
        slow: Path,
        arguments: list[str],
        message: str,
    ) -> None:
        """What was found and what was expected, on stderr; exit status 2."""
        printed = Printed(capsys, *(each.replace("{run}", str(slow)) for each in arguments))

        assert (2, "", f"fabric: {message}\n") == (printed.status, printed.out, printed.err)

    @pytest.mark.parametrize(
        ("options", "found"), [((), "none"), (("--vcd", "--perfetto"), "--vcd and --perfetto")]
    )
    def test_one_form(
        self,
        capsys: pytest.CaptureFixture[str],
        slow: Path,
        tmp_path: Path,
        options: tuple[str, ...],
        found: str,
    ) -> None:
        """A trace is exported in one form: usage, and nothing is written."""
        output = tmp_path / "out"
        printed = Printed(capsys, "export", slow, *options, "-o", output)

        assert (2, "", False) == (printed.status, printed.out, output.exists())
        assert (
            f"Error: Expected one of --perfetto, --jsonl, --vcd, --csv: found {found}."
            == printed.err.splitlines()[-1]
        )

    def test_damage_is_said(
        self, capsys: pytest.CaptureFixture[str], slow: Path, tmp_path: Path
    ) -> None:
        """What is missing in a trace goes to stderr; the rest is printed."""
        run = shutil.copytree(slow, tmp_path / "run")
        (run / "trace" / "end.json").unlink()
        printed = Printed(capsys, "stalls", run)

        assert 0 == printed.status
        assert printed.err == (
            f"fabric: warning: {run}: the run did not say how it ended: "
            "this is what it wrote until then\n"
        )

    def test_help_imports_nothing_large(self) -> None:
        """``trace --help`` loads no database, no compiler, no algebra."""
        code = (
            "import sys\nfrom fabric.shell.cli import main\nmain(['trace', '--help'])\n"
            "print(*sorted({'sympy', 'numba', 'duckdb', 'perfetto', 'trio'} & set(sys.modules)))"
        )
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[3],
        )

        assert "" == run.stdout.splitlines()[-1]


STALLS = """\
Stages, by their share of the critical path; headroom: saved if the stage took no time
stage   units  path, %  headroom, %  off-chip bytes  on-chip bytes  wired at
unit_2      1     96.2         88.5               0              0  chains.py:17
unit_0      1      0.0                            0              0  chains.py:14
unit_1      1      0.0                            0              0  chains.py:16

Where the cycles went, each row sums to 52 cycles
unit    busy  empty  full  idle  mostly       wired at
unit_2    50      2     0     0  from unit_1  chains.py:17
unit_1     0      3    20    29  to unit_2    chains.py:16
unit_0     0      0     4    48  to unit_1    chains.py:14

Whom they were waiting for, 29 stalled cycles of all units, each charged to the end of its chain
root                stalled cycles     %  units stalled
unit_2                          18  62.1              1
hops between units              11  37.9              3

Critical path
through             path cycles     %
unit_2                       50  96.2
hops between units            2   3.8

Critical path over time
from  to  % of it  mostly through
   0  52     96.2  unit_2

What would help; `trace what-if` answers more
if                        cycles  fewer, %
unit_2 took half as long      27      48.1  exact

Bound by unit_2 (chains.py:17): 6 cycles instead of 52 if it took no time, 27 if half as long.
"""

NARROW = """\
Stages, by their share of the critical path; headroom:
  saved if the stage took no time
stage   units  path, %  headroom,  off-chip  on-chip
                                %     bytes    bytes
    wired at
unit_2      1     96.2       88.5         0        0
    chains.py:17
unit_0      1      0.0                    0        0
    chains.py:14
unit_1      1      0.0                    0        0
    chains.py:16

Where the cycles went, each row sums to 52 cycles
unit    busy  empty  full  idle  mostly       wired at
unit_2    50      2     0     0  from unit_1  chains.py:17
unit_1     0      3    20    29  to unit_2    chains.py:16
unit_0     0      0     4    48  to unit_1    chains.py:14

Whom they were waiting for, 29 stalled cycles of all
  units, each charged to the end of its chain
root                stalled cycles     %  units stalled
unit_2                          18  62.1              1
hops between units              11  37.9              3

Critical path
through             path cycles     %
unit_2                       50  96.2
hops between units            2   3.8

Critical path over time
from  to  % of it  mostly through
   0  52     96.2  unit_2

What would help; `trace what-if` answers more
if                        cycles  fewer, %
unit_2 took half as long      27      48.1  exact

Bound by unit_2 (chains.py:17): 6 cycles instead of 52 if
  it took no time, 27 if half as long.
"""
SHOWN = """\
Cycle 20
unit    since  until  wired at      is
unit_0      4         chains.py:14  idle, at its end
unit_1     13     23  chains.py:16  full, waits for unit_2
unit_2      2     52  chains.py:17  busy

Channels
channel               held  sent  taken  bare stops
unit_0.0 -> unit_1.0  0/2      5      5           0
unit_1.0 -> unit_2.0  2/2      4      2           0
"""
DIFFERENCE = """\
A  chain  completed, 22 cycles
B  chain  completed, 52 cycles

They part at cycle 6: element 1 of unit_1.0 -> unit_2.0
   in A sent in cycle 1, dequeued in cycle 6
   in B sent in cycle 1, dequeued in cycle 12

What changed from A to B, cycles more (+) or fewer (-)
unit    end  busy  empty  full  HBM  capacity  wired at
unit_2  +30   +30     +0    +0   +0        +0  chains.py:17
unit_1  +12    +0     +0   +12   +0        +0  chains.py:16
"""


def test_grown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A run that was repeated with deeper channels is shown as its report has it."""
    report = simulate(program("pack_rows"), trace="events", log_dir=tmp_path, on_deadlock="grow")
    assert report.log_dir is not None
    run = Path(report.log_dir)
    stalls, deadlock = Printed(capsys, "stalls", run), Printed(capsys, "deadlock", run)

    assert "completed" == report.status
    assert f"each row sums to {report.cycles:,} cycles" in stalls.out
    assert f"{run / 'trace'} has the run that stopped" in stalls.err
    assert deadlock.out.startswith("error[FAB-D001]: capacity deadlock")

"""``python -m fabric trace``: what each command prints, and what it says when it cannot."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fabric import simulate
from fabric.analysis.trace.reading.queries import QUERIES
from fabric.messages.telling.vocabulary import TABLES
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

    def test_diff(self, capsys: pytest.CaptureFixture[str], slow: Path, faster: Path) -> None:
        """Where two runs part, and who got slower."""
        printed = Printed(capsys, "diff", faster, slow)

        assert (0, "") == (printed.status, printed.err)
        assert DIFFERENCE == printed.out

    def test_no_difference(self, capsys: pytest.CaptureFixture[str], slow: Path) -> None:
        """A run does not differ from itself."""
        printed = Printed(capsys, "diff", slow, slow)

        assert "\n\nEvery transfer happened in the same cycles.\n" in printed.out


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

"""Analyses show themselves: at a prompt as the command prints them, in a notebook as tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabric import Trace, lower_bounds, place, simulate, size
from fabric.analysis.symbolic.bounds import KnownBefore
from fabric.analysis.symbolic.bounds_cycles import Bound
from fabric.explore.serving.served import Measures, Spread
from fabric.graph.hardware.latency import Mesh
from fabric.messages.telling.sheet import ShownAsTables
from fabric.notebook.sheets import sheet_of
from fabric.runs.cost import Cost, CostPart
from fabric.shell.cli import main
from tests.fabric.study.written.made import RESULTS
from tests.fabric.test_notebook import read
from tests.fabric.trace.recording import program, record


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return the trace of a run."""
    return record(program("simplified_moe"), tmp_path_factory.mktemp("run"))[1]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as to a file."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("summary",), lambda trace: trace.summary()),
        (("stalls",), lambda trace: trace.stalls()),
        (("show", "--at", "100"), lambda trace: trace.at(100)),
        (
            ("show", "--at", "100", "--around", "matmul_1"),
            lambda trace: trace.at(100).around("matmul_1"),
        ),
        (("what-if", "--work", "matmul_1=2x"), lambda trace: trace.what_if(work={"matmul_1": 2})),
    ],
)
def test_as_the_command(
    arguments: tuple[str, ...], asked: object, trace: Trace, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a prompt shows of an analysis is what the command prints, letter for letter."""
    assert callable(asked)
    command, *options = arguments
    assert main(["trace", command, str(trace.folder), *options]) == 0
    printed = capsys.readouterr().out

    assert f"{asked(trace)}\n" == printed == f"{asked(trace)!r}\n"


def test_two_runs(trace: Trace, capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison, too."""
    folder = str(trace.folder)
    assert main(["trace", "diff", folder, folder]) == 0
    assert capsys.readouterr().out == f"{trace.diff(trace)}\n"


def test_as_tables(trace: Trace) -> None:
    """A notebook has each figure in a cell of its own, and numbers stand right."""
    stalls = trace.stalls()
    html = stalls._repr_html_()
    texts = read(html).texts
    assert stalls.verdict in texts
    (stage,) = (each for each in stalls.folded.stages if each.name == stalls.folded.stages[0].name)
    assert {stage.name, f"{stage.off_chip_bytes:,}", "off-chip bytes"} <= set(texts)
    assert html is not None
    assert f'<td class="number">{stage.off_chip_bytes:,}</td>' in html


def test_query(trace: Trace) -> None:
    """The rows of a query are a table; of many the first are shown, and counted."""
    assert str(trace.query("SELECT 1000 AS a, 'x' AS b")) == "    a  b\n1,000  x"
    assert str(trace.query("SELECT name FROM units")).endswith("\n20 of 28 rows")


def test_width(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 60 columns nothing is lost: every name and figure is there, in lines that fit."""
    wide = repr(trace.stalls()).split()
    monkeypatch.setenv("COLUMNS", "60")
    narrow = repr(trace.stalls())
    assert max(map(len, narrow.splitlines())) <= 60
    assert sorted("".join(narrow.split())) == sorted("".join(wide))


def test_deadlock(tmp_path: Path) -> None:
    """The loop and its remedy, below a picture of it in a notebook."""
    run = simulate(program("simplified_moe"), depths={"reassemble_1.2": 2}, log_dir=tmp_path)
    stuck = run.explained
    assert stuck is not None
    assert repr(stuck).startswith("error[FAB-D001]: capacity deadlock at cycle 68")
    assert "--depth reassemble_1.2=5" in repr(stuck)
    found = read(stuck._repr_html_())
    assert "svg" in found.names
    assert any("--depth reassemble_1.2=5" in text for text in found.texts)


def test_requests() -> None:
    """What became of requests: spreads in columns, then sums; what is not known is left out."""
    times = Spread(0.25, 0.5, 1.0, 12.3456, 2_000.0)
    nothing = Spread(None, None, None, None, None)
    found = Measures(
        requests=1_200, completed=7, offered_per_second=2.5, duration_seconds=3_000.4,
        time_to_first_token=times, time_per_token=nothing, latency=times,
        output_tokens_per_second=1.0, prompt_tokens_per_second=None, requests_per_second=0.125,
        goodput_per_second=None, kept=None, joules_per_token=None, preemptions=3, steps=44,
        mean_running=1.75, most_blocks=9, num_blocks=None, interrupted=True,
    )  # fmt: skip
    assert f"{found}\n" == REQUESTS
    assert "In all\n" in str(replace(found, interrupted=False))


def test_known_before() -> None:
    """What a report will say, exactly or at least, and what needs so many cycles."""
    needs = {"memory": Bound(1_200, "64 bytes a cycle"), "compute": Bound(7, "a")}
    known = KnownBefore({"flops": 1_000}, {"cycles": 1_200}, needs, {"area_mm2": 2.5})
    assert f"{known}\n" == KNOWN
    assert "Why" not in str(replace(known, cycles={}))


KNOWN = """\
Known before a run
                    value
flops     exactly   1,000
cycles    at least  1,200
area mm2  at least    2.5

Why a run takes so many cycles
kind     cycles at least  for
memory             1,200  64 bytes a cycle
compute                7  a
"""


def test_cost() -> None:
    """The sums of what is known, and below them each run as it was measured."""
    parts = (CostPart("a", 3, 1_000, 0.5, None), CostPart("b", 1, 7, 12.3456, 2.0))
    cost = Cost(parts, 3_007, 2_000, 0, 9, 13.8456, None, None, 40, "prefill")
    assert f"{cost}\n" == COSTS


REQUESTS = """\
Requests, times in seconds
                    mean  median  p90    p95    p99
to the first token  0.25     0.5    1  12.35  2,000
a token
all of a request    0.25     0.5    1  12.35  2,000

In all, interrupted
requests                            1,200
completed                               7
offered per second                    2.5
duration, s                         3,000
output tokens per second                1
requests per second                 0.125
preemptions                             3
steps                                  44
requests worked on, in the mean      1.75
blocks of cache at most                 9
blocks of a replica's cache      no limit
"""

COSTS = """\
Cost, of runs one after the other
cycles               3,007
off-chip traffic     2,000  bytes
moved by the HBM         0  bytes
FLOPs                    9
time                 13.85  s
tokens                  40  prefill
tokens per second    2.889
time to first token  13.85  s

Runs, each with what one of it takes
run  times  cycles  seconds  joules
a        3   1,000      0.5
b        1       7    12.35       2
"""


def test_report() -> None:
    """A report is printed whole, and is one line in a list."""
    report = simulate(program("simplified_moe"))
    assert "cycles                     1,474\n" in str(report)
    assert len(repr(report).splitlines()) == 1


def test_others() -> None:
    """Depths, floor plans, bounds and sums of runs say what they found."""
    small = program("simplified_moe")
    assert "1,474" in str(size(small))
    report = simulate(small)
    bounds = lower_bounds(small)
    least = f"{bounds.at_least['cycles']:,}"
    for found, told in (
        (place(small, Mesh(columns=6, rows=6)), "no plan is below"),
        (bounds, least),
        (Cost.of(report, report), "2,948"),
        (RESULTS["design"](), "The front"),
    ):
        assert told in str(found)
        assert any(told in text for text in read(found._repr_html_()).texts)


def test_all_kinds() -> None:
    """Whatever says that it is shown as tables has some."""
    kinds = ShownAsTables.__subclasses__()
    assert len(kinds) > 10
    assert not [kind for kind in kinds if sheet_of.dispatch(kind) is sheet_of.dispatch(object)]
    assert not [kind for kind in kinds if kind.__repr__ is not ShownAsTables.__repr__]

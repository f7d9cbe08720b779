"""A recorded run, timed again: against runs, and what is printed and refused."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from fabric import ConfigurationError, Program, Trace, open_trace, simulate
from fabric.analysis.trace.analysis.what_if import (
    BlockedUnit,
    ChannelWaits,
    ReleasedUnit,
    UnitEnd,
    WhatIf,
)
from fabric.analysis.trace.printing import what_if_sheet
from fabric.analysis.trace.reading.record_in import record_in
from fabric.analysis.trace.reading.wording import Names
from fabric.analysis.trace.selection import TraceOptions
from fabric.graph.wiring.elaborate import elaborate
from fabric.messages.terminal.tables import printed_sheet
from fabric.shell.cli import main
from tests.deadlock.parts import Script
from tests.fabric.retiming.real import recorded
from tests.fabric.trace.chains import chain
from tests.fabric.trace.recording import PROGRAMS, program, record
from tests.profiles import spread

_STUCK: Final = (
    "simplified_moe", "pack_rows", "loop_of_2", "unequal_branches", "ring_of_2", "two_depths",
    "short_branch", "three_rings", "two_at_once", "long_tail",
)  # fmt: skip
"""Programs that deadlock."""


@pytest.fixture(autouse=True)
def fixed_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as to a file."""
    monkeypatch.delenv("COLUMNS", raising=False)


def _bursty() -> Program:
    """Six elements at once now and then; who reads them takes its time."""
    return chain(("s0",) * 6 + ("c40",), ("r0", "c2", "s0"), ("r0", "c6"), elements=4)


def _crossed() -> Program:
    """The first sends two to the left and one to the right; the second reads the right first."""
    with Program("crossed", channel_depth=2) as wired:
        left, right = Script(("s0", "s0", "s1"), rounds=4, counts=(8, 4), name="deal")()
        Script(("r1", "r0", "r0", "c3"), counts=(), name="join")(left, right)
    return wired


@pytest.fixture(scope="module")
def bursty(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return the trace of a run that other depths make shorter."""
    return record(_bursty(), tmp_path_factory.mktemp("bursty"))[1]


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return the trace of a run that other depths block."""
    return record(_crossed(), tmp_path_factory.mktemp("crossed"))[1]


def _channels(trace: Trace) -> list[dict[str, Any]]:
    """Return the rows of the table of channels."""
    table = trace.tables["channels"]
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows()]


def _sent(trace: Trace) -> int:
    """Return how many elements were sent."""
    return len(trace.tables["transfers"])


class TestAgainstRuns:
    @pytest.mark.parametrize("name", spread(PROGRAMS, 3))
    def test_the_same_record(self, tmp_path: Path, name: str) -> None:
        """A trace has the record that is made while a run goes on, but for sizes of elements."""
        wired = program(name)
        depths = {edge.key: 64 for edge in elaborate(wired).edges}
        found = record_in(record(wired, tmp_path, depths=depths)[1])
        expected, _ = recorded(program(name), depths)
        assert expected is not None
        assert np.array_equal(expected.events, found.events)
        assert np.array_equal(expected.first, found.first)
        assert [channel._replace(element_bytes=0) for channel in expected.channels] == [
            *found.channels
        ]
        for each in ("program", "units", "cycles", "clients", "shutdown_cycles", "arbitrated"):
            assert getattr(expected, each) == getattr(found, each), each

    @pytest.mark.parametrize("depth", [1, 2, 3, 6, 20])
    def test_depths(self, bursty: Trace, depth: int) -> None:
        """Cycles, ends of units and waits for channels are those of a run with these depths."""
        found = bursty.what_if({"unit_1.0": depth})
        again = simulate(_bursty(), depths={"unit_1.0": depth})
        assert (again.cycles, True, ()) == (found.cycles, found.exact, found.loop)
        before = simulate(_bursty())
        assert again.cycles is not None
        assert before.cycles is not None
        assert before.cycles == found.cycles_before
        waits = {
            each.name: (each.empty_cycles, each.full_cycles + each.credit_cycles)
            for each in again.channels_counters
        }
        assert (depth == 2) == (not found.channels)
        for each in found.channels:
            assert waits[each.name] == (each.empty_after_cycles, each.full_after_cycles)
        ends = {
            unit.name: again.cycles - unit.idle_cycles
            for unit, was in zip(again.units, before.units, strict=True)
            if again.cycles - unit.idle_cycles != before.cycles - was.idle_cycles
        }
        assert ends == {unit.name: unit.after_cycle for unit in found.units}

    def test_a_deadlock(self, crossed: Trace) -> None:
        """With one slot to the left, each waits for the other, as in a run."""
        found = crossed.what_if({"join.0": 1})
        again = simulate(_crossed(), depths={"join.0": 1})
        assert ("deadlock", None, True) == (again.status, found.cycles, found.exact)
        assert again.deadlock is not None
        (loop,) = again.deadlock["loops"]
        assert [unit["unit"] for unit in loop["units"]] == sorted(unit.name for unit in found.loop)
        assert {(True, "deal.0 -> join.0"), (False, "deal.1 -> join.1")} == {
            (unit.full, unit.channel) for unit in found.loop
        }

    @pytest.mark.parametrize("name", spread(_STUCK, 4))
    @pytest.mark.parametrize("more", [0, 1])
    def test_a_deadlocked_run(self, tmp_path: Path, name: str, more: int) -> None:
        """Units would have gone on if and only if a run with these depths gets further."""
        given = {"reassemble_1.2": 2} if name == "simplified_moe" else {}
        report, trace = record(program(name), tmp_path, depths=given)
        assert report.deadlock is not None
        full = [
            channel["name"].partition(" -> ")[2]
            for loop in report.deadlock["loops"]
            for channel in loop["channels"]
            if channel["held"] >= channel["depth"]
        ]
        held = {channel["reader"]: channel["depth"] for channel in _channels(trace)}
        depths = {option: held[option] + more for option in full}
        found = trace.what_if(depths)
        again = record(program(name), tmp_path, depths=given | depths)[1]

        assert found.stopped
        assert (found.cycles, trace.cycles) == (None, found.cycles_before)
        assert bool(found.released) == (_sent(again) > _sent(trace))
        if more == 0:
            stuck = {unit["unit"] for loop in report.deadlock["loops"] for unit in loop["units"]}
            assert {unit.name for unit in found.loop} <= stuck
            assert found.loop

    def test_work(self, bursty: Trace) -> None:
        """A unit that works half as long: as in a run of a program with one, but not exact."""
        found = bursty.what_if(work={"unit_2": 0.5})
        faster = chain(("s0",) * 6 + ("c40",), ("r0", "c2", "s0"), ("r0", "c3"), elements=4)
        assert simulate(faster).cycles == found.cycles
        assert ("unit_2 works 0.5 times as long, rounded to cycles",) == found.reasons

    def test_a_pattern(self, bursty: Trace) -> None:
        """Later options come over earlier ones."""
        found = bursty.what_if({"unit_*.0": 7, "unit_2.0": 1})
        assert {"unit_1.0": 7, "unit_2.0": 1} == found.depths
        assert simulate(_bursty(), depths=found.depths).cycles == found.cycles

    def test_nothing_changed(self, bursty: Trace) -> None:
        """Then nothing moves."""
        found = bursty.what_if()
        assert (bursty.cycles, (), ()) == (found.cycles, found.units, found.channels)

    def test_very_deep(self, bursty: Trace) -> None:
        """Numbers that no machine word holds are as good as unbounded."""
        deep = bursty.what_if({"unit_1.0": 10**40})
        assert deep.cycles == bursty.what_if({"unit_1.0": 100}).cycles


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "part"),
        [(TraceOptions(window=(0, 20)), "window"), (TraceOptions(nodes="unit_1"), "nodes")],
    )
    def test_a_part(self, tmp_path: Path, options: TraceOptions, part: str) -> None:
        """What was not traced cannot be timed."""
        trace = record(_bursty(), tmp_path, options)[1]
        with pytest.raises(ConfigurationError, match=rf"without --trace-{part}$"):
            trace.what_if({"unit_1.0": 3})

    def test_killed(self, bursty: Trace, tmp_path: Path) -> None:
        """It ends where nobody knows."""
        shutil.copytree(bursty.folder, tmp_path / "trace")
        (tmp_path / "trace" / "end.json").unlink()
        with pytest.raises(ConfigurationError, match="the run ended with killed"):
            open_trace(tmp_path).what_if()

    @pytest.mark.parametrize("table", ["long", "short", "operations"])
    @pytest.mark.parametrize("damaged", [True, False])
    def test_damaged(self, tmp_path: Path, table: str, *, damaged: bool) -> None:
        """A segment that is damaged, or is not there, is missed."""
        folder = record(program("attention"), tmp_path)[1].folder
        segments = list(folder.glob(f"{table}-*.table"))
        assert segments
        for each in segments:
            if damaged:
                each.write_bytes(each.read_bytes()[:-9])
            else:
                each.unlink()
        with pytest.raises(ConfigurationError, match="rows of its tables are missing"):
            open_trace(folder).what_if()

    @pytest.mark.parametrize("clients", [None, 0, [0, "1"], [0, 3], [0, 4]])
    def test_older(self, bursty: Trace, tmp_path: Path, clients: object) -> None:
        """One that does not say who reads from the HBM cannot be told from one without.

        One that names what is no unit is damaged.
        """
        shutil.copytree(bursty.folder, tmp_path / "trace")
        meta = tmp_path / "trace" / "meta.json"
        found = json.loads(meta.read_text(encoding="utf-8"))
        found["off_chip"]["clients"] = clients
        meta.write_text(json.dumps(found), encoding="utf-8")
        said = "clients is damaged: expected numbers below 3, those of its units"
        if clients is None:
            said = "an older step-fabric wrote it"
        with pytest.raises(ConfigurationError, match=rf"{said}$"):
            open_trace(tmp_path).what_if()

    def test_work_of_many(self, tmp_path: Path) -> None:
        """A pattern or the title of a family stands for all its units, and later ones for more."""
        trace = record(program("simplified_moe"), tmp_path)[1]
        family = max(Names(trace).families, key=lambda each: len(each.members))
        each = {trace.unit_names()[unit]: 0.5 for unit in family.members}

        def moved(work: dict[str, float]) -> object:
            found = trace.what_if(work=work)
            return found.cycles, found.units, found.channels

        assert len(each) > 1
        assert moved(each) == moved({family.title: 0.5})
        assert moved({"*": 2.0}) == moved(dict.fromkeys(trace.unit_names(), 2.0))
        assert moved({"*": 2.0, family.title: 0.5}) == moved(
            {**dict.fromkeys(trace.unit_names(), 2.0), **each}
        )

    def test_no_work(self, bursty: Trace) -> None:
        """What works for no time takes none."""
        (name, *_) = (unit.name for unit in bursty.stalls().units if unit.busy_cycles)
        found = bursty.what_if(work={name: 0})
        assert found.cycles is not None
        assert found.cycles <= bursty.cycles

    def test_names(self, bursty: Trace) -> None:
        """Names that are near are told, and numbers have to be in range."""
        for given, expected in (
            (({"unit_3.0": 2}, {}), r"depth of unit_3\.0: no channel .* \(did you mean unit_"),
            (({"unit_1.0": 0}, {}), "depth of unit_1.0 is 0: expected at least 1"),
            (
                ({}, {"unt_1": 2.0}),
                r"work of unt_1: no unit or family .* \(did you mean unit_1\?\)",
            ),
            (({}, {"unit_1": -1.0}), "work of unit_1 is -1.0: expected how many times as long"),
            (({}, {"unit_1": float("nan")}), "work of unit_1 is nan: expected"),
        ):
            with pytest.raises(ConfigurationError, match=expected):
                bursty.what_if(*given)


def _printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert 0 == main(["trace", "what-if", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert "" == err
    return out


class TestPrinted:
    def test_faster(self, capsys: pytest.CaptureFixture[str], bursty: Trace) -> None:
        """Before and after, that it is exact, whose end moved and which waits changed."""
        assert FASTER == _printed(capsys, bursty.folder, "--depth", "unit_1.0=6")

    def test_narrow(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, bursty: Trace
    ) -> None:
        """Nothing is left out: what does not fit stands below."""
        monkeypatch.setenv("COLUMNS", "50")
        assert NARROW == _printed(capsys, bursty.folder, "--depth", "unit_1.0=6")

    def test_deadlock(self, capsys: pytest.CaptureFixture[str], crossed: Trace) -> None:
        """Who would wait for whom, and which channel is full."""
        assert DEADLOCK == _printed(capsys, crossed.folder, "--depth", "join.0=1")

    def test_estimated(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        """Why it is no more than an estimate; and what is said of the HBM."""
        folder = record(program("swiglu"), tmp_path)[1].folder
        out = _printed(capsys, folder, "--depth", "*=1", "--work", "silu_1=2x", "--rows", 1)
        head, *_ = out.split("\n\nUnits")
        assert ESTIMATED == head.partition("\n\n")[2].partition("\n")[2] + "\n"

    @pytest.mark.parametrize("given", ["unit_1", "unit_1=2", "=2x", "unit_1=-2x", "unit_1=nanx"])
    def test_no_factor(self, capsys: pytest.CaptureFixture[str], bursty: Trace, given: str) -> None:
        """What is no factor is refused with the form."""
        assert 2 == main(["trace", "what-if", str(bursty.folder), "--work", given])
        said = f"{given!r}: expected UNIT=FACTORx with a FACTOR below 1,000,000, as in 0.5x or 2x"
        assert said in capsys.readouterr().err


_STOPPED: Final = WhatIf(
    name="ring",
    depths={"a.0": 1_000},
    work={},
    links=math.inf,
    cycles_before=1_300,
    cycles=None,
    reasons=("the HBM serves bursts as they come",),
    units=(),
    channels=(),
    loop=(
        BlockedUnit("c", "c.0 -> d.0", 3, full=True, other="d"),
        BlockedUnit("d", "c.1 -> d.1", 2, full=False, other="c"),
    ),
    stopped=True,
    released=(
        ReleasedUnit("a", "a.0 -> b.0", full=True, cycle=1_200),
        ReleasedUnit("b", "a.1 -> b.1", full=False, cycle=1_250),
        ReleasedUnit("e", "b.0 -> e.0", full=False, cycle=1_260),
    ),
)


class TestSaid:
    """What is printed of a result that is put together by hand."""

    @staticmethod
    def said(shown: int = 15, **changed: Any) -> list[str]:
        """Return the lines about a run that deadlocked, with what is ``changed``."""
        return printed_sheet(what_if_sheet(replace(_STOPPED, **changed), shown)).splitlines()

    def test_released(self) -> None:
        """Who would have gone on, as many as are asked for, and who would still wait."""
        assert RELEASED == "\n".join(self.said(2)) + "\n"
        three = self.said(3)
        assert "  cycle 1,260  e receives from b.0 -> e.0" in three
        assert not any("  and " in line for line in three)
        one = self.said(released=_STOPPED.released[:1], loop=())
        assert "It would have gone on: a in cycle 1,200." == one[2]
        assert "Estimated: a run may not go on there, since" == one[4]
        two = self.said(released=_STOPPED.released[:2])
        assert "It would have gone on: a in cycle 1,200, and 1 more unit after it." == two[2]

    def test_verdicts(self) -> None:
        """What becomes of a run: it goes on, deadlocks, or takes more cycles, fewer or as many."""
        cases: tuple[tuple[dict[str, Any], str], ...] = (
            (
                {"released": ()},
                "It would still deadlock: 2 units would wait for each other for ever.",
            ),
            ({"released": (), "loop": ()}, "It would still deadlock: no unit would go on."),
            ({"cycles": 1_300}, "1,300 cycles before, 1,300 after: as many."),
            ({"cycles": 1_430}, "1,300 cycles before, 1,430 after: 130 more (10.0 %)."),
            ({"cycles": 1_299}, "1,300 cycles before, 1,299 after: 1 fewer (0.1 %)."),
        )
        for changed, verdict in cases:
            given: dict[str, Any] = {"released": (), "stopped": "cycles" not in changed} | changed
            assert verdict == self.said(**given)[2]

    def test_asked(self) -> None:
        """Four depths are named and more are counted; factors and links come after them."""
        depths = {f"{each}.0": 2 for each in "abcde"}
        four = "; ".join(f"{each}.0 2 deep" for each in "abcd")
        for changed, asked in (
            ({"depths": {}, "links": 1}, "as it was run"),
            ({"depths": {}, "links": 2.5}, "links of the network carry 2.5 times as much"),
            ({"depths": dict(list(depths.items())[:4]), "links": 1}, four),
            ({"depths": depths, "links": 1}, f"{four}; 1 more channel"),
            (
                {"work": {"a": 0.25}},
                "a.0 1,000 deep; a works 0.25 times as long; links of the network have no limit",
            ),
        ):
            assert f"ring  {asked}" == self.said(**changed)[0]

    def test_tables(self) -> None:
        """So many rows of each table; exact where there are no reasons."""
        units = tuple(UnitEnd(name, "/x/y.py", 7, 1_000, 1_040) for name in "ab")
        waits = tuple(ChannelWaits(f"{name} -> d", 2, 1_000, 1, 2, 3, 4) for name in "abc")
        found = self.said(
            1, cycles=1_300, reasons=(), units=units, channels=waits, loop=(), released=()
        )
        assert "Exact: a run would take as long." == found[3]
        assert found[5:] == [
            "Units that would end in another cycle",
            "unit  end before  end after  change  wired at",
            "a          1,000      1,040     +40  y.py:7",
            "and 1 more",
            "",
            "Channels, cycles that units would wait for them",
            "channel  depth       empty before  empty after  full before  full after",
            "a -> d   2 to 1,000             1            2            3           4",
            "and 2 more",
        ]


RELEASED = """\
ring  a.0 1,000 deep; links of the network have no limit

It would have gone on: a in cycle 1,200, and 2 more units after it.
  cycle 1,200  a sends to a.0 -> b.0
  cycle 1,250  b receives from a.1 -> b.1
  and 1 more
2 units would still wait for each other:
  c waits for d: c.0 -> d.0 is full, 3 slots
  d waits for c: c.1 -> d.1 is empty
Estimated: a run may not go on there, since
  the HBM serves bursts as they come
Waits for the HBM are as long here as they were in the run.
The record ends there: a run with these depths says whether it completes.
"""

FASTER = """\
chain  unit_1.0 6 deep

192 cycles before, 160 after: 32 fewer (16.7 %).
Exact: a run would take as long.

Units that would end in another cycle
unit    end before  end after  change  wired at
unit_0         192        160     -32  chains.py:14
unit_1         192        160     -32  chains.py:16
unit_2         192        160     -32  chains.py:17

Channels, cycles that units would wait for them
channel               depth   empty before  empty after  full before  full after
unit_0.0 -> unit_1.0  2 to 6           104           72           32           0
unit_1.0 -> unit_2.0  2                 48           16           40          40
"""

NARROW = """\
chain  unit_1.0 6 deep

192 cycles before, 160 after: 32 fewer (16.7 %).
Exact: a run would take as long.

Units that would end in another cycle
unit    end before  end after  change
    wired at
unit_0         192        160     -32
    chains.py:14
unit_1         192        160     -32
    chains.py:16
unit_2         192        160     -32
    chains.py:17

Channels, cycles that units would wait for them
channel              depth    empty  empty    full
                             before  after  before
    full after
unit_0.0 ->          2 to 6     104     72      32
  unit_1.0
             0
unit_1.0 ->          2           48     16      40
  unit_2.0
            40
"""

DEADLOCK = """\
crossed  join.0 1 deep

It would deadlock: 2 units would wait for each other for ever.
  deal waits for join: deal.0 -> join.0 is full, 1 slot
  join waits for deal: deal.1 -> join.1 is empty
Exact: a run would end so.
"""

ESTIMATED = """\
Estimated: a run may not take as long, since
  the HBM serves bursts as they come
  silu_1 works 2 times as long, rounded to cycles
Waits for the HBM are as long here as they were in the run.
"""


@pytest.mark.parametrize("other", [{"cycles": 1}, {"ends": 1}])
def test_a_trace_that_says_otherwise_is_refused(bursty: Trace, other: dict[str, int]) -> None:
    """By a cycle: of the run, or of the end of one unit."""

    class Other:
        cycles = bursty.cycles + other.get("cycles", 0)

        def __getattr__(self, name: str) -> object:
            return getattr(bursty, name)

        def rows(self, query: str) -> list[tuple[Any, ...]]:
            found = bursty.rows(query)
            if "FROM states" in query:
                (first,), *rest = found
                return [(first + other.get("ends", 0),), *rest]
            return found

    with pytest.raises(ConfigurationError, match="rows of its tables are missing"):
        record_in(Other())  # type: ignore[arg-type]  # acts as one

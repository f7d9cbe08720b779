"""Families of units: rows of tables against groups and medians that are worked out here."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from statistics import median_low
from typing import Any

import pytest

from fabric import Program, Trace
from fabric.analysis.trace.analysis.stalled import StalledUnit
from fabric.messages.telling.wording import absent_line, families, spread, those
from fabric.shell.cli import main
from operators import Consumer, LinearOffChipLoad, Map, SiLU, Tensor
from tests.fabric.trace.recording import program, record


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return the trace of 8 experts, some of which get no tokens."""
    return record(program("moe static"), tmp_path_factory.mktemp("run"))[1]


def pattern(name: str) -> str:
    """Return ``name`` without its numbers."""
    return re.sub(r"\d+", "#", name)


def grouped(trace: Trace) -> dict[tuple[str, str, int], list[StalledUnit]]:
    """Return the units that took part by pattern and place."""
    groups = defaultdict(list)
    for unit in trace.stalls().units:
        if unit.elements or unit.busy_cycles or unit.hbm_cycles or unit.capacity_cycles:
            groups[pattern(unit.name), unit.file, unit.line].append(unit)
    return groups


class TestFamilies:
    def test_numbers_and_places(self) -> None:
        """Names that differ in numbers only, at one place; titles have ranges where there are."""
        names = ["a_0", "b", "a_1", "a_2", "a_7", "c_9"]
        places = [1, 1, 1, 1, 2, 1]
        found = families(range(6), names.__getitem__, places.__getitem__)

        assert [("a_0..2", (0, 2, 3)), ("b", (1,)), ("a_7", (4,)), ("c_9", (5,))] == found
        assert [("a_0..2", (2, 3))] == those(found, lambda number: number in {2, 3})

    @pytest.mark.parametrize("numbers", [[3], [5, 1], [4, 1, 9], [8, 1, 2, 9]])
    def test_spread(self, numbers: list[int]) -> None:
        """The median is a member, the lower one of two."""
        found = spread(numbers, lambda number: number)

        assert (min(numbers), median_low(numbers), max(numbers)) == found

    def test_absent_in_one_line(self) -> None:
        """A few families are named, the others counted."""
        found = families([f"{letter}_{n}" for letter in "abcdefgh" for n in range(3)], str)

        assert absent_line(found).startswith("24 units never got an element: a_0..2 (x 3), ")
        assert absent_line(found).endswith("f_0..2 (x 3), 2 more")


class TestStalls:
    def test_medians(self, trace: Trace) -> None:
        """A family's row is its median unit, and the least and the most are its members'."""
        expected = grouped(trace)
        found = trace.stalls().folded.families

        assert {tuple(sorted(unit.name for unit in each)) for each in expected.values()} == {
            tuple(sorted(unit.name for unit in family.units)) for family in found
        }
        assert any(len(each) > 2 for each in expected.values())
        for family in found:
            stalled = [unit.stalled_cycles for unit in family.units]
            least, median, most = (unit.stalled_cycles for unit in family.spread)
            assert (min(stalled), median_low(stalled), max(stalled)) == (least, median, most)

    def test_sums(self, trace: Trace) -> None:
        """Roots and the path by family add up to those by unit."""
        stalls = trace.stalls()
        roots: dict[str, int] = defaultdict(int)
        for each in stalls.roots:
            roots[pattern(each.root.name)] += each.cycles
        folded: dict[str, int] = defaultdict(int)
        for each in stalls.folded.roots:
            folded[
                pattern(re.sub(r"\.\.\d+| \(.*?\)", "", each.root.name)).replace("_i", "_#")
            ] += each.cycles

        assert len(stalls.folded.roots) < len(stalls.roots)
        assert roots == folded
        assert stalls.folded.critical_path.cycles == stalls.critical_path.cycles
        assert stalls.critical_path.cycles == sum(
            share.cycles for share in stalls.folded.critical_path.shares
        )

    def test_printed(
        self, trace: Trace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A row a family, with what is far from the median; with ``--unfold`` a row a unit."""
        monkeypatch.setenv("COLUMNS", "200")
        expected = grouped(trace)
        size, name = max((len(each), key[0]) for key, each in expected.items())
        assert 0 == main(["trace", "stalls", str(trace.folder), "--rows", "1000"])
        table = capsys.readouterr().out.splitlines()
        rows = [line.split() for line in table if line[:1].isalpha()]
        sizes = [
            row[1]
            for row in rows
            if pattern(re.sub(r"_i$", "_0", re.sub(r"\.\.\d+", "", row[0]))) == name
        ]

        assert f"{size:,}" in sizes
        assert 0 == main(["trace", "stalls", str(trace.folder), "--rows", "1000", "--unfold"])
        table = capsys.readouterr().out.splitlines()
        assert {unit.name for unit in trace.stalls().units} <= {
            line.split()[0] for line in table if line
        }


@pytest.mark.parametrize("name", ["slowest-channels", "utilisation", "longest-waits", "occupancy"])
def test_query(trace: Trace, name: str) -> None:
    """Rows by family have the most of those by unit or channel, and fewer rows."""
    measure = {
        "slowest-channels": ("cycles", "most_cycles", "SELECT c.family, sum(cycles) FROM waits "
                             "JOIN channels c USING (channel) GROUP BY c.channel, c.family"),
        "utilisation": ("busy", "most_percent", "SELECT family, 100 * busy_cycles / run.cycles "
                        "FROM states JOIN units USING (unit), run"),
        "longest-waits": ("cycles", "most_cycles",
                          "SELECT family, cycles FROM waits JOIN units USING (unit)"),
        "occupancy": ("held", "most_depth",
                      "SELECT family, depth FROM channels WHERE channel IN "
                      "(SELECT channel FROM transfers)"),
    }  # fmt: skip
    _, column, sql = measure[name]
    most: dict[str, float] = defaultdict(float)
    for family, value in trace.query(sql).rows():
        most[family] = max(most[family], value)
    answer = trace.query(name, fold=True)
    at = answer.columns.index(column)

    rows = answer.rows()
    assert rows
    for row in rows:
        if name == "longest-waits":
            assert row[at] <= most[row[0]]
        else:
            assert row[at] == pytest.approx(most[row[0]], abs=0.06)
    assert len({row[0] for row in rows}) == len(rows) or name == "longest-waits"


def test_titles_of_two_families(tmp_path: Path) -> None:
    """Families whose names and places are alike are told apart in tables by numbers."""
    with Program("alike") as program:
        x = LinearOffChipLoad(Tensor((16, 16)), (16, 16))()
        alike: list[Any] = [Map(SiLU(), name=name) for name in ("x_0_0", "x_1_1")]
        alike += [Consumer(name=name) for name in ("x_0_1", "x_1_0")]
        for stream in [operator(x) for operator in alike][:2]:
            Consumer()(stream)
    _, trace = record(program, tmp_path)
    rows = trace.rows("SELECT name, family FROM units WHERE name LIKE 'x_%' ORDER BY name")
    ((line,),) = trace.rows("SELECT DISTINCT line FROM units WHERE name LIKE 'x_%'")
    title = f"x_0..1_0..1 (test_families.py:{line})"

    assert [[name, family] for name, family in rows] == [
        ["x_0_0", title],
        ["x_0_1", f"{title} 2"],
        ["x_1_0", f"{title} 2"],
        ["x_1_1", title],
    ]


def test_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Units that wait for one family of channels are one row."""
    trace = record(program("simplified_moe"), tmp_path, depths={"reassemble_1.2": 2})[1]
    for options in ((), ("--unfold",)):
        assert 0 == main(["trace", "summary", str(trace.folder), *options])
        *_, left = capsys.readouterr().out.split("\n\n")
        lines = left.splitlines()[2:]
        if options:
            waits = sum(len(unit.channels) or 1 for unit in trace.summary().not_ended)
            assert f"and {waits - 20} more" == lines[-1]
        else:
            (row,) = (line.split() for line in lines if line.startswith("linear_off_chip_load_2"))
            assert ["linear_off_chip_load_2..3", "2"] == row[:2]

"""Rows of cells as lines: nothing is lost, and no line is longer than there is room."""

from __future__ import annotations

import io

import hypothesis.strategies as st
import pytest
from hypothesis import given
from rich.console import Console
from rich.text import Text

from fabric import simulate
from fabric.analysis.deadlock.text import report_lines
from fabric.messages.telling.columns import aligned, width_of
from fabric.messages.telling.sheet import Rows
from fabric.messages.terminal.output import print_line
from fabric.messages.terminal.tables import print_table
from tests.profiles import examples
from tests.symbolic.programs import wired

WORDS = st.lists(st.text("abc_.0", min_size=1, max_size=14), min_size=1, max_size=9)
TABLES = st.integers(1, 6).flatmap(
    lambda count: st.lists(
        st.lists(WORDS.map(" ".join), min_size=count, max_size=count), min_size=1, max_size=4
    )
)


@examples(quick=40, deep=2000)
@given(rows=TABLES, room=st.integers(24, 160))
def test_whole(rows: list[list[str]], room: int) -> None:
    """Every word is there in its row's order, in lines that fit."""
    lines = aligned(rows, room)
    assert max(map(len, lines)) <= room
    for row in rows:
        (alone,) = {" ".join(aligned([row], None))}
        assert alone.split() == " ".join(row).split()
        found = " ".join(aligned([row], room)).split()
        assert sorted(found) == sorted(alone.split())


def test_bands() -> None:
    """Columns that do not fit stand below, each under its title."""
    rows = [("unit", "cycles", "what it does"), ("load", "1,280", "waits for the memory")]
    assert aligned(rows, 80, right=frozenset({1})) == [
        "unit  cycles  what it does",
        "load   1,280  waits for the memory",
    ]
    assert aligned(rows, 24, right=frozenset({1})) == [
        "unit  cycles",
        "    what it does",
        "load   1,280",
        "    waits for the memory",
    ]
    assert aligned([("a b c d e", "1")], 8) == ["a b c d", "  e", "    1"]


def test_long_names() -> None:
    """A name that is longer than the others has a line of its own, where the rest fits then."""
    rows = [
        ("unit", "cycles", "wired at"),
        ("load", "1,280", "a.py:1"),
        ("load_of_b", "7", "a.py:2"),
    ]
    assert aligned(rows, 24, right=frozenset({1})) == [
        "unit    cycles  wired at",
        "load     1,280  a.py:1",
        "load_of_b",
        "             7  a.py:2",
    ]


def test_no_long_names() -> None:
    """They share the line with what is said of them where that is too narrow, or half are long."""
    rows = [("unit", "cycles", "at"), ("load", "1,280", "a.py:1"), ("load_of_b", "7", "a.py:2")]
    bands = ["unit       cycles", "    at", "load        1,280", "    a.py:1"]
    bands += ["load_of_b       7", "    a.py:2"]
    assert aligned(rows, 22, right=frozenset({1})) == [
        "unit    cycles  at",
        "load     1,280  a.py:1",
        "load_of_b",
        "             7  a.py:2",
    ]
    assert aligned(rows, 21, right=frozenset({1})) == bands
    four = [*rows, ("load_of_c", "7", "a.py:3")]
    assert aligned(four, 22, right=frozenset({1})) == [*bands, "load_of_c       7", "    a.py:3"]


def test_limits() -> None:
    """A line may be as long as the room; what is empty has no line; folded words stand further."""
    assert aligned([], 80) == []
    assert width_of([("abc", "de"), ("a", "b")]) == 7
    assert aligned([("abc", "de"), ("a", "")], 7, indent="") == ["abc  de", "a"]
    assert aligned([("abc", "de"), ("a", "")], 8, indent="  ") == ["  abc", "      de", "  a"]
    assert aligned([("a\nbb", "c")], 80) == ["a   c", "bb"]
    assert aligned([("  one two three",)], 10) == ["  one two", "    three"]
    assert aligned([("a", "one two three four five six seven", "z")], 30) == [
        "a  one two three four five   z",
        "     six seven",
    ]
    assert aligned([("a", "b"), ("longer than both",)], 16) == ["a  b", "longer than both"]
    assert aligned([("a", "b"), ("longer than both",)], 15) == ["a  b", "longer than", "both"]


def _printed(table: Rows, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as written:
        print_table(table, console)
    return [line.rstrip() for line in written.get().splitlines()]


def test_titles() -> None:
    """Titles of a table that is too wide are broken; numbers stand right where all are numbers."""
    table = Rows(("name", "off-chip_bytes per cycle", "what"), [("a", 1, 2), ("b", 2, "x")] * 600)
    head = ["name  off-chip_bytes per cycle  what", "a                            1  2"]
    assert _printed(table._replace(shown=1), 36) == [*head, "and 1,199 more"]
    assert _printed(table._replace(rows=table.rows[:1]), 36)[1].endswith("1     2")
    assert _printed(table._replace(shown=1, right=frozenset({2})), 36)[1].endswith("1     2")
    assert _printed(table._replace(rows=table.rows[:2]), 35) == [
        "name  off-chip_  what",
        "      bytes per",
        "          cycle",
        "a             1  2",
        "b             2  x",
    ]
    assert _printed(Rows(("", ""), [("a", 10), ("b", 2)], shown=2), 36) == ["a  10", "b   2"]


def test_long_line() -> None:
    """A console of 100 columns has it whole, a narrower one in parts that stand further in."""
    for width, told in ((100, [149]), (99, [94, 56])):
        console = Console(file=io.StringIO(), width=width)
        with console.capture() as written:
            print_line(console, Text(" ".join(["word"] * 30)))
        assert told == [len(line) for line in written.get().splitlines()]
    console = Console(file=io.StringIO(), width=12)
    with console.capture() as written:
        print_line(console, Text("aaa bbb ccc ddd eee"), 3)
    assert written.get() == "aaa bbb\n   ccc ddd\n   eee\n"


@pytest.mark.parametrize(("columns", "longest"), [(60, 50), (100, 90), (200, 180)])
def test_deadlock(columns: int, longest: int) -> None:
    """A narrow terminal is told the same words to the end, and a wide one has longer lines."""
    stuck = simulate(wired("simplified_moe"), depths={"reassemble_1.2": 2}).explained
    assert stuck is not None
    whole, found = (_sections(report_lines(stuck, width)) for width in (None, columns))
    assert whole == found
    lines = report_lines(stuck, columns)[1:]
    assert longest < max(map(len, lines)) <= columns


def _sections(lines: list[str]) -> list[list[str]]:
    """Return the words of each part of a report."""
    return [sorted(part.split()) for part in "\n".join(lines).split("\n\n")]

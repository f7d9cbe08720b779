"""What a study prints: every kind of study, wide and narrow."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from fabric.explore.study.written.terminal import study_sheet
from fabric.messages.terminal.tables import print_sheet
from tests.fabric.study.written.made import RESULTS, design


def printed(name: str, width: int) -> str:
    """Return what is printed of a study."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_sheet(study_sheet(RESULTS[name]()), console)
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


@pytest.mark.parametrize("name", RESULTS)
def test_printed(name: str, golden: Callable[[str, str], None]) -> None:
    """Answer, counts, what failed, the front, published values and claims."""
    golden(f"{name}.txt", printed(name, 140))


@pytest.mark.parametrize("name", ["design", "paper", "over"])
def test_narrow(name: str, golden: Callable[[str, str], None]) -> None:
    """On a narrow terminal no line is longer than it."""
    text = printed(name, 60)
    assert max(map(len, text.splitlines())) <= 60
    golden(f"{name}_narrow.txt", text)


def test_front() -> None:
    """What is printed as the front is what a comparison of all pairs says."""
    result = design()
    kept = {
        each.index: (each.numbers["cycles"], each.numbers["on_chip_requirement_bytes"])
        for each in result.outcomes
        if each.status == "completed" and each.numbers["off_chip_traffic_bytes"] <= 4_000_000
    }
    front = [
        index
        for index, (a, b) in kept.items()
        if not any(c <= a and d <= b and (c, d) != (a, b) for c, d in kept.values())
    ]
    lines = printed("design", 140).split("The front\n")[1].splitlines()[1:]
    assert sorted(int(line.split()[0]) for line in lines) == front

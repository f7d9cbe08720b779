from __future__ import annotations

from collections.abc import Callable

import pytest

from fabric.display.terminal import plain_text
from tests.fabric.study.written.made import RESULTS, design


def printed(name: str, width: int) -> str:
    return plain_text(RESULTS[name]().sheet(), width) + "\n"


@pytest.mark.parametrize("name", ["design", "paper", "over"])
def test_study_is_printed_as_in_the_snapshot(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.txt", printed(name, 140))


@pytest.mark.parametrize("name", RESULTS)
def test_every_study_fits_a_narrow_terminal(name: str) -> None:
    text = printed(name, 60)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 60


def test_printed_front_is_that_of_brute_force() -> None:
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

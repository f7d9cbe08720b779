from __future__ import annotations

import re
from dataclasses import fields
from itertools import combinations
from pathlib import Path
from typing import Final

import msgspec

from fabric import simulate
from fabric.analysis.deadlock.document import DeadlockReport
from fabric.analysis.deadlock.picture import deadlock_picture
from fabric.analysis.drawing.svg import svg
from fabric.messages.causes import SHOWN, STUCK, BusUse, Cause, Operation
from fabric.runs.counters import UnitCounters
from fabric.timing.engine.off_chip import BusCycles
from tests.deadlock.cases import CASES
from tests.drawing.test_graph import by_hand

ROOT: Final = Path(__file__).parents[1]
TABLE: Final = ROOT / "fabric" / "messages" / "causes.py"


def _linear(colour: str) -> list[float]:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def _contrast_with_white(colour: str) -> float:
    # Web Content Accessibility Guidelines 2.2
    red, green, blue = _linear(colour)
    return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)


def _lab(colour: str) -> tuple[float, float, float]:
    # CIE L*a*b*, in which distances are those that people see.
    red, green, blue = _linear(colour)
    across = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in across)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _assert_distinct(colours: dict[str, str]) -> None:
    for (one, first), (other, second) in combinations(colours.items(), 2):
        pairs = zip(_lab(first), _lab(second), strict=True)
        assert sum((a - b) ** 2 for a, b in pairs) ** 0.5 > 25, (one, other)


def _legend(text: str, pattern: str) -> dict[str, str]:
    return {label: colour for colour, label in re.findall(pattern, text)}


CAUSE_COLOURS: Final = {f"cause {cause}": cause.colour for cause in Cause} | {"stuck": STUCK}


def test_colours_of_causes_are_distinct() -> None:
    _assert_distinct(CAUSE_COLOURS)


def test_colours_of_bus_uses_differ_from_each_other_and_from_causes() -> None:
    uses = {f"use {use}": use.colour for use in BusUse if use is not BusUse.IDLE}
    _assert_distinct(uses | CAUSE_COLOURS)
    assert BusUse.IDLE.colour == Cause.IDLE.colour


def test_all_colours_but_idle_stand_out_from_a_white_page() -> None:
    assert [each for each in Cause if _contrast_with_white(each.colour) < 3] == [Cause.IDLE]
    assert [each for each in BusUse if _contrast_with_white(each.colour) < 3] == [BusUse.IDLE]


def test_colours_of_causes_are_the_same_in_graph_and_deadlock() -> None:
    box = r'fill="(#\w+)">\N{BLACK SQUARE}</text>\n?<text [^>]*>\s*(\w+)\s*</text>'
    graph = _legend(svg(by_hand()), box)
    report = msgspec.convert(simulate(CASES["pack_rows"].build()).deadlock, DeadlockReport)
    deadlock = _legend(svg(deadlock_picture(report)), box)

    assert {cause.label: cause.colour for cause in SHOWN} == graph
    assert {"empty", "full", "capacity"} == deadlock.keys()
    assert deadlock.items() <= graph.items()


def test_colours_of_causes_are_written_in_one_file() -> None:
    sources = [
        file
        for file in (ROOT / "fabric").rglob("*")
        if file.suffix in (".py", ".js", ".css", ".html") and "vendor" not in file.parts
    ]
    colours = re.compile("|".join(cause.colour for cause in Cause), re.IGNORECASE)
    assert [TABLE] == [file for file in sources if colours.search(file.read_text("utf-8"))]


def test_reports_count_cycles_of_every_cause_in_order() -> None:
    counters = [each.name for each in fields(UnitCounters) if each.name.endswith("_cycles")]
    assert [cause.column for cause in Cause] == counters


def test_memories_count_cycles_of_every_bus_use_in_order() -> None:
    assert [use.value for use in BusUse] == [each.name for each in fields(BusCycles)]


def test_waits_count_under_the_cause_of_their_operation() -> None:
    causes = {operation: operation.cause for operation in Operation if operation.cause}
    assert causes == {"receive": "empty", "send": "full", "off-chip": "hbm", "capacity": "capacity"}

"""One word and one colour for one thing, wherever it is shown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import combinations
from pathlib import Path
from typing import Final

import pytest

from fabric.messages.telling.causes import SHOWN, STUCK, BusUse, Cause, Operation
from fabric.runs.counters import UnitCounters
from fabric.timing.engine.off_chip import BusCycles

ROOT: Final = Path(__file__).parents[1]
FABRIC: Final = ROOT / "fabric"
TABLE: Final = FABRIC / "messages" / "telling" / "causes.py"
SHOWN_FILES: Final = (ROOT / "README.md", *sorted(ROOT.glob("tests/**/golden/*.*")))

PAGE_FILES: Final = sorted(
    file
    for file in (FABRIC / "analysis" / "trace" / "pages").rglob("*")
    if file.suffix in (".js", ".css", ".html") and file.parent.name != "vendor"
)

RETIRED: Final = re.compile(
    r"starv(ed|ing)|back-?pressur|room on chip|ROOM none|working|off-chip memory"
    r"|waits for (input|room)|waiting for the HBM",
    re.IGNORECASE,
)
"""Words that were used beside those of the table."""

OTHERS: Final = {
    ("graph/hardware/file.py", "hbm"),
    ("runs/pricing.py", "hbm"),
    ("runs/report.py", "hbm"),
    ("runs/printing.py", "hbm"),
    ("messages/telling/vocabulary.py", "idle"),
    ("analysis/trace/reading/reader.py", "hbm"),
    ("analysis/trace/recorder.py", "hbm"),
}
"""Spelled like a cause: sections of hardware and energy, what a memory counts, a trace's event."""


def _texts(module: Path) -> Iterator[tuple[int, str]]:
    """Yield what a module may print: its texts that are no docstrings, with their lines."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    alone = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def _linear(colour: str) -> list[float]:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def _on_white(colour: str) -> float:
    """Return the contrast of ``colour`` with white; Web Content Accessibility Guidelines 2.2."""
    red, green, blue = _linear(colour)
    return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)


def _lab(colour: str) -> tuple[float, float, float]:
    """Return ``colour`` in CIE L*a*b*, in which distances are those that people see."""
    red, green, blue = _linear(colour)
    across = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in across)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _legend(name: str, pattern: str) -> dict[str, str]:
    """Return the colours by label of a picture that was compared letter for letter."""
    text = (ROOT / "tests" / name).read_text(encoding="utf-8")
    return {label: colour for colour, label in re.findall(pattern, text)}


class TestColours:
    def test_apart(self) -> None:
        """No two causes look alike, nor like what is stuck."""
        found = {cause.value: cause.colour for cause in Cause} | {"stuck": STUCK}
        for (one, first), (other, second) in combinations(found.items(), 2):
            pairs = zip(_lab(first), _lab(second), strict=True)
            assert sum((a - b) ** 2 for a, b in pairs) ** 0.5 > 25, (one, other)

    def test_seen(self) -> None:
        """All stand out from a white page; a unit that is idle shall not."""
        faint = [cause for cause in Cause if _on_white(cause.colour) < 3]
        assert [Cause.IDLE] == faint

    def test_uses_of_buses(self) -> None:
        """Nor do two uses of a memory's bus; but for idleness, they look like no cause."""
        found = {use.value: use.colour for use in BusUse if use is not BusUse.IDLE}
        others = {f"cause {cause}": cause.colour for cause in Cause} | {"stuck": STUCK}
        for (one, first), (other, second) in combinations({**found, **others}.items(), 2):
            pairs = zip(_lab(first), _lab(second), strict=True)
            assert sum((a - b) ** 2 for a, b in pairs) ** 0.5 > 25, (one, other)
        assert not [use for use, colour in found.items() if _on_white(colour) < 3]
        assert BusUse.IDLE.colour == Cause.IDLE.colour

    def test_alike(self) -> None:
        """A cause has one colour in the page, in the graph and in the picture of a deadlock."""
        box = r'<rect [^>]*fill="(#\w+)"/>\n?<text [^>]*>(\w+)</text>'
        page = _legend("fabric/trace/golden/pack_rows.txt", r'"colour": "(#\w+)", "label": "(\w+)"')
        graph = _legend("drawing/golden/by_hand_measured.svg", box)
        deadlock = _legend("deadlock/golden/pack_rows.svg", box)

        assert {cause.label: cause.colour for cause in SHOWN} == page == graph
        assert {"empty", "full", "capacity"} == deadlock.keys()
        assert deadlock.items() <= page.items()


class TestWords:
    @pytest.mark.parametrize("file", SHOWN_FILES, ids=lambda file: file.name)
    def test_shown(self, file: Path) -> None:
        """What is printed, drawn and documented has the words of the table."""
        text = file.read_text(encoding="utf-8")
        assert not [each.group() for each in RETIRED.finditer(text)]

    def test_printed(self) -> None:
        """So has whatever else the fabric may say."""
        found = [
            f"{module.relative_to(ROOT)}:{line}: {text!r}"
            for module in sorted(FABRIC.rglob("*.py"))
            for line, text in _texts(module)
            if RETIRED.search(text)
        ]
        assert not found

    @pytest.mark.parametrize("file", PAGE_FILES, ids=lambda file: file.name)
    def test_on_the_page(self, file: Path) -> None:
        """So has the page of a run; labels and colours of causes come to it from the table."""
        text = file.read_text(encoding="utf-8")
        assert not [each.group() for each in RETIRED.finditer(text)]
        assert not [cause for cause in Cause if cause.colour in text or f'"{cause}"' in text]

    def test_one_table(self) -> None:
        """Causes and their colours are spelled in one place."""
        words = {cause.value for cause in Cause} | {STUCK} | {cause.colour for cause in Cause}
        found = {
            (module.relative_to(FABRIC).as_posix(), text)
            for module in FABRIC.rglob("*.py")
            if module != TABLE
            for _, text in _texts(module)
            if text in words
        }
        assert OTHERS == found

    def test_columns(self) -> None:
        """A report has a counter for every cause, in their order."""
        counters = [each.name for each in fields(UnitCounters) if each.name.endswith("_cycles")]
        assert [cause.column for cause in Cause] == counters

    def test_uses_of_buses(self) -> None:
        """A memory that counts has a counter for every use of its buses, in their order."""
        assert [use.value for use in BusUse] == [each.name for each in fields(BusCycles)]

    def test_operations(self) -> None:
        """A wait counts under what it waits for; one for a turn is told apart by its channels."""
        told = {operation: operation.cause for operation in Operation if operation.cause}
        assert {"receive": "empty", "send": "full", "off-chip": "hbm", "capacity": "capacity"} == (
            told
        )

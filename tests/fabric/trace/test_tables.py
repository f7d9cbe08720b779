"""Tables on consoles of different widths."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from fabric.messages.telling.sheet import Rows, Title
from fabric.messages.terminal.tables import print_sheet, print_table

COLUMNS = ("unit", "busy", "back-pressured", "mostly", "wired at")
ROWS = (
    ("load_gate_of_expert_22", 1_234_567, 89, "from broadcast_pack_22_0", "experts.py:101"),
    ("route", 0, 535_099, "to route_scales", "moe.py:97"),
)


def _printed(width: int) -> str:
    written = StringIO()
    print_table(Rows(COLUMNS, ROWS), Console(file=written, width=width))
    return written.getvalue()


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (100, """\
unit                         busy  back-pressured  mostly                    wired at
load_gate_of_expert_22  1,234,567              89  from broadcast_pack_22_0  experts.py:101
route                           0         535,099  to route_scales           moe.py:97
"""),
        (88, """\
unit                         busy      back-  mostly                    wired at
                                   pressured
load_gate_of_expert_22  1,234,567         89  from broadcast_pack_22_0  experts.py:101
route                           0    535,099  to route_scales           moe.py:97
"""),
        (60, """\
unit                         busy      back-
                                   pressured
    mostly                    wired at
load_gate_of_expert_22  1,234,567         89
    from broadcast_pack_22_0  experts.py:101
route                           0    535,099
    to route_scales           moe.py:97
"""),
    ],
)  # fmt: skip
def test_widths(width: int, expected: str) -> None:
    """Titles are broken first; then columns stand below, and none is left out or cut."""
    assert expected == _printed(width)


def test_rows_left_out() -> None:
    """Rows that are not shown are counted."""
    written = StringIO()
    print_table(Rows(COLUMNS, ROWS, 1), Console(file=written, width=100))

    assert "and 1 more" == written.getvalue().splitlines()[-1]


@pytest.mark.parametrize(("width", "lines"), [(99, 2), (100, 1)])
def test_long_titles(width: int, lines: int) -> None:
    """From 100 columns on a line is printed whole: what is copied from it has no breaks."""
    written = StringIO()
    print_sheet([Title("Cycles", ", and so on" * 10)], Console(file=written, width=width))

    assert lines == len(written.getvalue().lstrip("\n").splitlines())


def test_title() -> None:
    """A long title is broken between words where it does not fit."""
    written = StringIO()
    title = Title("Cycles", ", each charged to the end of its chain")
    print_sheet([title], Console(file=written, width=30))

    assert "\nCycles, each charged to the\n  end of its chain\n" == written.getvalue()

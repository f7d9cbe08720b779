"""Tables on consoles of different widths."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from fabric.terminal.tables import print_table, print_title

COLUMNS = ("unit", "busy", "back-pressured", "mostly", "wired at")
ROWS = (
    ("load_gate_of_expert_22", 1_234_567, 89, "from broadcast_pack_22_0", "experts.py:101"),
    ("route", 0, 535_099, "to route_scales", "moe.py:97"),
)


def _printed(width: int, spare: tuple[str, ...] | None = ("wired at", "mostly")) -> str:
    written = StringIO()
    print_table(Console(file=written, width=width), COLUMNS, ROWS, 5, spare=spare)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


class TestTable:
    def test_wide(self) -> None:
        """Where there is room a table is what it is without spare columns."""
        expected = """\
unit                         busy  back-pressured  mostly                    wired at
load_gate_of_expert_22  1,234,567              89  from broadcast_pack_22_0  experts.py:101
route                           0         535,099  to route_scales           moe.py:97
"""
        assert [expected] * 2 == [_printed(100), _printed(100, None)]

    @pytest.mark.parametrize(
        ("width", "expected"),
        [
            (80, """\
                                       back-
unit                         busy  pressured  mostly                wired at
load_gate_of_expert_22  1,234,567         89  from broad…pack_22_0  expert…y:101
route                           0    535,099  to route_scales       moe.py:97
"""),
            (60, """\
                                       back-
unit                         busy  pressured  mostly
load_gate_of_expert_22  1,234,567         89  from br…k_22_0
route                           0    535,099  to rout…scales
"""),
            (40, """\
                                   back-
unit                     busy  pressured
load_gate…xpert_22  1,234,567         89
route                       0    535,099
"""),
        ],
    )  # fmt: skip
    def test_narrow(self, width: int, expected: str) -> None:
        """Spare columns are left out first; names are cut in the middle, numbers never."""
        assert expected == _printed(width)
        assert max(map(len, expected.splitlines())) <= width


@pytest.mark.parametrize(("width", "lines"), [(99, 2), (100, 1)])
def test_long_titles(width: int, lines: int) -> None:
    """From 100 columns on a line is printed whole: what is copied from it has no breaks."""
    written = StringIO()
    print_title(Console(file=written, width=width), "Cycles", ", and so on" * 10)

    assert lines == len(written.getvalue().lstrip("\n").splitlines())


def test_title() -> None:
    """A long title is broken between words where it does not fit."""
    written = StringIO()
    print_title(Console(file=written, width=30), "Cycles", ", each charged to the end of its chain")

    assert "\nCycles, each charged to the\n  end of its chain\n" == written.getvalue()

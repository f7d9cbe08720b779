"""Tables on a console, the way all of ``trace`` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_table", "print_title"]

_KEPT: Final = 36
"""Names and numbers up to this length are not broken where a table is too wide."""


def print_title(console: Console, title: str, note: str = "") -> None:
    """Print the head of a table behind an empty line."""
    console.print()
    console.print(Text.assemble((title, "bold"), note), soft_wrap=True)


def print_table(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[object]], shown: int
) -> None:
    """Print at most ``shown`` rows; whole numbers get thousands separators and stand right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns):
        text = any(_is_text(row[number]) for row in rows)
        longest = max((len(_cell(row[number])) for row in rows[:shown]), default=0)
        table.add_column(
            column,
            justify="left" if text else "right",
            overflow="fold",
            min_width=min(longest, _KEPT) if number == 0 or not text else None,
        )
    for row in rows[:shown]:
        table.add_row(*(Text(_cell(value)) for value in row))
    console.print(table)
    if len(rows) > shown:
        console.print(f"and {len(rows) - shown:,} more", style="dim")


def _is_text(value: object) -> bool:
    """Whether ``value`` reads from the left; digits in a text do not."""
    return (
        isinstance(value, str)
        and not value.strip("+-").replace(".", "").replace(",", "").isdecimal()
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)

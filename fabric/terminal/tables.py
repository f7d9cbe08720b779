"""Tables on a console, the way all of ``trace`` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from fabric.telling.columns import GAP, aligned
from fabric.terminal.output import print_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_table", "print_title"]

_KEPT: Final = 36
"""Names and numbers up to this length are not broken where a table is too wide."""


_NAME: Final = 12
"""On a narrow console a name is not cut below this length, where a column can be left out."""

_FIRST: Final = 24
"""The same of the first column, which says what a row is about."""


def print_title(console: Console, title: str, note: str = "") -> None:
    """Print the head of a table behind an empty line."""
    console.print()
    print_line(console, Text.assemble((title, "bold"), note))


def print_table(
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    shown: int,
    *,
    spare: Sequence[str] | None = None,
) -> None:
    """Print at most ``shown`` rows; whole numbers get thousands separators and stand right.

    Args:
        console: where to.
        columns: their titles.
        rows: a cell for each column.
        shown: rows at most.
        spare: columns to leave out where the table is too wide, the first one first; then names
            are cut in the middle. Where None, nothing is left out: columns at the end go to
            further lines of their rows.
    """
    cells = [[_cell(value) for value in row] for row in rows[:shown]]
    kept = list(range(len(columns)))
    texts = [any(_is_text(row[number]) for row in rows) for number in kept]
    widths = [max((len(row[number]) for row in cells), default=0) for number in kept]
    heads = [max(map(len, title.split("\n"))) for title in columns]
    natural = _all_of(max(pair) for pair in zip(heads, widths, strict=True))
    if spare is None and natural > console.width:
        right = frozenset(number for number, text in enumerate(texts) if not text)
        titles = [title.replace("\n", " ") for title in columns]
        for line in aligned([titles, *cells], console.width, right=right):
            console.print(Text(line), soft_wrap=True)
        _print_rest(console, rows, shown)
        return
    if spare is not None and natural > console.width:
        spared = [columns.index(title) for title in spare]
        columns = [title.replace("-", "-\n") for title in columns]
        kept, widths = _fitted(console.width, columns, widths, texts, spared)
        cells = [
            [_cut(each, widths[n]) if texts[n] else each for n, each in enumerate(row)]
            for row in cells
        ]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number in kept:
        _add_column(table, columns[number], widths[number], text=texts[number], first=number == 0)
    for row in cells:
        table.add_row(*(Text(row[number]) for number in kept))
    console.print(table)
    _print_rest(console, rows, shown)


def _print_rest(console: Console, rows: Sequence[object], shown: int) -> None:
    if len(rows) > shown:
        console.print(f"and {len(rows) - shown:,} more", style="dim")


def _add_column(table: Table, title: str, width: int, *, text: bool, first: bool) -> None:
    table.add_column(
        title,
        justify="left" if text else "right",
        overflow="fold",
        min_width=min(width, _KEPT) if first or not text else None,
    )


def _all_of(widths: Iterable[int]) -> int:
    """Return the width of a table whose columns have ``widths``."""
    return sum(width + GAP for width in widths) - GAP


def _fitted(
    room: int,
    titles: Sequence[str],
    longest: Sequence[int],
    texts: Sequence[bool],
    spare: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Return the columns that stay, and the widths that let them fit into ``room``.

    Args:
        room: columns of the console.
        titles: of the table's columns.
        longest: the width of each one's widest cell.
        texts: whether it has names, which can be cut.
        spare: what to leave out, the first one first.
    """
    heads = [max(map(len, title.split("\n"))) for title in titles]
    widths = [max(pair) for pair in zip(heads, longest, strict=True)]
    least = [
        max(head, min(width, _NAME if number else _FIRST)) if text else width
        for number, (head, width, text) in enumerate(zip(heads, widths, texts, strict=True))
    ]
    kept = list(range(len(titles)))
    for number in spare:
        if _all_of(least[n] for n in kept) <= room:
            break
        kept.remove(number)
    while _all_of(widths[n] for n in kept) > room:
        # What a row is about is cut after all else.
        cut = [n for n in kept if texts[n] and widths[n] > least[n]]
        cut = cut[1:] or cut or [n for n in kept if texts[n] and widths[n] > heads[n]]
        if not cut:
            break
        widest = max(cut, key=widths.__getitem__)
        widths[widest] -= 1
    return kept, widths


def _cut(name: str, width: int) -> str:
    """Return ``name`` with its middle left out where it is longer than ``width``."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}\N{HORIZONTAL ELLIPSIS}{name[len(name) - end :]}"


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

"""Sheets on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from rich.text import Text

from fabric.display.columns import aligned_rows, width_of
from fabric.display.parts import Bar, Block, Line, Markup, Part, Rows, Title, cell_text
from fabric.messages.output import print_line, printed, terminal_columns

if TYPE_CHECKING:
    from rich.console import Console

_PIECES: Final = re.compile(r"[^-._/ ]*[-._/ ]?")
"""The pieces of a title in a table that is too wide."""

_TITLE: Final = 10
"""A title of at most this length is not broken."""


def printed_sheet(sheet: Iterable[Part], *, columns: int | None = None, plain: bool = False) -> str:
    """Return ``sheet`` as text for a console like standard output."""
    text = printed(lambda console: print_sheet(sheet, console), columns=columns, plain=plain)
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def plain_text(sheet: Iterable[Part], columns: int | None = None) -> str:
    """Return ``sheet`` as text without colours and without a final newline."""
    return printed_sheet(sheet, columns=columns, plain=True).removesuffix("\n")


def print_sheet(sheet: Iterable[Part], console: Console) -> None:
    """Print the parts of ``sheet``, with an empty line before each title."""
    for part in sheet:
        match part:
            case Title(title, note):
                console.print()
                print_line(console, Text.assemble((title, "bold"), note))
            case Line(pieces, indent):
                print_line(console, Text.assemble(*pieces), indent)
            case Block(lines):
                for text in lines(terminal_columns(console)):
                    console.print(Text(text), soft_wrap=True)
            case Rows():
                _print_table(part, console)


def _print_table(table: Rows, console: Console) -> None:
    """Print ``table``; titles are broken first, then columns move to further lines."""
    first, columns = table.rows[: table.shown], range(len(table.columns))
    kept = [n for n in columns if not any(isinstance(row[n], Bar | Markup) for row in first)]
    cells = [[cell_text(row[n]) for n in kept] for row in first]
    on_right = table.right_columns()
    right = frozenset(place for place, n in enumerate(kept) if n in on_right)
    titles = [table.columns[n] for n in kept]
    if width_of([titles, *cells]) > console.width:
        longest = [max((len(row[n]) for row in cells), default=0) for n in range(len(titles))]
        titles = list(map(_broken_title, titles, longest))
    head = [titles] if any(titles) else []
    for number, lines in enumerate(aligned_rows([*head, *cells], console.width, right=right)):
        for text in lines:
            console.print(Text(text, "dim" if number < len(head) else ""), soft_wrap=True)
    if len(table.rows) > len(cells):
        console.print(f"and {len(table.rows) - len(cells):,} more", style="dim")


def _broken_title(title: str, width: int) -> str:
    """Return ``title`` in lines as wide as its column or its longest piece."""
    pieces = _PIECES.findall(title)
    width = max(width, _TITLE, *(len(piece.rstrip()) for piece in pieces))
    lines = [""]
    for piece in pieces:
        if len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)

"""Parts of a result's sheet: lines, tables and pictures, which each medium lays out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from fabric.messages.causes import Cause

_NUMBER: Final = re.compile(r"[+-]?[\d,]*\.?\d+(e[+-]\d+)?")

SHOWN: Final = 15
"""The most rows of a table by default."""

Style: TypeAlias = Literal["", "bold", "bold red", "dim", "green", "red", "yellow"]


class Line(NamedTuple):
    """A line of styled texts; ``indent`` is for its continuation in a narrow terminal."""

    pieces: tuple[tuple[str, Style], ...]
    indent: int = 2


class Title(NamedTuple):
    """The head of a table, with notes."""

    title: str
    note: str = ""


class Rows(NamedTuple):
    """A table in the ``sheet()`` of a result.

    Attributes:
        columns: titles; a table with only empty titles has no head.
        rows: cells; None is an empty cell. A terminal leaves out columns with drawn cells.
        shown: the most rows, or None for all.
        right: columns that are right-aligned although they contain words.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    shown: int | None = None
    right: frozenset[int] = frozenset()

    def right_columns(self) -> set[int]:
        return {
            n
            for n in range(len(self.columns))
            if n in self.right or all(is_number(row[n]) for row in self.rows)
        }


class Bar(NamedTuple):
    """A cell with the shares of a unit's cycles, from 0 to 1, drawn in the causes' colours."""

    shares: Mapping[Cause, float]


class Markup(str):
    """A cell of HTML, such as a small picture or a link."""

    __slots__ = ()


class Block(NamedTuple):
    """Lines that are already laid out, for a width in columns or None."""

    lines: Callable[[int | None], Sequence[str]]


class Fold(NamedTuple):
    """Further parts, which HTML unfolds and a terminal leaves out."""

    title: str
    parts: Iterable[Part]


class Drawing(NamedTuple):
    """A picture as SVG, which a terminal leaves out."""

    svg: Callable[[], str]


Part: TypeAlias = "Block | Drawing | Fold | Line | Rows | Title"

Sheet: TypeAlias = Iterator[Part]


def line(*pieces: str | tuple[str, Style], indent: int = 2) -> Line:
    """Return a line of ``pieces``; one without a style is plain."""
    return Line(tuple((piece, "") if isinstance(piece, str) else piece for piece in pieces), indent)


def cell_text(value: object) -> str:
    """Return the text of a cell; numbers get thousands separators."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def is_number(value: object) -> bool:
    """Whether a cell is right-aligned: a number, the text of a number, or an empty cell."""
    if isinstance(value, str):
        return not value or _NUMBER.fullmatch(value) is not None
    return not isinstance(value, Bar)

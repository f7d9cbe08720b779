"""Titles, lines and tables of results, which a terminal or a notebook lays out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from typing_extensions import override

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
    """A table.

    Attributes:
        columns: titles; a table with only empty titles has no head.
        rows: cells; None is an empty cell.
        shown: the most rows, or None for all.
        right: columns that are right-aligned although they contain words.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    shown: int | None = None
    right: frozenset[int] = frozenset()


class Block(NamedTuple):
    """Lines that are already laid out, for a width in columns or None."""

    lines: Callable[[int | None], Sequence[str]]


Part: TypeAlias = Block | Line | Rows | Title

Sheet: TypeAlias = Iterator[Part]
"""From top to bottom."""


def line(*pieces: str | tuple[str, Style], indent: int = 2) -> Line:
    """Return a line of ``pieces``; one without a style is plain."""
    return Line(tuple((piece, "") if isinstance(piece, str) else piece for piece in pieces), indent)


def cell_text(value: object) -> str:
    """Return what a cell says; numbers get thousands separators."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def is_number(value: object) -> bool:
    """Whether a cell stands right in its column: it is a number, or the text of one."""
    return not isinstance(value, str) or _NUMBER.fullmatch(value) is not None


Form: TypeAlias = Literal["html", "svg", "text"]
"""The form of a notebook, a picture alone, or the form of a terminal."""

_drawers: list[Callable[[object, Form], str | None]] = []


def draws(drawer: Callable[[object, Form], str | None]) -> None:
    """Set the function that draws results."""
    _drawers[:] = [drawer]


def shown(thing: object, form: Form = "html") -> str | None:
    """Return ``thing`` in ``form``; None if it is empty."""
    return _drawers[0](thing, form) if _drawers else None


class Shown:
    """A result that a notebook shows."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return shown(self)


class ShownAsTables(Shown):
    """A result that prints as its command does."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return shown(self, "text") or ""


class ShownInShort(Shown):
    """A result with the ``repr`` that rich would print."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({fields})"

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        """Yield names and values."""
        raise NotImplementedError

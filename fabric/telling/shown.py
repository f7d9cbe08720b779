"""How programs, streams and reports show themselves, without knowing who draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

__all__ = ["draws", "in_short", "shown"]

_drawers: list[Callable[[object], str | None]] = []


def draws(drawer: Callable[[object], str | None]) -> None:
    """Let ``drawer`` draw what is shown from now on."""
    _drawers[:] = [drawer]


def shown(thing: object) -> str | None:
    """Return ``thing`` as a picture or a page; None where there is nothing to be seen."""
    return _drawers[0](thing) if _drawers else None


class Telling(Protocol):
    """What says in pairs what it is, as rich shows it."""

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        """Yield names and values."""
        ...


def in_short(thing: Telling) -> str:
    """Return the one line that rich would show, for ``repr``."""
    told = ", ".join(f"{name}={value!r}" for name, value in thing.__rich_repr__())
    return f"{type(thing).__name__}({told})"

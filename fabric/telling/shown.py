"""How programs and reports show themselves in notebooks, without knowing who draws them."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["draws", "shown"]

_drawers: list[Callable[[object], str | None]] = []


def draws(drawer: Callable[[object], str | None]) -> None:
    """Let ``drawer`` draw what is shown from now on."""
    _drawers[:] = [drawer]


def shown(thing: object) -> str | None:
    """Return ``thing`` as a picture or a page; None where there is nothing to be seen."""
    return _drawers[0](thing) if _drawers else None

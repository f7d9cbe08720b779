"""How things show themselves in notebooks, without knowing who draws them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

__all__ = ["Form", "draws", "shown"]

Form: TypeAlias = Literal["html", "svg"]
"""As a notebook shows it, or the picture alone."""

_drawers: list[Callable[[object, Form], str | None]] = []


def draws(drawer: Callable[[object, Form], str | None]) -> None:
    """Let ``drawer`` draw what is shown from now on."""
    _drawers[:] = [drawer]


def shown(thing: object, form: Form = "html") -> str | None:
    """Return ``thing`` in ``form``; None where there is nothing to be seen."""
    return _drawers[0](thing, form) if _drawers else None

"""How things show themselves, without knowing who draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, Protocol, TypeAlias

__all__ = ["Form", "draws", "in_short", "shown"]

Form: TypeAlias = Literal["html", "svg"]
"""As a notebook shows it, or the picture alone."""

_drawers: list[Callable[[object, Form], str | None]] = []


def draws(drawer: Callable[[object, Form], str | None]) -> None:
    """Let ``drawer`` draw what is shown from now on."""
    _drawers[:] = [drawer]


def shown(thing: object, form: Form = "html") -> str | None:
    """Return ``thing`` in ``form``; None where there is nothing to be seen."""
    return _drawers[0](thing, form) if _drawers else None


class Telling(Protocol):
    """What says in pairs what it is, as rich shows it."""

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        """Yield names and values."""
        ...


def in_short(thing: Telling) -> str:
    """Return the one line that rich would show, for ``repr``."""
    told = ", ".join(f"{name}={value!r}" for name, value in thing.__rich_repr__())
    return f"{type(thing).__name__}({told})"

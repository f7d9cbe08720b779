"""How things show themselves, without knowing who draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, Protocol, TypeAlias

from typing_extensions import override

__all__ = ["Form", "ShownAsTables", "draws", "in_short", "shown"]

Form: TypeAlias = Literal["html", "svg", "text"]
"""As a notebook shows it, the picture alone, or as a terminal shows it."""

_drawers: list[Callable[[object, Form], str | None]] = []


def draws(drawer: Callable[[object, Form], str | None]) -> None:
    """Let ``drawer`` draw what is shown from now on."""
    _drawers[:] = [drawer]


def shown(thing: object, form: Form = "html") -> str | None:
    """Return ``thing`` in ``form``; None where there is nothing to be seen."""
    return _drawers[0](thing, form) if _drawers else None


class ShownAsTables:
    """A result whose ``repr`` is the text of the command that prints it.

    ``print`` and the prompt show it as the command does, a notebook as tables.
    """

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return shown(self, "text") or super().__repr__()

    def _repr_html_(self) -> str | None:
        """What a notebook shows of it: the same tables."""
        return shown(self)


class Telling(Protocol):
    """What says in pairs what it is, as rich shows it."""

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        """Yield names and values."""
        ...


def in_short(thing: Telling) -> str:
    """Return the one line that rich would show, for ``repr``."""
    told = ", ".join(f"{name}={value!r}" for name, value in thing.__rich_repr__())
    return f"{type(thing).__name__}({told})"

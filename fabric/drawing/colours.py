"""Colours that several drawings share, besides those of causes."""

from __future__ import annotations

from typing import Final

from fabric.telling.causes import Cause

__all__ = ["KIND_FILL", "shade"]

KIND_FILL: Final = {"compute": "#dbe9fb", "memory": "#dff3e0", "routing": "#f1f1f1"}
"""Fills of boxes by the kind of unit."""

_DARKEST: Final = 0.7
"""How much of the colour a unit has that is always busy: dark text can be read on it."""


def shade(share: float) -> str:
    """Return the fill of a unit that is busy for ``share`` of a run: white where it never is."""
    part = _DARKEST * max(0.0, min(1.0, share))
    colour = Cause.BUSY.colour
    mixed = (round(255 + part * (int(colour[at : at + 2], 16) - 255)) for at in (1, 3, 5))
    return "#" + "".join(f"{value:02x}" for value in mixed)

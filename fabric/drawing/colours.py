"""Colours of pictures: as attributes for white paper, and by a style sheet for dark paper.

Attributes are what every program that reads SVG understands; browsers and notebooks with a dark
theme follow the style sheet. Colours of causes are the same on both,
but for that of idle units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fabric.telling.causes import STUCK, Cause

__all__ = [
    "BOX",
    "FAINT",
    "INK",
    "KIND",
    "LINE",
    "PAPER",
    "RED",
    "REST",
    "SCOPE",
    "Paint",
    "style",
    "tint",
]

SCOPE: Final = "step-picture"
"""The class of a picture's root: its style sheet says nothing of what else stands in a page."""


@dataclass(frozen=True)
class Paint:
    """A colour that follows the theme.

    Attributes:
        name: its class.
        light: on white paper.
        dark: on dark paper.
    """

    name: str
    light: str
    dark: str

    @property
    def fill(self) -> str:
        """The attributes of what is filled with it."""
        return f'class="{self.name}" fill="{self.light}"'

    @property
    def stroke(self) -> str:
        """The attributes of what is drawn with it."""
        return f'class="{self.name}-line" stroke="{self.light}"'


PAPER: Final = Paint("paper", "#ffffff", "#14181d")
INK: Final = Paint("ink", "#1c1c1c", "#e9edf1")
FAINT: Final = Paint("faint", "#555555", "#a9b4bf")
LINE: Final = Paint("line", "#7d7d7d", "#8793a0")
RED: Final = Paint("red", STUCK, "#ff7085")
"""Of what can never go on."""

BOX: Final = {
    "compute": Paint("compute", "#dbe9fb", "#1b3350"),
    "memory": Paint("memory", "#dff3e0", "#1c3d25"),
    "routing": Paint("routing", "#f1f1f1", "#2b3138"),
}
"""Boxes by the kind of unit."""

KIND: Final = {
    "compute": Paint("compute-edge", "#3b6fb6", "#6ea4ec"),
    "memory": Paint("memory-edge", "#3a8a4a", "#66bd78"),
    "routing": Paint("routing-edge", "#8a8a8a", "#8a8a8a"),
}
"""Edges of boxes by the kind of unit."""

REST: Final = Paint("rest", Cause.IDLE.colour, "#39414a")
"""Of idle units: it does not stand out."""

_PAINTS: Final = (PAPER, INK, FAINT, LINE, RED, REST, *BOX.values(), *KIND.values())

_STRONGEST: Final = 0.5
"""How opaque the tint of a box is at most: text can be read on it, light and dark."""


def style() -> str:
    """Return the style sheet of a picture: its colours on dark paper.

    JupyterLab and VS Code say themselves whether they are dark; elsewhere the browser does.
    """
    said_light = "[data-jp-theme-light=true] *,.vscode-light *"
    by_browser = _dark(f".{SCOPE}:not({said_light})")
    by_notebook = _dark(f":is([data-jp-theme-light=false],.vscode-dark) .{SCOPE}")
    return f"@media (prefers-color-scheme:dark){{{by_browser}}}{by_notebook}"


def tint(shares: Mapping[Cause, float]) -> tuple[Cause, float]:
    """Return the cause that dominates, and how opaque a box is in its colour, from 0 to 0.5.

    What was idle for most of a run has no tint.
    """
    cause = max(shares, key=lambda each: shares[each])
    strength = 0.0 if cause is Cause.IDLE else max(0.0, min(1.0, shares[cause]))
    return cause, _STRONGEST * strength


def _dark(root: str) -> str:
    return "".join(
        f"{root} .{paint.name}{{fill:{paint.dark}}}{root} .{paint.name}-line{{stroke:{paint.dark}}}"
        for paint in _PAINTS
    )

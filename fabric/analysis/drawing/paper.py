"""Colours, sizes of text, and the frame of pictures.

Shapes have the colours for white paper. A style sheet replaces them in browsers and notebooks with
a dark theme.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, TypeAlias

from rich.cells import cell_len

from fabric.messages.causes import STUCK, Cause

Size: TypeAlias = tuple[float, float]
"""Width and height in pixels."""

SMALL: Final = 10
"""Font size in pixels of most texts."""

_FONT: Final = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_CHARACTER_WIDTH: Final = 0.61
_LINE_HEIGHT: Final = 1.2
_LONGEST: Final = 48

PAPER: Final = "#ffffff"
INK: Final = "#1c1c1c"
FAINT: Final = "#555555"
LINE: Final = "#7d7d7d"

BOX: Final = {"compute": "#dbe9fb", "memory": "#dff3e0", "routing": "#f1f1f1"}
"""Boxes by the kind of unit."""

EDGE: Final = {"compute": "#3b6fb6", "memory": "#3a8a4a", "routing": "#8a8a8a"}
"""Edges of boxes by the kind of unit."""

_ON_DARK: Final = {
    PAPER: "#14181d", INK: "#e9edf1", FAINT: "#a9b4bf", LINE: "#8793a0",
    "#dbe9fb": "#1b3350", "#dff3e0": "#1c3d25", "#f1f1f1": "#2b3138",
    "#3b6fb6": "#6ea4ec", "#3a8a4a": "#66bd78",
    STUCK: "#ff7085", Cause.IDLE.colour: "#39414a",
}  # fmt: skip

_EYE: Final = (0.2126, 0.7152, 0.0722)
"""Shares of red, green and blue in luminance."""

_DARKEST: Final = 0.14
"""The least luminance on dark paper of colours that are not in ``_ON_DARK``."""

_SCOPE: Final = "step-picture"
"""The class of a picture's root, so that its style sheet leaves the rest of a page unchanged."""

_STRONGEST: Final = 0.5
"""The most opaque tint on which text is readable, light and dark."""


def on_dark(colour: str) -> str:
    """Return the replacement of ``colour`` on dark paper."""
    if colour in _ON_DARK:
        return _ON_DARK[colour]
    levels = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    while (
        sum(part * (level / 255) ** 2.2 for part, level in zip(_EYE, levels, strict=True))
        < _DARKEST
    ):
        levels = [level + (255 - level) // 20 for level in levels]
    return "#" + "".join(f"{level:02x}" for level in levels)


def tint(shares: Mapping[Cause, float]) -> str:
    """Return the colour of the cause with the largest share, and half of the share as opacity."""
    cause = max(shares, key=shares.__getitem__)
    strength = 0.0 if cause is Cause.IDLE else shares[cause]
    return f"{cause.colour}{round(255 * _STRONGEST * strength):02x}"


def extent(lines: Sequence[str], size: float) -> Size:
    """Return the width and height of ``lines`` in a font of ``size`` pixels."""
    cells = max(map(cell_len, lines), default=0)
    return cells * size * _CHARACTER_WIDTH, len(lines) * size * _LINE_HEIGHT


def shortened(name: str) -> str:
    """Return ``name``, without its middle if it is too long for a box."""
    if len(name) <= _LONGEST:
        return name
    return f"{name[: _LONGEST - 17]}\N{HORIZONTAL ELLIPSIS}{name[-16:]}"


def framed(title: str, size: Size, body: str) -> str:
    """Return an SVG document with the style sheet for the colours of ``body``."""
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{_SCOPE}" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONT}" '
        'style="max-width:100%;height:auto">\n'
        f"<title>{escape(title)}</title><style>{_style(body)}</style>\n{body}</svg>\n"
    )


def _style(body: str) -> str:
    uses = sorted(set(re.findall(r'(fill|stroke)="(#\w{6})"', body)))

    def dark(root: str) -> str:
        return "".join(
            f'{root} [{use}="{colour}"]{{{use}:{on_dark(colour)}}}'
            for use, colour in uses
            if on_dark(colour) != colour
        )

    light_theme = "[data-theme=light] *,[data-jp-theme-light=true] *,.vscode-light *"
    dark_theme = "[data-theme=dark],[data-jp-theme-light=false],.vscode-dark"
    return (
        f"@media screen and (prefers-color-scheme:dark){{{dark(f'.{_SCOPE}:not({light_theme})')}}}"
        f"@media screen{{{dark(f':is({dark_theme}) .{_SCOPE}')}}}"
    )

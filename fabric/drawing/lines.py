"""Lines and words of pictures as SVG: curves with tips, texts of several lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from rich.cells import cell_len

from fabric.drawing.colours import FAINT, INK, LINE, PAPER, SCOPE, Paint, style
from fabric.drawing.layout import Curve, Point, Size

__all__ = ["LEADING", "arrow", "document", "extent", "shortened", "words"]

LEADING: Final = 1.2
"""Height of a line of text, by the size of its font."""

_LETTER: Final = 0.61
"""Width of a letter, by the size of its font: the fonts are monospaced."""

_FONT: Final = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"

_TIP: Final = (7.0, 3.0)
"""Length and half the width of an arrow's tip."""

_LONGEST: Final = 48
"""Letters of a name that are written out."""

_MARGIN: Final = 16.0
_HEAD: Final = 46.0
_TITLE: Final = 15
_SMALL: Final = 10
_SWATCH: Final = 11
_BETWEEN: Final = 22.0


def extent(lines: Sequence[str], size: float) -> Size:
    """Return the width and height of ``lines`` in a font of ``size`` pixels."""
    letters = max(map(cell_len, lines), default=0)
    return letters * size * _LETTER, len(lines) * size * LEADING


def shortened(name: str) -> str:
    """Return ``name`` without its middle where it is too long for a box."""
    return (
        name
        if len(name) <= _LONGEST
        else f"{name[: _LONGEST - 17]}\N{HORIZONTAL ELLIPSIS}{name[-16:]}"
    )


def words(
    lines: Sequence[str], centre: Point, size: float, paint: Paint, *, bold: bool = False
) -> Iterator[str]:
    """Yield ``lines``, one below the other, around ``centre``."""
    x, y = centre
    first = y - (len(lines) - 1) * size * LEADING / 2 + 0.35 * size
    weight = ' font-weight="600"' if bold else ""
    for number, line in enumerate(lines):
        yield (
            f'<text x="{x:.1f}" y="{first + number * size * LEADING:.1f}" text-anchor="middle" '
            f'font-size="{size}"{weight} {paint.fill}>{escape(line)}</text>'
        )


def arrow(curves: Sequence[Curve], paint: Paint, *, width: float = 1.1) -> str:
    """Return the line of an arrow; the last curve ends in a tip."""
    line = "".join(
        f"M{_at(curve[0])}"
        + "".join(
            f"C{_at(curve[k])} {_at(curve[k + 1])} {_at(curve[k + 2])}"
            for k in range(1, len(curve) - 1, 3)
        )
        for curve in curves
    )
    (x, y), (across, down) = curves[-1][-1], _heading(curves[-1])
    back = x - _TIP[0] * across, y - _TIP[0] * down
    sides = (
        (back[0] + turn * _TIP[1] * down, back[1] - turn * _TIP[1] * across) for turn in (1, -1)
    )
    tip = " ".join(map(_at, ((x, y), *sides)))
    return (
        f'<path d="{line}" fill="none" {paint.stroke} stroke-width="{width}"/>'
        f'<polygon points="{tip}" {paint.fill}/>'
    )


def document(title: str, legend: Sequence[tuple[str, str]], size: Size, body: Iterable[str]) -> str:
    """Return a whole picture.

    Args:
        title: what stands above it.
        legend: colours, each as attributes of what is filled with it, and what it stands for; no
            attributes for mere words.
        size: of the drawing.
        body: the drawing, from (0, 0) on.
    """
    swatches, legend_width = _legend(legend)
    width = max(size[0], legend_width, extent([title], _TITLE)[0]) + 2 * _MARGIN
    height = _HEAD + size[1] + 2 * _MARGIN
    whole = f'width="{width:.0f}" height="{height:.0f}"'
    left = (width - size[0]) / 2
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{SCOPE}" {whole} '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONT}" '
            'style="max-width:100%;height:auto">',
            f"<title>{escape(title)}</title><style>{style()}</style>",
            f"<rect {whole} {PAPER.fill}/>",
            f'<text x="{_MARGIN}" y="{_MARGIN + 12}" font-size="{_TITLE}" font-weight="700" '
            f"{INK.fill}>{escape(title)}</text>",
            *swatches,
            f'<g transform="translate({left:.1f} {_HEAD + _MARGIN})">',
            *body,
            "</g></svg>",
            "",
        )
    )


def _legend(entries: Iterable[tuple[str, str]]) -> tuple[list[str], float]:
    """Return a row of colours with their names, and its width."""
    parts: list[str] = []
    x, y = _MARGIN, _MARGIN + 22
    for attributes, name in entries:
        after = x + _SWATCH + 5 if attributes else x
        if attributes:
            parts.append(
                f'<rect x="{x:.0f}" y="{y}" width="{_SWATCH}" height="{_SWATCH}" rx="2" '
                f'stroke="{LINE.light}" stroke-width="0.5" {attributes}/>'
            )
        parts.append(
            f'<text x="{after:.0f}" y="{y + 9}" font-size="{_SMALL}" {FAINT.fill}>{escape(name)}'
            "</text>"
        )
        x = after + extent([name], _SMALL)[0] + _BETWEEN
    return parts, x - _BETWEEN - _MARGIN


def _at(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _heading(curve: Curve) -> Point:
    """Return the direction in which ``curve`` ends, of length 1."""
    x, y = curve[-1]
    for before in reversed(curve[:-1]):
        across, down = x - before[0], y - before[1]
        if length := math.hypot(across, down):
            return across / length, down / length
    return 0.0, 1.0

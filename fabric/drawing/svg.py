"""Pictures as SVG, laid out here, so that no other program has to be installed."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise
from typing import Final

from fabric.drawing.colours import KIND_FILL, shade
from fabric.drawing.layout import Layout, Point, Size, layered
from fabric.drawing.picture import Arrow, Box, Picture
from fabric.telling.causes import SHOWN, Cause

__all__ = ["svg"]

_TITLE: Final = 7.3
"""Width of a letter of the title in pixels; the fonts are monospaced."""

_SMALL: Final = 6.1
_MARGIN: Final = 20.0
_BOX_HEIGHT: Final = 40.0
_BAR_HEIGHT: Final = 7.0
_LINE: Final = {"compute": "#3b6fb6", "memory": "#3a8a4a", "routing": "#8a8a8a"}
_STYLE: Final = (
    "text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1c1c1c}"
    ".t{font-size:12px;font-weight:600}.s{font-size:10px;fill:#555}"
    ".l{font-size:10px;fill:#333}.h{font-size:15px;font-weight:700}"
    "path{fill:none;stroke:#7d7d7d;stroke-width:1.1}"
)


def svg(picture: Picture) -> str:
    """Return ``picture`` as an SVG document."""
    layout = layered(
        [_box_size(box) for box in picture.boxes],
        [(arrow.source, arrow.target) for arrow in picture.arrows],
        [(_SMALL * len(_label(arrow)) + 6, 16.0) for arrow in picture.arrows],
    )
    return "\n".join(_document(picture, layout)) + "\n"


def _document(picture: Picture, layout: Layout) -> Iterator[str]:
    legend = tuple(_legend(picture))
    width = max(layout.size[0], 150.0 * len(legend), 20 + 9.2 * len(picture.title)) + 2 * _MARGIN
    height = layout.size[1] + 2 * _MARGIN + 60
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    yield f"<title>{escape(picture.title)}</title><style>{_STYLE}</style>"
    yield (
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#7d7d7d;stroke:none"/>'
        "</marker></defs>"
    )
    yield f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
    yield f'<text class="h" x="{_MARGIN}" y="26">{escape(picture.title)}</text>'
    for number, (fill, name) in enumerate(legend):
        x = _MARGIN + 150 * number
        yield f'<rect x="{x}" y="36" width="11" height="11" rx="2" fill="{fill}"/>'
        yield f'<text class="s" x="{x + 16}" y="45">{name}</text>'
    left = (width - layout.size[0]) / 2
    yield f'<g transform="translate({left:.1f} {_MARGIN + 50})">'
    for arrow, route in zip(picture.arrows, layout.routes, strict=True):
        yield _path(route, picture.boxes[arrow.source], picture.boxes[arrow.target])
    for arrow, (x, y) in zip(picture.arrows, layout.labels, strict=True):
        text = _label(arrow)
        half = _SMALL * len(text) / 2
        yield (
            f'<rect x="{x - half - 2:.1f}" y="{y - 7:.1f}" width="{2 * half + 4:.1f}" height="14" '
            f'fill="#fff" fill-opacity=".88"/><text class="l" text-anchor="middle" x="{x:.1f}" '
            f'y="{y + 3.5:.1f}">{escape(text)}</text>'
        )
    for box, centre in zip(picture.boxes, layout.nodes, strict=True):
        yield from _box(box, centre)
    yield "</g></svg>"


def _legend(picture: Picture) -> Iterator[tuple[str, str]]:
    if picture.measured:
        yield from ((cause.colour, cause.label) for cause in SHOWN)
    else:
        yield from ((_LINE[kind], f"{kind} unit") for kind in KIND_FILL)


def _label(arrow: Arrow) -> str:
    return (
        arrow.label if arrow.count == 1 else f"{arrow.label}  \N{MULTIPLICATION SIGN}{arrow.count}"
    )


def _title(box: Box) -> str:
    return box.title if box.count == 1 else f"{box.title}  \N{MULTIPLICATION SIGN}{box.count}"


def _subtitle(box: Box) -> str:
    return f"{box.operator}  {box.place}"


def _box_size(box: Box) -> Size:
    width = max(_TITLE * len(_title(box)), _SMALL * len(_subtitle(box))) + 18
    return width, _BOX_HEIGHT + (_BAR_HEIGHT + 3 if box.shares is not None else 0)


def _box(box: Box, centre: Point) -> Iterator[str]:
    (x, y), (width, height) = centre, _box_size(box)
    left, top = x - width / 2, y - height / 2
    fill = KIND_FILL[box.kind] if box.shares is None else shade(box.shares[Cause.BUSY])
    shape = f'width="{width:.1f}" height="{height:.1f}" rx="5"'
    style = f'fill="{fill}" stroke="{_LINE[box.kind]}" stroke-width="1.2"'
    if box.count > 1:
        yield f'<rect x="{left + 4:.1f}" y="{top + 4:.1f}" {shape} {style}/>'
    yield f'<rect x="{left:.1f}" y="{top:.1f}" {shape} {style}/>'
    for kind, text, below in (("t", _title(box), 16), ("s", _subtitle(box), 31)):
        yield (
            f'<text class="{kind}" text-anchor="middle" x="{x:.1f}" y="{top + below:.1f}">'
            f"{escape(text)}</text>"
        )
    if box.shares is not None:
        at = left + 9
        for cause in SHOWN:
            part = (width - 18) * box.shares[cause]
            percent = f"{cause.label}: {100 * box.shares[cause]:.1f} %"
            yield (
                f'<rect x="{at:.1f}" y="{top + _BOX_HEIGHT - 1:.1f}" width="{part:.1f}" '
                f'height="{_BAR_HEIGHT}" fill="{cause.colour}"><title>{percent}</title></rect>'
            )
            at += part


def _path(route: tuple[Point, ...], source: Box, target: Box) -> str:
    """A smooth line from the edge of one box to the edge of the other."""
    points = list(route)
    down = 1 if points[-1][1] >= points[0][1] else -1
    points[0] = points[0][0], points[0][1] + down * _box_size(source)[1] / 2
    points[-1] = points[-1][0], points[-1][1] - down * _box_size(target)[1] / 2
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    # Catmull-Rom: in each point the line goes where the straight way past it would.
    first, last = points[0], points[-1]
    around = [(first[0], first[1] - 60 * down), *points, (last[0], last[1] + 60 * down)]
    for k, ((x0, y0), (x1, y1)) in enumerate(pairwise(points)):
        (xa, ya), (xb, yb) = around[k], around[k + 3]
        parts.append(
            f"C{x0 + (x1 - xa) / 6:.1f} {y0 + (y1 - ya) / 6:.1f} "
            f"{x1 - (xb - x0) / 6:.1f} {y1 - (yb - y0) / 6:.1f} {x1:.1f} {y1:.1f}"
        )
    return f'<path d="{"".join(parts)}" marker-end="url(#a)"/>'

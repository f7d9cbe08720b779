"""A mesh as shapes of SVG: sites are squares, and links are lines between neighbours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from html import escape
from typing import Final, NamedTuple

from fabric.analysis.drawing.paper import BOX, Size
from fabric.graph.hardware.latency import Site
from fabric.messages.causes import STUCK

_WIDEST: Final = 720.0
"""Width of the whole mesh in pixels; it limits the size of sites."""

_LARGEST_STEP: Final = 72.0
_SHARE: Final = 0.6
"""Fraction of the distance between sites that a site covers; the rest shows the link."""

_ASIDE: Final = 0.07
"""Offset of the two directions from the line between two sites, as a fraction of their distance."""

_FAINTEST: Final = 0.1


class Link(NamedTuple):
    """A link between two neighbours; the heaviest possible ``load`` is 1."""

    source: Site
    target: Site
    load: float
    title: str


class Square(NamedTuple):
    """A coloured site; all other sites are drawn empty."""

    site: Site
    colour: str
    title: str
    opacity: float = 1.0


def mesh(
    columns: int, rows: int, links: Iterable[Link], squares: Iterable[Square]
) -> tuple[Size, str]:
    """Return the size of the picture, and its shapes; shapes of one look and title are one path."""
    step = min(_LARGEST_STEP, _WIDEST / max(columns, rows))
    side = step * _SHARE
    paths: dict[tuple[str, str], list[str]] = defaultdict(list)
    for link in links:
        right, down = link.target.column - link.source.column, link.target.row - link.source.row
        x, y = _centre(link.source, step)
        wide = step * (0.22 if link.load >= 1 else 0.04 + 0.1 * link.load)
        look = (
            f'fill="none" stroke="{STUCK}" stroke-width="{wide:.1f}" '
            f'stroke-opacity="{max(_FAINTEST, link.load):.1f}"'
        )
        paths[look, link.title].append(
            f"M{x - down * step * _ASIDE:.1f} {y + right * step * _ASIDE:.1f}"
            f"l{right * step:.1f} {down * step:.1f}"
        )
    painted = list(squares)
    empty = {Site(column, row) for column in range(columns) for row in range(rows)}
    empty -= {square.site for square in painted if square.opacity == 1}
    for square in (*(Square(site, BOX["routing"], "") for site in sorted(empty)), *painted):
        x, y = _centre(square.site, step)
        look = f'fill="{square.colour}" fill-opacity="{square.opacity:.1f}"'
        paths[look, square.title].append(
            f"M{x - side / 2:.1f} {y - side / 2:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z"
        )
    drawn = [
        f'<path d="{"".join(shapes)}" {look}><title>{escape(title)}</title></path>\n'
        for (look, title), shapes in paths.items()
    ]
    return (columns * step, rows * step), "".join(drawn)


def _centre(site: Site, step: float) -> tuple[float, float]:
    return (site.column + 0.5) * step, (site.row + 0.5) * step

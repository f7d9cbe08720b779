"""The section of a page about the links of a network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import nlargest
from typing import Final

from fabric.analysis.drawing.mesh import Link, Square, mesh
from fabric.analysis.drawing.paper import framed
from fabric.analysis.trace.reading.integrity import LinkLoad, MeshSize
from fabric.display.html import fragment
from fabric.display.parts import Rows, Sheet, line
from fabric.graph.hardware.latency import Site
from fabric.messages.causes import STUCK
from fabric.messages.text import counted, visible

_LEVELS: Final = 10
"""Shades of a link: one for each tenth of its capacity."""

_SHOWN: Final = 10


def links_section(links: Sequence[LinkLoad], size: MeshSize) -> str:
    """Return the section with the mesh and the busiest links; empty if no link has a limit."""
    if not links:
        return ""
    return (
        "<section><h2>Links of the network</h2>"
        '<p class="quiet">A square is a site, and a line is a link to its neighbour. '
        "The redder a line, the busier the link was in the whole run, up to 100 %. "
        "A square has the colour of the busier link between its site and the network.</p>"
        f'<div class="columns"><div class="mesh">{_picture(links, size)}</div>'
        f"<div>{fragment(_busiest(links))}</div></div></section>"
    )


def _picture(links: Sequence[LinkLoad], size: MeshSize) -> str:
    busy: defaultdict[Site, float] = defaultdict(float)
    between = []
    for link in links:
        source, target = Site(*link.source), Site(*link.target)
        if source == target:
            busy[source] = max(busy[source], link.share)
        else:
            between.append(Link(source, target, *_level(link.share)))
    levels = ((site, *_level(share)) for site, share in busy.items())
    squares = [Square(site, STUCK, title, load) for site, load, title in levels]
    return framed("Links of the network", *mesh(size.columns, size.rows, between, squares))


def _level(share: float) -> tuple[float, str]:
    """Return the shade of a link, and its title."""
    level = min(int(share * _LEVELS), _LEVELS - 1)
    return (level + 1) / _LEVELS, f"busy {10 * level} to {10 * (level + 1)} %"


def _busiest(links: Sequence[LinkLoad]) -> Sheet:
    rows = [
        (link.name, link.bytes, f"{100 * link.share:.1f}", visible(_channels(link)))
        for link in nlargest(_SHOWN, links, key=lambda link: link.share)
    ]
    yield Rows(("busiest links", "bytes", "% busy", "channels"), rows)
    if len(links) > _SHOWN:
        yield line(f"{counted(len(links) - _SHOWN, 'more link')} carried something.")


def _channels(link: LinkLoad) -> str:
    more = link.users - len(link.channels)
    return ", ".join(link.channels) + (f", {more:,} more" if more > 0 else "")

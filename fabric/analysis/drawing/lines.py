"""Layout of boxes and lines by Graphviz; lines, text and colours as SVG.

A label is a node between the ends of its arrow, so that no line crosses it. Attributes have the
colours for white paper; a style sheet has those for browsers and notebooks with a dark theme.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any, Final, TypeAlias

from rich.cells import cell_len

from fabric.messages.causes import STUCK, Cause
from fabric.timing.machine.signal_shield import shielded

Size: TypeAlias = tuple[float, float]
"""Width and height in pixels."""

Point: TypeAlias = tuple[float, float]
"""In pixels; y grows downwards."""

Curve: TypeAlias = tuple[Point, ...]
"""Cubic Bezier curves end to end: a start, then two control points and an end for each."""

_INCH: Final = 72.0

_GAPS: Final = {"nodesep": "0.2", "ranksep": "0.2"}

_one_at_a_time: Final = threading.Lock()
"""Graphviz keeps its state in globals."""

SCOPE: Final = "step-picture"
"""The class of a picture's root, so that its style sheet leaves the rest of a page unchanged."""

LEADING: Final = 1.2
"""Height of a line of text as a multiple of its font size."""

_LETTER: Final = 0.61

_FONT: Final = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"

_TIP: Final = (7.0, 3.0)

_LONGEST: Final = 48

_MARGIN: Final = 16.0

_HEAD: Final = 46.0

_TITLE: Final = 15

_SMALL: Final = 10

_SWATCH: Final = 11

_BETWEEN: Final = 22.0


@dataclass(frozen=True)
class Layout:
    """Positions in a drawing; ``nodes`` are centres, and the upper left corner is (0, 0).

    Attributes:
        labels: centres of the labels of arrows; None for an arrow without one.
        routes: curves of each arrow: to its label and on to its target; one without a label.
    """

    size: Size
    nodes: tuple[Point, ...]
    labels: tuple[Point | None, ...]
    routes: tuple[tuple[Curve, ...], ...]


def layered(
    sizes: Sequence[Size], arrows: Sequence[tuple[int, int]], labels: Sequence[Size | None]
) -> Layout:
    """Lay out a graph; the same graph always has the same layout.

    ``arrows``: from node to node; cycles, parallel arrows and loops are allowed. ``labels``: size
    of each arrow's label; None for an arrow without one.
    """
    if not sizes:
        return Layout((0.0, 0.0), (), (), ())
    boxes = list(sizes)
    lines: list[tuple[int, int]] = []
    lines_of: list[list[int]] = []
    named: list[int | None] = []
    for (source, target), label in zip(arrows, labels, strict=True):
        chain = [source, target]
        if label is not None:
            chain.insert(1, len(boxes))
            boxes.append(label)
        named.append(chain[1] if label is not None else None)
        lines_of.append(list(range(len(lines), len(lines) + len(chain) - 1)))
        lines += pairwise(chain)
    (width, height), centres, curves = _laid_out(boxes, lines)
    return Layout(
        (width, height),
        tuple(centres[: len(sizes)]),
        tuple(None if node is None else centres[node] for node in named),
        tuple(tuple(curves[line] for line in each) for each in lines_of),
    )


def _laid_out(
    boxes: Iterable[Size], lines: Iterable[tuple[int, int]]
) -> tuple[Size, list[Point], list[Curve]]:
    drawing = json.loads(shielded(lambda: _graphviz(boxes, lines)))
    # The paper, from (0, 0).
    width, height = map(max, zip(*_points(drawing, "P"), strict=True))

    def turned(points: Iterable[Point]) -> Curve:
        return tuple((round(x, 2), round(height - y, 2)) for x, y in points)

    centres = {
        int(node["name"]): _middle(turned(_points(node, "p"))) for node in drawing["objects"]
    }
    curves = {int(edge["id"]): turned(_points(edge, "b")) for edge in drawing.get("edges", ())}
    return (
        (width, height),
        [centres[number] for number in sorted(centres)],
        [curves[number] for number in sorted(curves)],
    )


def _graphviz(boxes: Iterable[Size], lines: Iterable[tuple[int, int]]) -> bytes:
    """Return the drawing of ``dot`` as JSON, which keeps all digits of coordinates."""
    import pygraphviz  # imported here: only pictures need it
    from pygraphviz import graphviz

    with _one_at_a_time:
        graph = pygraphviz.AGraph(directed=True, strict=False, **_GAPS)
        graph.node_attr.update(shape="box", fixedsize="true", label="")
        graph.edge_attr.update(arrowhead="none")
        for number, (width, height) in enumerate(boxes):
            graph.add_node(number, width=width / _INCH, height=height / _INCH)
        for number, (source, target) in enumerate(lines):
            graph.add_edge(source, target, key=number, id=number)
        context = graphviz.gvContextWithBuiltins()
        try:
            if graphviz.gvLayout(context, graph.handle, b"dot"):
                raise RuntimeError("Graphviz could not lay out the picture")
            failed, text = graphviz.gvRenderData(context, graph.handle, b"json")
            if failed:
                raise RuntimeError("Graphviz could not write the picture")
            return bytes(text)
        finally:
            graphviz.gvFreeLayout(context, graph.handle)
            graphviz.gvFreeContext(context)
            graph.close()


# Any: JSON of another program.
def _points(thing: Mapping[str, Any], operation: str) -> list[Point]:
    (points,) = (each["points"] for each in thing["_draw_"] if each["op"] == operation)
    return [(x, y) for x, y in points]


def _middle(corners: Sequence[Point]) -> Point:
    across = [x for x, _ in corners]
    down = [y for _, y in corners]
    return (min(across) + max(across)) / 2, (min(down) + max(down)) / 2


@dataclass(frozen=True)
class Paint:
    """A colour that follows the theme; ``name`` is its CSS class."""

    name: str
    light: str
    dark: str

    @property
    def fill(self) -> str:
        """Attributes of a filled shape."""
        return f'class="{self.name}" fill="{self.light}"'

    @property
    def stroke(self) -> str:
        """Attributes of a line."""
        return f'class="{self.name}-line" stroke="{self.light}"'


PAPER: Final = Paint("paper", "#ffffff", "#14181d")


INK: Final = Paint("ink", "#1c1c1c", "#e9edf1")


FAINT: Final = Paint("faint", "#555555", "#a9b4bf")


LINE: Final = Paint("line", "#7d7d7d", "#8793a0")


RED: Final = Paint("red", STUCK, "#ff7085")
"""Units and waits of a deadlock."""


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
"""Idle units: close to the paper."""


_PAINTS: Final = (PAPER, INK, FAINT, LINE, RED, REST, *BOX.values(), *KIND.values())


_STRONGEST: Final = 0.5
"""The most opaque tint on which text is readable, light and dark."""


def style() -> str:
    """Return the style sheet of a picture: its colours on dark paper."""
    in_light_theme = "[data-jp-theme-light=true] *,.vscode-light *"
    by_browser = _dark(f".{SCOPE}:not({in_light_theme})")
    by_notebook = _dark(f":is([data-jp-theme-light=false],.vscode-dark) .{SCOPE}")
    return f"@media (prefers-color-scheme:dark){{{by_browser}}}{by_notebook}"


def tint(shares: Mapping[Cause, float]) -> tuple[Cause, float]:
    """Return the dominant cause, and the opacity of its colour in a box, from 0 to 0.5."""
    cause = max(shares, key=lambda each: shares[each])
    strength = 0.0 if cause is Cause.IDLE else max(0.0, min(1.0, shares[cause]))
    return cause, _STRONGEST * strength


def _dark(root: str) -> str:
    return "".join(
        f"{root} .{paint.name}{{fill:{paint.dark}}}{root} .{paint.name}-line{{stroke:{paint.dark}}}"
        for paint in _PAINTS
    )


def extent(lines: Sequence[str], size: float) -> Size:
    """Return the width and height of ``lines`` in a font of ``size`` pixels."""
    cells = max(map(cell_len, lines), default=0)
    return cells * size * _LETTER, len(lines) * size * LEADING


def shortened(name: str) -> str:
    """Return ``name``, without its middle if it is too long for a box."""
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
    """Return a whole picture; ``body`` starts at (0, 0)."""
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
    x, y = curve[-1]
    for before in reversed(curve[:-1]):
        across, down = x - before[0], y - before[1]
        if length := math.hypot(across, down):
            return across / length, down / length
    return 0.0, 1.0

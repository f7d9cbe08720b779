"""Layered layout by Graphviz: arrows point down, and nothing lies on anything else.

A label is a node between the ends of its arrow, so that it has room of its own and no line runs
through it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

__all__ = ["Curve", "Layout", "Point", "Size", "layered"]

Size: TypeAlias = tuple[float, float]
"""Width and height in pixels."""

Point: TypeAlias = tuple[float, float]
"""In pixels; y grows downwards."""

Curve: TypeAlias = tuple[Point, ...]
"""Cubic Bezier curves end to end: a start, then two control points and an end for each."""

_INCH: Final = 72.0
"""Pixels, in which Graphviz gives places; it takes sizes in inches."""

_GAPS: Final = {"nodesep": "0.2", "ranksep": "0.2"}
"""Between neighbours and between layers, in inches."""

_one_at_a_time: Final = threading.Lock()
"""Graphviz keeps its state in globals."""


@dataclass(frozen=True)
class Layout:
    """Where everything is.

    Attributes:
        size: of the whole drawing, whose upper left corner is (0, 0).
        nodes: centres.
        labels: centres of the labels of arrows; None for an arrow without one.
        routes: for each arrow its curves, from the edge of its source to that of its target: one to
            its label and one from there on, or one where it has no label.
    """

    size: Size
    nodes: tuple[Point, ...]
    labels: tuple[Point | None, ...]
    routes: tuple[tuple[Curve, ...], ...]


def layered(
    sizes: Sequence[Size], arrows: Sequence[tuple[int, int]], labels: Sequence[Size | None]
) -> Layout:
    """Lay out a graph; the same graph always comes out the same.

    Args:
        sizes: of the nodes.
        arrows: from node to node; there may be cycles, several between two nodes, and loops.
        labels: size of each arrow's label; None for an arrow without one.
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
    """Return the size of the drawing, the centres of the boxes and the curves of the lines."""
    drawing = json.loads(_graphviz(boxes, lines))
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
    """Return the drawing of ``dot`` as JSON: attributes are rounded to five digits, it is not."""
    import pygraphviz  # here: only pictures need it
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
    """Return the points of what ``thing`` is drawn with; y grows upwards."""
    (points,) = (each["points"] for each in thing["_draw_"] if each["op"] == operation)
    return [(x, y) for x, y in points]


def _middle(corners: Sequence[Point]) -> Point:
    across = [x for x, _ in corners]
    down = [y for _, y in corners]
    return (min(across) + max(across)) / 2, (min(down) + max(down)) / 2

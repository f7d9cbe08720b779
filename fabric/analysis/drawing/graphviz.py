"""Graphviz as a renderer of SVG."""

from __future__ import annotations

import re
import threading
from typing import Final

from fabric.analysis.drawing.paper import Size
from fabric.timing.machine.signal_shield import shielded

_one_at_a_time: Final = threading.Lock()
"""Graphviz keeps its state in globals."""

_DOCUMENT: Final = re.compile(r'<svg .*?viewBox="\S+ \S+ (\S+) (\S+)".*?>\n(.*)</svg>', re.DOTALL)

_UNNEEDED: Final = re.compile(r'<!--.*?-->\n|<title>.*?</title>\n| id="[^"]*"', re.DOTALL)

_TOOLTIP: Final = re.compile(r'<a xlink:title="([^"]*)">')


def rendered(dot: str) -> tuple[Size, str]:
    """Return the size of a drawing in the language of Graphviz, and its SVG without the frame.

    Elements keep their ``class``, lose their ids, and have their tooltips as ``<title>``.
    """
    document = _DOCUMENT.search(shielded(lambda: _svg(dot)).decode())
    assert document is not None
    width, height, body = document.groups()
    body = _TOOLTIP.sub(r"<title>\1</title>", _UNNEEDED.sub("", body)).replace("</a>\n", "")
    return (float(width), float(height)), body


def _svg(dot: str) -> bytes:
    import pygraphviz  # imported here: only pictures need it
    from pygraphviz import graphviz

    with _one_at_a_time:
        graph = pygraphviz.AGraph(string=dot)
        context = graphviz.gvContextWithBuiltins()
        try:
            if graphviz.gvLayout(context, graph.handle, b"dot"):
                raise RuntimeError("Graphviz could not lay out the picture")
            failed, text = graphviz.gvRenderData(context, graph.handle, b"svg")
            if failed:
                raise RuntimeError("Graphviz could not write the picture")
            return bytes(text)
        finally:
            graphviz.gvFreeLayout(context, graph.handle)
            graphviz.gvFreeContext(context)
            graph.close()
